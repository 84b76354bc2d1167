//! Tree output: bytes on the left, their meaning on the right.

use std::io::{self, Write};

use thalweg_protobuf::{Field, MessageType};
use thalweg_protobuf_text::dissect::framing::{Framing, Prefix};
use thalweg_protobuf_text::dissect::known::{self, Meaning, Remark, Scalar};
use thalweg_protobuf_text::dissect::readings::Reading;
use thalweg_protobuf_text::dissect::{Message, Problem, Record, Span, Tag, Value, Varint, wire_type_name};

use crate::compressed::{Content, DecodedFrame};
use crate::inspection::Inspection;
use crate::paint::{Paint, Role};
use layout::{Layout, Piece};

mod layout;

/// Maximum list elements shown. Fewer for a value that is unlikely to be a list.
const ELEMENTS_SHOWN: usize = 6;
const UNLIKELY_ELEMENTS_SHOWN: usize = 3;
/// Maximum characters of a string shown. Fewer for a value that is unlikely to be a string.
const CHARS_SHOWN: usize = 240;
const UNLIKELY_CHARS_SHOWN: usize = 8;
/// Maximum names of absent fields shown.
const ABSENT_SHOWN: usize = 8;
/// Maximum records of text that is also shown as a message.
const UNLIKELY_RECORDS_SHOWN: usize = 3;
/// Maximum length of a varint shown as a sum.
const SUM_BYTES_MAX: usize = 3;

/// Writes all frames of an input.
pub(crate) fn write(
    output: &mut dyn Write,
    inspection: &Inspection,
    paint: Paint,
    width: usize,
    is_full: bool,
) -> io::Result<()> {
    let input = &inspection.input.bytes;
    let mut tree = Tree { layout: Layout::new(output, paint, width, input.len(), is_full), input, is_full };
    tree.heading(inspection)?;
    for (index, decoded) in inspection.frames.iter().enumerate() {
        tree.frame(index, inspection.frames.len(), decoded)?;
    }
    if let Some(problem) = &inspection.rest_problem {
        let text = format!("at offset {}: {problem}", inspection.rest.start);
        tree.problem_row(inspection.rest, 0, &text)?;
    }
    Ok(())
}

struct Tree<'a, 'w> {
    layout: Layout<'w>,
    /// Bytes that spans refer to.
    input: &'a [u8],
    is_full: bool,
}

fn plain(text: impl Into<String>) -> Piece {
    (Role::Plain, text.into())
}

fn aside(text: impl Into<String>) -> Piece {
    (Role::Aside, text.into())
}

impl Tree<'_, '_> {
    fn heading(&mut self, inspection: &Inspection) -> io::Result<()> {
        let (name, len) = (&inspection.input.name, counted(self.input.len(), "byte"));
        let read_as = match inspection.framing {
            Framing::Protobuf => "one message without framing",
            Framing::Grpc => "messages with gRPC framing",
            Framing::Delimited => "messages with length prefixes",
        };
        let why = match &inspection.detection {
            Some(detection) => format!(", because {}", detection.reason),
            None => ", as --framing says".to_owned(),
        };
        self.layout.line(&[plain(format!("{name}: {len}, read as {read_as}{why}"))])?;
        let others = inspection.detection.as_ref().map(|detection| &detection.others[..]).unwrap_or_default();
        for other in others {
            self.layout.line(&[plain(format!("--framing {} would match as well", other.name()))])?;
        }
        if let Some(message) = inspection.message_type {
            let each = if inspection.framing == Framing::Protobuf { "the message" } else { "each message" };
            self.layout.line(&[plain(format!("{each} is a {}", message.full_name()))])?;
        }
        self.layout.line(&[])
    }

