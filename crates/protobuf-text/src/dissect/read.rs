//! Reads records from bytes.

use thalweg_protobuf::wire::{NUMBER_MAX, WireType};
use thalweg_protobuf::{Field, MessageType, WellKnown};

use super::known;
use super::problem::{Part, Problem, ProblemKind};
use super::record::{Message, Record, Value};
use super::span::Span;
use super::varint::{Tag, Varint, read_varint};

/// Limits of a dissection, for untrusted input.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum nesting depth of messages and groups. Default: 100. Deeper messages stay bytes; a deeper group is a
    /// problem.
    pub depth_max: usize,
    /// Maximum number of records, including nested ones. Default: 1,000,000. Exceeding it is a problem; the rest stays
    /// bytes.
    pub records_max: usize,
}

impl Default for Limits {
    /// Returns the depth at which decoders stop, and a million records, which take about 200 MB.
    fn default() -> Self {
        Self { depth_max: 100, records_max: 1_000_000 }
    }
}

impl Limits {
    /// Sets [`depth_max`](field@Self::depth_max).
    pub fn depth_max(mut self, depth_max: usize) -> Self {
        self.depth_max = depth_max;
        self
    }

    /// Sets [`records_max`](field@Self::records_max).
    pub fn records_max(mut self, records_max: usize) -> Self {
        self.records_max = records_max;
        self
    }
}

/// Dissects the bytes at `span`.
///
/// With a type, it assigns fields and dissects nested messages even if malformed. Without one, and in unknown fields,
/// it dissects every payload that can be read as records to its end.
pub fn dissect<'s>(
    input: &[u8],
    span: Span,
    message_type: Option<MessageType<'s>>,
    limits: &Limits,
) -> Message<'s> {
    let end = span.end.min(input.len());
    let span = Span { start: span.start.min(end), end };
    let mut reader = Reader { input, limits: *limits, records_left: limits.records_max };
    let mut message = reader.records(span, 0);
    reader.descend(&mut message, message_type, 0);
    message
}

/// Whether the bytes are records from first to last. Payloads are not checked.
pub(super) fn is_message(input: &[u8], span: Span, limits: &Limits) -> bool {
    let mut reader = Reader { input, limits: *limits, records_left: limits.records_max };
    reader.records(span, 0).problems().is_empty()
}

struct Reader<'a> {
    input: &'a [u8],
    limits: Limits,
    records_left: usize,
}

/// The reading position and its limit.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    at: usize,
    end: usize,
}

impl Cursor {
    fn left(self) -> usize {
        self.end - self.at
    }
}

