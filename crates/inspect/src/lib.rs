//! Decodes and explains bytes of gRPC and Protobuf.
//!
//! - [`Inspection`] decodes an input into frames, messages, fields and values, with an optional schema.
//!   [`write`](mod@write) shows it as a tree, as JSON (`thalweg.inspect/1`) or as text that can be assembled again.
//! - [`capture`] finds gRPC calls in packet captures, and [`exchange`] reads calls saved by `thalweg call --save`.
//!   [`Transcript`](transcript::Transcript) is either, with messages ready to be shown.
//!
//! ```
//! use thalweg_inspect::{Input, Inspection, Paint, write};
//!
//! let input = Input::of_hex("example", "0a 05 68 65 6c 6c 6f")?;
//! let inspection = Inspection::of(&input, None, None);
//! let mut tree = Vec::new();
//! write::tree(&inspection, &mut tree, Paint::default(), 100, false)?;
//! assert!(String::from_utf8_lossy(&tree).contains("hello"));
//! assert_eq!(inspection.verdict(), None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// Only the command prints.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![forbid(unsafe_code)]

pub mod capture;
mod compressed;
pub mod exchange;
mod hex;
mod input;
mod inspection;
mod json;
mod paint;
mod sizes;
pub mod transcript;
mod tree;
pub mod write;

pub use input::{Input, Source};
pub use inspection::Inspection;
pub use paint::{Paint, Role};