    fn frame(&mut self, index: usize, of: usize, decoded: &DecodedFrame) -> io::Result<()> {
        let frame = &decoded.frame;
        if frame.prefix != Prefix::None {
            self.layout.line(&[(Role::Name, format!("message {} of {of}", index + 1))])?;
        }
        let Span { start, end } = frame.prefix_span;
        match frame.prefix {
            Prefix::None => {}
            Prefix::Grpc { flags, length } => {
                let meaning = match flags {
                    0 => "not compressed".to_owned(),
                    1 => "compressed".to_owned(),
                    _ => format!("0b{flags:08b}"),
                };
                let flags_span = Span { start, end: start + 1 };
                self.bytes(flags_span, Role::Tag, 0, &[plain(format!("flags {flags}: {meaning}"))])?;
                let length_span = Span { start: start + 1, end };
                self.bytes(length_span, Role::Length, 0, &[plain(format!("length {length}"))])?;
            }
            Prefix::Delimited(length) => {
                self.bytes(length.span, Role::Length, 0, &length_pieces(&length, self.input))?;
            }
        }
        if let Some(problem) = decoded.truncation() {
            self.layout.note(0, &[(Role::Problem, problem)])?;
        }
        match &decoded.content {
            Content::Message(message) => self.message(message, 0)?,
            Content::Compressed { encoding, bytes, message } => {
                let text = format!(
                    "{encoding}: {} decompressed from {}; offsets below refer to them",
                    counted(bytes.len(), "byte"),
                    frame.payload.len()
                );
                self.bytes(frame.payload, Role::Payload, 0, &[plain(text)])?;
                let mut inner =
                    Tree { layout: self.layout.for_input(bytes.len()), input: bytes, is_full: self.is_full };
                inner.message(message, 1)?;
            }
            Content::Text { what, text } => {
                self.bytes(
                    frame.payload,
                    Role::Payload,
                    0,
                    &[plain(format!("{what}: {}", self.quoted(text, CHARS_SHOWN)))],
                )?;
            }
            Content::NotDecompressed(why) => {
                self.bytes(frame.payload, Role::Payload, 0, &[(Role::Problem, why.clone())])?;
            }
        }
        if index + 1 < of { self.layout.line(&[]) } else { Ok(()) }
    }

    fn message(&mut self, message: &Message, depth: usize) -> io::Result<()> {
        let remarks = message.remarks();
        for (record, remarks) in message.records.iter().zip(&remarks) {
            self.record(record, remarks, depth)?;
        }
        if let Some(problem) = &message.problem {
            self.problem(problem, message.rest(), depth)?;
        }
        self.absent(message, depth)
    }

    fn record(&mut self, record: &Record, remarks: &[Remark], depth: usize) -> io::Result<()> {
        let mut pieces = match record.field {
            Some(field) => vec![(Role::Name, known::declaration(field)), plain("  ")],
            None => vec![(Role::Name, format!("field {}", record.tag.number())), plain("  ")],
        };
        pieces.extend(tag_pieces(&record.tag, self.input));
        self.bytes(record.tag.span, Role::Tag, depth, &pieces)?;
        match &record.value {
            Value::Varint(varint) => {
                let mut pieces = sum(varint, self.input);
                pieces.extend(self.value(record));
                pieces.extend(excess(varint));
                self.bytes(varint.span, Role::Payload, depth + 1, &pieces)?;
            }
            Value::I64 { span, .. } | Value::I32 { span, .. } => {
                self.bytes(*span, Role::Payload, depth + 1, &self.value(record))?;
            }
            Value::Len { length, payload, .. } => {
                self.bytes(length.span, Role::Length, depth + 1, &length_pieces(length, self.input))?;
                self.payload(record, *payload, depth + 1)?;
            }
            Value::Group { message, end } => {
                self.message(message, depth + 1)?;
                if let Some(end) = end {
                    self.end_of_group(end, depth)?;
                }
            }
        }
        if let Some(problem) = &record.problem {
            let text = format!("at offset {}: {problem}", problem.offset);
            self.layout.note(depth + 1, &[(Role::Problem, text)])?;
        }
        for remark in remarks {
            self.layout.note(depth + 1, &[(Role::Remark, remark.to_string())])?;
        }
        Ok(())
    }

    fn payload(&mut self, record: &Record, payload: Span, depth: usize) -> io::Result<()> {
        let pieces = self.value(record);
        if let Some(Meaning::Packed(elements)) = record.meaning(self.input) {
            return self.packed(payload, &elements, depth);
        }
        match (record.likely_message(self.input), record.value.message()) {
            (Some(message), _) => {
                self.layout.note(depth, &pieces)?;
                self.message(message, depth + 1)
            }
            (None, Some(message)) => {
                self.bytes(payload, Role::Payload, depth, &pieces)?;
                if !self.is_full && message.records.len() > UNLIKELY_RECORDS_SHOWN {
                    return Ok(());
                }
                self.layout.note(depth, &[aside("as a message:")])?;
                self.message(message, depth + 1)
            }
            (None, None) => self.bytes(payload, Role::Payload, depth, &pieces),
        }
    }

