//! Dissects encoded messages byte by byte: the role of each byte, and its possible meanings.
//!
//! A decoder extracts values and stops at the first error. A dissection records the position of each tag, length and
//! payload, and how each is encoded (varints may be longer than necessary). For malformed input it keeps everything
//! understood up to the error. [`text`] writes it as text from which the same bytes can be assembled.
//!
//! ```
//! use thalweg_protobuf_text::dissect::{Limits, Span, Value, dissect};
//!
//! let input = b"\x0a\x0dpolar penguin\x10\x14";
//! let message = dissect(input, Span::all(input), None, &Limits::default());
//! let [name, age] = &message.records[..] else { panic!("there are two records") };
//! assert_eq!((name.tag.number(), name.tag.span.start), (1, 0));
//! assert_eq!(age.value.readings(input)[0].to_string(), "20 (uint, int, enum)");
//! assert!(message.problem.is_none());
//! ```

pub mod account;
pub mod framing;
pub mod known;
mod problem;
mod read;
pub mod readings;
mod record;
mod span;
pub mod text;
mod unix_time;
mod varint;

pub use problem::{Part, Problem, ProblemKind};
pub use read::{Limits, dissect};
pub use record::{Message, Record, Value};
pub use span::Span;
pub use unix_time::{TimeUnit, UnixTime};
pub use varint::{Tag, Varint, wire_type_name};

#[cfg(test)]
mod tests;