/// The next element in a message.
enum Element<'s> {
    Record(Record<'s>),
    /// An end tag.
    EndGroup(Tag),
    /// The decoded part of a record that contains a problem.
    Malformed(Record<'s>),
}

impl Reader<'_> {
    /// Reads the records of one level, including those in groups; payloads are not opened.
    fn records<'s>(&mut self, span: Span, depth: usize) -> Message<'s> {
        let mut cursor = Cursor { at: span.start, end: span.end };
        let mut message = Message { message_type: None, span, records: Vec::new(), problem: None };
        while cursor.left() > 0 {
            match self.record(&mut cursor, None, depth) {
                Ok(Element::Record(record)) => message.records.push(record),
                Ok(Element::Malformed(record)) => {
                    message.records.push(record);
                    break;
                }
                Ok(Element::EndGroup(tag)) => {
                    let kind = ProblemKind::UnexpectedEndGroup(tag.number());
                    message.problem = Some(Problem { offset: tag.span.start, kind, tag: None, length: None });
                    break;
                }
                Err(problem) => {
                    message.problem = Some(problem);
                    break;
                }
            }
        }
        message
    }

    /// Assigns fields to records, and opens payloads that are or may be messages.
    fn descend<'s>(
        &mut self,
        message: &mut Message<'s>,
        message_type: Option<MessageType<'s>>,
        depth: usize,
    ) {
        message.message_type = message_type;
        let in_any = message_type.and_then(|any| any_content(self.input, message, any));
        for record in &mut message.records {
            record.field = message_type.and_then(|known| known.field_by_number(record.tag.number()));
            let field = record.known();
            record.problem = field.and_then(|field| known::problem(field, record, self.input));
            let content = match (in_any, record.tag.number()) {
                (Some(content), 2) => Some(content),
                _ => field.and_then(Field::message_type),
            };
            match &mut record.value {
                Value::Len { payload, message, .. } if depth < self.limits.depth_max => {
                    match (content, field) {
                        (Some(content), _) => {
                            let mut inner = self.records(*payload, depth + 1);
                            self.descend(&mut inner, Some(content), depth + 1);
                            *message = Some(inner);
                        }
                        (None, None) if !payload.is_empty() => {
                            *message = self.complete_message(*payload, depth + 1);
                        }
                        _ => {}
                    }
                }
                Value::Group { message, .. } => self.descend(message, content, depth + 1),
                _ => {}
            }
        }
    }

    /// Reads a span as a message, if it is records from the first to the last byte.
    fn complete_message<'s>(&mut self, span: Span, depth: usize) -> Option<Message<'s>> {
        let records_left = self.records_left;
        let mut message = self.records(span, depth);
        if !message.problems().is_empty() {
            self.records_left = records_left;
            return None;
        }
        self.descend(&mut message, None, depth);
        Some(message)
    }

    fn record<'s>(
        &mut self,
        cursor: &mut Cursor,
        open: Option<u32>,
        depth: usize,
    ) -> Result<Element<'s>, Problem> {
        let tag = varint(self.input, cursor, Part::Tag, None)?;
        let problem = |kind| Problem { offset: tag.span.start, kind, tag: None, length: None };
        let number = tag.value >> 3;
        if number == 0 || number > u64::from(NUMBER_MAX) || tag.overflows {
            return Err(problem(ProblemKind::FieldNumber(number)));
        }
        let Some(wire_type) = tag.wire_type() else {
            return Err(problem(ProblemKind::WireType { number, wire_type: (tag.value & 7) as u8 }));
        };
        self.records_left = self
            .records_left
            .checked_sub(1)
            .ok_or_else(|| problem(ProblemKind::TooManyRecords(self.limits.records_max)))?;
        let value = match wire_type {
            WireType::Varint => Value::Varint(varint(self.input, cursor, Part::Varint, Some(tag))?),
            WireType::Fixed64 => {
                let (bytes, span) = fixed(self.input, cursor, Part::I64, tag)?;
                Value::I64 { bits: u64::from_le_bytes(bytes), span }
            }
            WireType::Fixed32 => {
                let (bytes, span) = fixed(self.input, cursor, Part::I32, tag)?;
                Value::I32 { bits: u32::from_le_bytes(bytes), span }
            }
            WireType::Len => len(self.input, cursor, tag)?,
            WireType::StartGroup => return self.group(cursor, tag, depth + 1),
            WireType::EndGroup => {
                return match open {
                    Some(open) if open != tag.number() => {
                        Err(problem(ProblemKind::MismatchedEndGroup { open, end: tag.number() }))
                    }
                    _ => Ok(Element::EndGroup(tag)),
                };
            }
        };
        Ok(Element::Record(Record::new(tag, value)))
    }

    fn group<'s>(&mut self, cursor: &mut Cursor, tag: Tag, depth: usize) -> Result<Element<'s>, Problem> {
        if depth > self.limits.depth_max {
            let kind = ProblemKind::TooDeep(depth);
            return Err(Problem { offset: tag.span.start, kind, tag: None, length: None });
        }
        let start = cursor.at;
        let mut records = Vec::new();
        let problem = loop {
            if cursor.left() == 0 {
                let kind = ProblemKind::UnterminatedGroup(tag.number());
                break Some(Problem { offset: cursor.at, kind, tag: None, length: None });
            }
            match self.record(cursor, Some(tag.number()), depth) {
                Ok(Element::Record(record)) => records.push(record),
                Ok(Element::Malformed(record)) => {
                    records.push(record);
                    break None;
                }
                Ok(Element::EndGroup(end)) => {
                    let span = Span { start, end: end.span.start };
                    let message = Message { message_type: None, span, records, problem: None };
                    return Ok(Element::Record(Record::new(tag, Value::Group { message, end: Some(end) })));
                }
                Err(problem) => break Some(problem),
            }
        };
        // Its end is unknown, so all remaining bytes belong to it.
        cursor.at = cursor.end;
        let span = Span { start, end: cursor.end };
        let message = Message { message_type: None, span, records, problem };
        Ok(Element::Malformed(Record::new(tag, Value::Group { message, end: None })))
    }
}

/// Returns the type of a `google.protobuf.Any`'s content, if the schema has it.
fn any_content<'s>(input: &[u8], message: &Message, any: MessageType<'s>) -> Option<MessageType<'s>> {
    if any.well_known() != Some(WellKnown::Any) {
        return None;
    }
    let is_type = |record: &&Record| record.tag.number() == 1;
    let Value::Len { payload, .. } = message.records.iter().rfind(is_type)?.value else { return None };
    let (_, name) = std::str::from_utf8(payload.of(input)).ok()?.rsplit_once('/')?;
    any.schema().message(name)
}

/// Reads a varint of 1 to 10 bytes, however long it is encoded.
fn varint(input: &[u8], cursor: &mut Cursor, part: Part, tag: Option<Tag>) -> Result<Varint, Problem> {
    let start = cursor.at;
    let bytes = Span { start, end: cursor.end }.of(input);
    read_varint(bytes, start)
        .inspect(|varint| {
            cursor.at = varint.span.end;
        })
        .map_err(|is_too_long| {
            let kind = if is_too_long {
                ProblemKind::VarintTooLong(part)
            } else {
                ProblemKind::Truncated { part, left: bytes.len() }
            };
            Problem { offset: start, kind, tag, length: None }
        })
}

fn fixed<const LEN: usize>(
    input: &[u8],
    cursor: &mut Cursor,
    part: Part,
    tag: Tag,
) -> Result<([u8; LEN], Span), Problem> {
    let start = cursor.at;
    if let Some(bytes) = (Span { start, end: cursor.end }).of(input).first_chunk() {
        cursor.at += LEN;
        Ok((*bytes, Span { start, end: cursor.at }))
    } else {
        let kind = ProblemKind::Truncated { part, left: cursor.left() };
        Err(Problem { offset: start, kind, tag: Some(tag), length: None })
    }
}

fn len<'s>(input: &[u8], cursor: &mut Cursor, tag: Tag) -> Result<Value<'s>, Problem> {
    let length = varint(input, cursor, Part::Length, Some(tag))?;
    let left = cursor.left();
    match usize::try_from(length.value) {
        Ok(len) if len <= left && !length.overflows => {
            let payload = Span { start: cursor.at, end: cursor.at + len };
            cursor.at = payload.end;
            Ok(Value::Len { length, payload, message: None })
        }
        _ => {
            let kind = ProblemKind::LengthTooLong { length: length.value, left };
            Err(Problem { offset: length.span.start, kind, tag: Some(tag), length: Some(length) })
        }
    }
}