    /// Writes packed values. Few are written one per row.
    fn packed(&mut self, payload: Span, elements: &[(Span, Scalar)], depth: usize) -> io::Result<()> {
        if self.is_full || elements.len() <= ELEMENTS_SHOWN {
            for (span, scalar) in elements {
                self.bytes(*span, Role::Payload, depth, &self.scalar(scalar))?;
            }
            let end = elements.last().map_or(payload.start, |(span, _)| span.end);
            return match payload.end - end {
                0 => Ok(()),
                _ => self.bytes(Span { start: end, ..payload }, Role::Problem, depth, &[]),
            };
        }
        let shown: Vec<String> =
            elements.iter().take(ELEMENTS_SHOWN).map(|(_, scalar)| scalar.to_string()).collect();
        let more = elements.len() - shown.len();
        self.bytes(
            payload,
            Role::Payload,
            depth,
            &[(Role::Payload, format!("[{}, {more} more]", shown.join(", ")))],
        )
    }

    /// Writes absent fields with their defaults.
    fn absent(&mut self, message: &Message, depth: usize) -> io::Result<()> {
        let absent = message.absent();
        let (required, others): (Vec<_>, Vec<_>) = absent.into_iter().partition(|field| field.is_required());
        let names = |fields: &[Field]| {
            let shown = if self.is_full { fields.len() } else { ABSENT_SHOWN };
            let mut names: Vec<String> =
                fields.iter().take(shown).map(|field| absent_field(*field)).collect();
            names.extend(fields.len().checked_sub(shown + 1).map(|more| format!("{} more", more + 1)));
            names.join(", ")
        };
        if !required.is_empty() {
            let text = format!("required, but missing: {}", names(&required));
            self.layout.note(depth, &[(Role::Remark, text)])?;
        }
        if !others.is_empty() && !message.message_type.is_some_and(MessageType::is_map_entry) {
            self.layout.note(depth, &[aside(format!("missing: {}", names(&others)))])?;
        }
        Ok(())
    }

    fn tag(&mut self, tag: &Tag, depth: usize) -> io::Result<()> {
        let mut pieces = vec![(Role::Name, format!("field {}", tag.number())), plain("  ")];
        pieces.extend(tag_pieces(tag, self.input));
        self.bytes(tag.span, Role::Tag, depth, &pieces)
    }

    fn end_of_group(&mut self, end: &Tag, depth: usize) -> io::Result<()> {
        let mut pieces = vec![(Role::Name, format!("end of group {}", end.number())), plain("  ")];
        pieces.extend(tag_pieces(end, self.input));
        self.bytes(end.span, Role::Tag, depth, &pieces)
    }

    /// Returns the value, or its possible readings.
    fn value(&self, record: &Record) -> Vec<Piece> {
        match record.meaning(self.input) {
            Some(Meaning::Scalar(scalar)) => self.scalar(&scalar),
            Some(Meaning::Message(message)) => {
                vec![plain("message "), (Role::Name, message.full_name().to_owned())]
            }
            Some(Meaning::Packed(_)) => Vec::new(),
            None => self.readings(&record.value),
        }
    }

    fn scalar(&self, scalar: &Scalar) -> Vec<Piece> {
        match scalar {
            Scalar::String(text) => vec![(Role::Payload, self.quoted(text, CHARS_SHOWN))],
            Scalar::Bytes(bytes) => vec![plain(counted(bytes.len(), "byte"))],
            Scalar::Zigzag(number, varint) => {
                vec![(Role::Payload, number.to_string()), aside(format!(" (zigzag of {varint})"))]
            }
            Scalar::Enum(number, Some(name)) => {
                vec![(Role::Payload, (*name).to_owned()), plain(format!(" ({number})"))]
            }
            _ => vec![(Role::Payload, scalar.to_string())],
        }
    }

