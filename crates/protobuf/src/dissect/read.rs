//! From bytes to records.

use super::{Limits, Message, Part, Problem, ProblemKind, Record, Span, Tag, Value, Varint, WireType};

/// No 64-bit number needs more.
const VARINT_LEN_MAX: usize = 10;
const FIELD_NUMBER_MAX: u64 = (1 << 29) - 1;

/// Takes apart what lies at `span`, without a schema: every payload that can be read as records to its end is.
pub fn dissect(input: &[u8], span: Span, limits: &Limits) -> Message {
    let end = span.end.min(input.len());
    let span = Span { start: span.start.min(end), end };
    let mut reader = Reader { input, limits: *limits, records_left: limits.records_max };
    let mut message = reader.records(span, 0);
    reader.descend(&mut message, 0);
    message
}

struct Reader<'a> {
    input: &'a [u8],
    limits: Limits,
    records_left: usize,
}

/// Where reading stands, and where it must end.
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

/// What stands where a record may.
enum Next {
    Record(Record),
    /// The end of the group that is open.
    EndGroup(Tag),
    /// A record that is wrong further in: what of it is understood, with the problem inside.
    Broken(Record),
}

impl Reader<'_> {
    /// The records of one level, those of groups in it too; payloads stay closed.
    fn records(&mut self, span: Span, depth: usize) -> Message {
        let mut cursor = Cursor { at: span.start, end: span.end };
        let mut message = Message { span, records: Vec::new(), problem: None };
        while cursor.left() > 0 {
            match self.record(&mut cursor, None, depth) {
                Ok(Next::Record(record)) => message.records.push(record),
                Ok(Next::Broken(record)) => {
                    message.records.push(record);
                    break;
                }
                Ok(Next::EndGroup(tag)) => {
                    let kind = ProblemKind::NotBegun(tag.number());
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

    /// Opens the payloads that can be read as records, and those in them.
    fn descend(&mut self, message: &mut Message, depth: usize) {
        for record in &mut message.records {
            match &mut record.value {
                Value::Len { payload, message, .. }
                    if !payload.is_empty() && depth < self.limits.depth_max =>
                {
                    *message = self.whole(*payload, depth + 1);
                }
                Value::Group { message, .. } => self.descend(message, depth + 1),
                _ => {}
            }
        }
    }

    /// What lies there, if it is records from the first to the last byte.
    fn whole(&mut self, span: Span, depth: usize) -> Option<Message> {
        let records_left = self.records_left;
        let mut message = self.records(span, depth);
        if !message.problems().is_empty() {
            self.records_left = records_left;
            return None;
        }
        self.descend(&mut message, depth);
        Some(message)
    }

    fn record(&mut self, cursor: &mut Cursor, open: Option<u32>, depth: usize) -> Result<Next, Problem> {
        let tag = varint(self.input, cursor, Part::Tag, None)?;
        let problem = |kind| Problem { offset: tag.span.start, kind, tag: None, length: None };
        let number = tag.value >> 3;
        if number == 0 || number > FIELD_NUMBER_MAX || tag.overflows {
            return Err(problem(ProblemKind::FieldNumber(number)));
        }
        let Some(wire_type) = tag.wire_type() else {
            return Err(problem(ProblemKind::WireType { number, wire_type: (tag.value & 7) as u8 }));
        };
        self.records_left = self
            .records_left
            .checked_sub(1)
            .ok_or_else(|| problem(ProblemKind::TooMany(self.limits.records_max)))?;
        let value = match wire_type {
            WireType::Varint => Value::Varint(varint(self.input, cursor, Part::Varint, Some(tag))?),
            WireType::I64 => {
                let (bytes, span) = fixed(self.input, cursor, Part::I64, tag)?;
                Value::I64 { bits: u64::from_le_bytes(bytes), span }
            }
            WireType::I32 => {
                let (bytes, span) = fixed(self.input, cursor, Part::I32, tag)?;
                Value::I32 { bits: u32::from_le_bytes(bytes), span }
            }
            WireType::Len => len(self.input, cursor, tag)?,
            WireType::StartGroup => return self.group(cursor, tag, depth + 1),
            WireType::EndGroup => {
                return match open {
                    Some(begun) if begun != tag.number() => {
                        Err(problem(ProblemKind::OtherGroup { begun, ends: tag.number() }))
                    }
                    _ => Ok(Next::EndGroup(tag)),
                };
            }
        };
        Ok(Next::Record(Record { tag, value }))
    }

    fn group(&mut self, cursor: &mut Cursor, tag: Tag, depth: usize) -> Result<Next, Problem> {
        if depth > self.limits.depth_max {
            let kind = ProblemKind::TooDeep(depth);
            return Err(Problem { offset: tag.span.start, kind, tag: None, length: None });
        }
        let start = cursor.at;
        let mut records = Vec::new();
        let problem = loop {
            if cursor.left() == 0 {
                let kind = ProblemKind::NotEnded(tag.number());
                break Some(Problem { offset: cursor.at, kind, tag: None, length: None });
            }
            match self.record(cursor, Some(tag.number()), depth) {
                Ok(Next::Record(record)) => records.push(record),
                Ok(Next::Broken(record)) => {
                    records.push(record);
                    break None;
                }
                Ok(Next::EndGroup(end)) => {
                    let span = Span { start, end: end.span.start };
                    let message = Message { span, records, problem: None };
                    return Ok(Next::Record(Record { tag, value: Value::Group { message, end: Some(end) } }));
                }
                Err(problem) => break Some(problem),
            }
        };
        // Where it ends is not known: the rest of the bytes is in it.
        cursor.at = cursor.end;
        let message = Message { span: Span { start, end: cursor.end }, records, problem };
        Ok(Next::Broken(Record { tag, value: Value::Group { message, end: None } }))
    }
}

/// A varint of 1 to 10 bytes, as long as it is written.
fn varint(input: &[u8], cursor: &mut Cursor, part: Part, tag: Option<Tag>) -> Result<Varint, Problem> {
    let start = cursor.at;
    let bytes = Span { start, end: cursor.end }.of(input);
    read_varint(bytes, start)
        .inspect(|varint| {
            cursor.at = varint.span.end;
        })
        .map_err(|endless| {
            let kind = if endless {
                ProblemKind::Endless(part)
            } else {
                ProblemKind::Truncated { part, left: bytes.len() }
            };
            Problem { offset: start, kind, tag, length: None }
        })
}

/// The varint with which `bytes` begin, which lie at `start`; or whether there is none because it does not end in time.
pub(super) fn read_varint(bytes: &[u8], start: usize) -> Result<Varint, bool> {
    let mut value = 0;
    for (index, byte) in bytes.iter().take(VARINT_LEN_MAX).enumerate() {
        let bits = u64::from(byte & 0x7f);
        // The tenth byte has the 64th bit, and no other.
        value |= bits << (7 * index);
        if byte & 0x80 == 0 {
            let span = Span { start, end: start + index + 1 };
            return Ok(Varint { value, span, overflows: index == VARINT_LEN_MAX - 1 && bits > 1 });
        }
    }
    Err(bytes.len() >= VARINT_LEN_MAX)
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

fn len(input: &[u8], cursor: &mut Cursor, tag: Tag) -> Result<Value, Problem> {
    let length = varint(input, cursor, Part::Length, Some(tag))?;
    let left = cursor.left();
    match usize::try_from(length.value) {
        Ok(len) if len <= left && !length.overflows => {
            let payload = Span { start: cursor.at, end: cursor.at + len };
            cursor.at = payload.end;
            Ok(Value::Len { length, payload, message: None })
        }
        _ => {
            let kind = ProblemKind::Short { length: length.value, left };
            Err(Problem { offset: length.span.start, kind, tag: Some(tag), length: Some(length) })
        }
    }
}
