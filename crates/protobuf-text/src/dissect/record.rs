//! Messages as records, and records as a tag and a value.

use thalweg_protobuf::wire::WireType;
use thalweg_protobuf::{Field, MessageType};

use super::problem::Problem;
use super::span::Span;
use super::varint::{Tag, Varint};

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
    pub(super) fn new(tag: Tag, value: Value<'s>) -> Self {
        Self { tag, value, field: None, problem: None }
    }

    /// The field, if the value is written as values of that field are; decoders take all others for unknown ones.
    pub fn known(&self) -> Option<Field<'s>> {
        let found = self.tag.wire_type()?;
        self.field.filter(|field| found == field.kind().wire_type() || is_packed(*field, found))
    }

    /// The bytes from its tag to its end.
    pub fn span(&self) -> Span {
        Span { start: self.tag.span.start, end: self.value.end() }
    }
}

/// Whether that is how a row of the field's values is written.
pub(super) fn is_packed(field: Field<'_>, wire_type: WireType) -> bool {
    wire_type == WireType::Len && field.is_repeated() && field.kind().is_packable()
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
}
