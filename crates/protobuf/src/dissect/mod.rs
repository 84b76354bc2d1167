//! Taking encoded messages apart, byte by byte: what each byte is, and what it may mean.
//!
//! A decoder wants values and stops at the first thing that is wrong. A dissection keeps where each tag, length and payload
//! lies, how each of them is written (varints may be longer than they need be), and, of what is malformed, all that could be
//! understood until then. [`text`] writes it as a text of which the same bytes can be made again.
//!
//! ```
//! use thalweg_protobuf::dissect::{Limits, Span, Value, dissect};
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
pub mod text;

use std::ops::Range;

pub use problem::{Part, Problem, ProblemKind};
pub use read::dissect;

use crate::schema::{Field, MessageType};
use crate::wire::WireType;
use readings::Reading;

/// What a dissection may grow to: the input is anybody's.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How deep messages and groups may lie in each other. Deeper bytes stay bytes; a deeper group is a problem.
    pub depth_max: usize,
    /// Records in all, those of nested messages too. What is behind the last one is left as it is, as a problem.
    pub records_max: usize,
}

impl Default for Limits {
    /// The depth at which decoders stop, and a million records: some 200 MB.
    fn default() -> Self {
        Self { depth_max: 100, records_max: 1_000_000 }
    }
}

/// Where something lies in the input, in bytes: from `start` to before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The offset of the first byte.
    pub start: usize,
    /// The offset behind the last one.
    pub end: usize,
}

impl Span {
    /// All of the input.
    pub fn all(input: &[u8]) -> Self {
        Self { start: 0, end: input.len() }
    }

    /// How many bytes that is.
    pub fn len(self) -> usize {
        self.end.saturating_sub(self.start)
    }

    /// Nothing.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The bytes; none if they are not there.
    pub fn of(self, input: &[u8]) -> &[u8] {
        input.get(Range::from(self)).unwrap_or_default()
    }
}

impl From<Span> for Range<usize> {
    fn from(span: Span) -> Self {
        span.start..span.end
    }
}

/// Records in a row: a message's, or a group's.
#[derive(Clone, Debug, PartialEq)]
pub struct Message<'s> {
    /// What it is, if that is known.
    pub message_type: Option<MessageType<'s>>,
    /// All of it; of a group, without its tags.
    pub span: Span,
    /// Those that could be read.
    pub records: Vec<Record<'s>>,
    /// Why reading ended before the end.
    pub problem: Option<Problem>,
}

impl Message<'_> {
    /// What could not be read: what lies behind the last whole record.
    pub fn rest(&self) -> Span {
        let start = self.records.last().map_or(self.span.start, |record| record.span().end);
        Span { start, end: self.span.end }
    }

    /// All problems here and in what is nested, by their offsets.
    pub fn problems(&self) -> Vec<&Problem> {
        let mut problems = Vec::new();
        self.collect_problems(&mut problems);
        problems
    }

    fn collect_problems<'a>(&'a self, problems: &mut Vec<&'a Problem>) {
        for record in &self.records {
            problems.extend(&record.problem);
            if let Some(message) = record.value.message() {
                message.collect_problems(problems);
            }
        }
        problems.extend(&self.problem);
    }
}

/// A tag and what it announces.
#[derive(Clone, Debug, PartialEq)]
pub struct Record<'s> {
    /// Which field, and how its value is written.
    pub tag: Tag,
    /// The value.
    pub value: Value<'s>,
    /// The field of that number in the message's type. How the value is written need not be how the field's are:
    /// [`Record::known`].
    pub field: Option<Field<'s>>,
    /// Why decoders refuse it, though it is well-formed: the value is none of the field's type.
    pub problem: Option<Problem>,
}