    /// Returns all possible readings of a value.
    fn readings(&self, value: &Value) -> Vec<Piece> {
        let readings = value.readings(self.input);
        let mut pieces: Vec<Piece> = Vec::new();
        for (index, reading) in readings.iter().enumerate() {
            let is_likely = index == 0;
            let (text, role) = match reading {
                Reading::String(text) => {
                    let shown = if is_likely { CHARS_SHOWN } else { UNLIKELY_CHARS_SHOWN };
                    (format!("{} (string)", self.quoted(text, shown)), Role::Payload)
                }
                // The hex is shown next to it.
                Reading::Bytes(_) => ("bytes".to_owned(), Role::Plain),
                _ if self.is_full => (format!("{reading:#}"), Role::Plain),
                _ => {
                    let shown = if is_likely { ELEMENTS_SHOWN } else { UNLIKELY_ELEMENTS_SHOWN };
                    (format!("{reading:.shown$}"), Role::Plain)
                }
            };
            if !pieces.is_empty() {
                pieces.push(aside(" or "));
            }
            pieces.push((role, text));
        }
        pieces
    }

    fn problem(&mut self, problem: &Problem, rest: Span, depth: usize) -> io::Result<()> {
        let mut start = rest.start;
        if let Some(tag) = &problem.tag {
            self.tag(tag, depth)?;
            start = tag.span.end;
        }
        if let Some(length) = &problem.length {
            self.bytes(length.span, Role::Length, depth + 1, &length_pieces(length, self.input))?;
            start = length.span.end;
        }
        let text = format!("at offset {}: {problem}", problem.offset);
        self.problem_row(Span { start, end: rest.end }, depth, &text)
    }

    fn problem_row(&mut self, span: Span, depth: usize, text: &str) -> io::Result<()> {
        self.bytes(span, Role::Problem, depth, &[(Role::Problem, text.to_owned())])
    }

    fn bytes(&mut self, span: Span, role: Role, depth: usize, pieces: &[Piece]) -> io::Result<()> {
        self.layout.row(self.input, span, role, depth, pieces)
    }

    /// Quotes and escapes a string. A long one is shortened.
    fn quoted(&self, text: &str, shown: usize) -> String {
        let end = if self.is_full { None } else { text.char_indices().nth(shown) };
        match end {
            Some((end, _)) => format!("{:?}…", &text[..end]),
            None => format!("{text:?}"),
        }
    }
}

/// Explains a tag: `tag 0x72 + (0x03 << 7) = 498 = (62 << 3) | 2, LEN`.
fn tag_pieces(tag: &Tag, input: &[u8]) -> Vec<Piece> {
    let wire_type = tag.wire_type().map_or("?", wire_type_name);
    let mut pieces = vec![aside(format!("tag{}", layout::UNBROKEN_SPACE))];
    pieces.extend(sum(tag, input));
    let formula = format!("{} = ({} << 3) | {}, {wire_type}", tag.value, tag.number(), tag.value & 7);
    // Not broken if it fits on a line.
    pieces.push(aside(formula.replace(' ', layout::UNBROKEN_SPACE)));
    pieces.extend(excess(tag));
    pieces
}

fn length_pieces(length: &Varint, input: &[u8]) -> Vec<Piece> {
    let mut pieces = vec![plain("length ")];
    pieces.extend(sum(length, input));
    pieces.push(plain(length.value.to_string()));
    pieces.extend(excess(length));
    pieces
}

/// Returns the bytes of a varint with their weights, if there are several but not too many.
fn sum(varint: &Varint, input: &[u8]) -> Vec<Piece> {
    let bytes = varint.span.of(input);
    if !(2..=SUM_BYTES_MAX).contains(&bytes.len()) {
        return Vec::new();
    }
    let terms = bytes.iter().enumerate().map(|(index, byte)| match (index, byte & 0x7f) {
        (0, bits) => format!("0x{bits:02X}"),
        (_, bits) => format!("(0x{bits:02X} << {})", 7 * index),
    });
    let sum = terms.collect::<Vec<_>>().join(" + ");
    vec![aside(format!("{sum} = "))]
}

fn excess(varint: &Varint) -> Option<Piece> {
    let text = match varint.excess_bytes() {
        _ if varint.overflows => ", bits beyond 64 are dropped".to_owned(),
        0 => return None,
        excess => format!(", {} longer than needed", counted(excess, "byte")),
    };
    Some((Role::Problem, text))
}

/// Returns the name of an absent field, with its default if the schema defines one.
fn absent_field(field: Field) -> String {
    match known::declared_default(field) {
        Some(default) => format!("{} ({default})", known::name(field)),
        None => known::name(field),
    }
}

/// Formats `1 byte`, `2 bytes`.
pub(crate) fn counted(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
