//! Messages as records, and records as tags and values.

use thalweg_protobuf::wire::WireType;
use thalweg_protobuf::{Field, MessageType};

use super::problem::Problem;
use super::span::Span;
use super::varint::{Tag, Varint};

/// The records of a message or group.
#[derive(Clone, Debug, PartialEq)]
pub struct Message<'s> {
    /// Its type, if known.
    pub message_type: Option<MessageType<'s>>,
    /// Its position; for a group, without the tags.
    pub span: Span,
    /// The records that could be read.
    pub records: Vec<Record<'s>>,
    /// The reason why reading stopped early.
    pub problem: Option<Problem>,
}

impl Message<'_> {
    /// Returns the unreadable bytes after the last complete record.
    pub fn rest(&self) -> Span {
        let start = self.records.last().map_or(self.span.start, |record| record.span().end);
        Span { start, end: self.span.end }
    }

    /// Returns all problems, including nested ones, by offset.
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

/// A tag and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Record<'s> {
    /// Field number and wire type.
    pub tag: Tag,
    /// The value.
    pub value: Value<'s>,
    /// The field of this number in the message's type. Its wire type may differ; see [`Record::known`].
    pub field: Option<Field<'s>>,
    /// The reason why decoders reject it although it is well-formed: the value is invalid for the field's type.
    pub problem: Option<Problem>,
}

impl<'s> Record<'s> {
    pub(super) fn new(tag: Tag, value: Value<'s>) -> Self {
        Self { tag, value, field: None, problem: None }
    }

    /// Returns the field if its wire type matches; decoders treat all others as unknown.
    pub fn known(&self) -> Option<Field<'s>> {
        let found = self.tag.wire_type()?;
        self.field.filter(|field| found == field.kind().wire_type() || is_packed(*field, found))
    }

    /// Returns its position, from tag to end.
    pub fn span(&self) -> Span {
        Span { start: self.tag.span.start, end: self.value.end() }
    }
}

/// Whether this is the packed encoding of the field.
pub(super) fn is_packed(field: Field<'_>, wire_type: WireType) -> bool {
    wire_type == WireType::Len && field.is_repeated() && field.kind().is_packable()
}

/// The value after a tag.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'s> {
    /// [`WireType::Varint`]
    Varint(Varint),
    /// [`WireType::Fixed64`]
    I64 {
        /// The little-endian number.
        bits: u64,
        /// Position of its 8 bytes.
        span: Span,
    },
    /// [`WireType::Fixed32`]
    I32 {
        /// The little-endian number.
        bits: u32,
        /// Position of its 4 bytes.
        span: Span,
    },
    /// [`WireType::Len`]
    Len {
        /// Length of the payload.
        length: Varint,
        /// Position of the payload.
        payload: Span,
        /// The payload as records. With a schema, it is a message. Without one, it can be read as records to its end,
        /// but may be something else.
        message: Option<Message<'s>>,
    },
    /// [`WireType::StartGroup`]
    Group {
        /// The content.
        message: Message<'s>,
        /// The end tag; `None` if there is a problem before it.
        end: Option<Tag>,
    },
}

impl<'s> Value<'s> {
    /// Returns the offset after it.
    pub fn end(&self) -> usize {
        match self {
            Value::Varint(varint) => varint.span.end,
            Value::I64 { span, .. } | Value::I32 { span, .. } | Value::Len { payload: span, .. } => span.end,
            Value::Group { message, end } => end.map_or(message.span.end, |end| end.span.end),
        }
    }

    /// Returns the nested message, which without a schema is only a guess.
    pub fn message(&self) -> Option<&Message<'s>> {
        match self {
            Value::Len { message, .. } => message.as_ref(),
            Value::Group { message, .. } => Some(message),
            _ => None,
        }
    }
}
