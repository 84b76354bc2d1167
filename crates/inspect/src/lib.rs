//! Explains bytes that gRPC and Protobuf put on the wire.
//!
//! - [`Inspection`] takes an input apart into frames, messages, fields and values, by a schema if there is one.
//!   [`write`](mod@write) shows that as a tree, as JSON (`thalweg.inspect/1`) or as text that can be assembled again.
//! - [`capture`] finds the gRPC calls in a packet capture, and [`exchange`] reads one that `thalweg call --save` wrote.
//!   A [`Transcript`](transcript::Transcript) has either with its messages, ready to be shown.
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

// The command prints, by one way.
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