impl<'s> Record<'s> {
    /// The field, if the value is written as values of that field are; decoders take all others for unknown ones.
    pub fn known(&self) -> Option<Field<'s>> {
        let found = self.tag.wire_type()?;
        self.field.filter(|field| found == field.kind().wire_type() || is_packed(*field, found))
    }

    /// What is nested in it: with a schema, if it is a message; without, unless its bytes are text, which is likelier then.
    pub fn likely_message(&self, input: &[u8]) -> Option<&Message<'s>> {
        let is_text = |span: Span| std::str::from_utf8(span.of(input)).is_ok_and(readings::is_prose);
        match &self.value {
            Value::Len { payload, .. } if self.known().is_none() && is_text(*payload) => None,
            value => value.message(),
        }
    }

    /// The bytes from its tag to its end.
    pub fn span(&self) -> Span {
        Span { start: self.tag.span.start, end: self.value.end() }
    }
}

/// Whether that is how a row of the field's values is written.
fn is_packed(field: Field<'_>, wire_type: WireType) -> bool {
    wire_type == WireType::Len && field.is_repeated() && field.kind().is_packable()
}

/// A varint: seven bits a byte, the lowest first; the eighth bit says that there is more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Varint {
    /// The lowest 64 bits.
    pub value: u64,
    /// Where it lies: 1 to 10 bytes.
    pub span: Span,
    /// There were bits beyond the 64th, which decoders drop or refuse.
    pub overflows: bool,
}

impl Varint {
    /// By how many bytes it is longer than it need be. Encoders don't do that; decoders take it.
    pub fn excess_bytes(&self) -> usize {
        self.span.len().saturating_sub(minimal_len(self.value))
    }
}

/// How many bytes a varint of that value needs.
fn minimal_len(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// A field's number and wire type, in a varint: `(number << 3) | wire type`.
pub type Tag = Varint;

impl Tag {
    /// The number of the field, which is from 1 to 536 870 911.
    pub fn number(&self) -> u32 {
        (self.value >> 3) as u32
    }

    /// How the value is written. 6 and 7 have no meaning.
    pub fn wire_type(&self) -> Option<WireType> {
        WireType::from_bits((self.value & 7) as u32)
    }
}

/// The name of a wire type in the documentation of the format: `VARINT`, `LEN` …
pub fn wire_type_name(wire_type: WireType) -> &'static str {
    match wire_type {
        WireType::Varint => "VARINT",
        WireType::Fixed64 => "I64",
        WireType::Len => "LEN",
        WireType::StartGroup => "SGROUP",
        WireType::EndGroup => "EGROUP",
        WireType::Fixed32 => "I32",
    }
}

/// What follows a tag.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'s> {
    /// [`WireType::Varint`]
    Varint(Varint),
    /// [`WireType::Fixed64`]
    I64 {
        /// As a number, the lowest byte first.
        bits: u64,
        /// Its 8 bytes.
        span: Span,
    },
    /// [`WireType::Fixed32`]
    I32 {
        /// As a number, the lowest byte first.
        bits: u32,
        /// Its 4 bytes.
        span: Span,
    },
    /// [`WireType::Len`]
    Len {
        /// How many bytes follow.
        length: Varint,
        /// Those bytes.
        payload: Span,
        /// What they are as records. With a schema, because they are a message. Without, because they can be read as
        /// records from the first to the last byte, and may be something else.
        message: Option<Message<'s>>,
    },
    /// [`WireType::StartGroup`]
    Group {
        /// What is in it.
        message: Message<'s>,
        /// Its end; none if something is wrong before that.
        end: Option<Tag>,
    },
}

impl<'s> Value<'s> {
    /// The offset behind it.
    pub fn end(&self) -> usize {
        match self {
            Value::Varint(varint) => varint.span.end,
            Value::I64 { span, .. } | Value::I32 { span, .. } | Value::Len { payload: span, .. } => span.end,
            Value::Group { message, end } => end.map_or(message.span.end, |end| end.span.end),
        }
    }

    /// What is nested in it, or may be.
    pub fn message(&self) -> Option<&Message<'s>> {
        match self {
            Value::Len { message, .. } => message.as_ref(),
            Value::Group { message, .. } => Some(message),
            _ => None,
        }
    }

    /// All that it may be, the likeliest first.
    pub fn readings<'a>(&self, input: &'a [u8]) -> Vec<Reading<'a>> {
        readings::of(self, input)
    }
}

#[cfg(test)]
mod tests;
