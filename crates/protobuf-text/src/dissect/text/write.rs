//! Writes dissected bytes as text.

use std::fmt::Write as _;

use thalweg_protobuf::printable::is_unprintable;
use thalweg_protobuf::wire::{WireType, unzigzag};

use crate::dissect::framing::{COMPRESSED, Frame, Frames, Prefix};
use crate::dissect::known::{self, Meaning, Scalar};
use crate::dissect::problem::Problem;
use crate::dissect::readings::is_prose;
use crate::dissect::record::{Message, Record, Value};
use crate::dissect::span::Span;
use crate::dissect::varint::{Varint, read_varint, wire_type_name};

/// Maximum number of bytes per line.
const LINE_BYTES: usize = 32;

/// Writes a message without framing.
pub fn write(input: &[u8], message: &Message) -> String {
    let mut writer = Writer { input, text: String::new(), depth: 0 };
    writer.message(message);
    writer.text
}

/// Writes an input of any framing; `messages` holds the dissected frames.
pub fn write_frames(input: &[u8], frames: &Frames, messages: &[Option<Message>]) -> String {
    let mut writer = Writer { input, text: String::new(), depth: 0 };
    for (index, frame) in frames.frames.iter().enumerate() {
        writer.frame(frame, messages.get(index).and_then(Option::as_ref));
    }
    if let Some(problem) = &frames.problem {
        writer.comment(&format!("at offset {}: {problem}", frames.rest.start));
    }
    writer.bytes(frames.rest);
    writer.text
}

struct Writer<'a> {
    input: &'a [u8],
    text: String,
    depth: usize,
}

impl Writer<'_> {
    fn frame(&mut self, frame: &Frame, message: Option<&Message>) {
        let open = match frame.prefix {
            Prefix::None => None,
            Prefix::Grpc { flags, .. } if frame.truncated_from.is_none() => Some(format!("grpc:{flags} {{")),
            Prefix::Delimited(length) if frame.truncated_from.is_none() => {
                Some(format!("{}{{", long_form(length)))
            }
            _ => {
                let (all, there) = (frame.truncated_from.unwrap_or_default(), frame.payload.len());
                self.comment(&format!("truncated: expected {all} bytes, found {there}"));
                self.bytes(frame.prefix_span);
                None
            }
        };
        let is_framed = open.is_some();
        if let Some(open) = open {
            self.line(&open);
            self.depth += 1;
        }
        if let Some(message) = message {
            self.message(message);
        } else {
            if matches!(frame.prefix, Prefix::Grpc { flags, .. } if flags & COMPRESSED != 0) {
                self.comment("compressed");
            }
            self.bytes(frame.payload);
        }
        if is_framed {
            self.depth -= 1;
            self.line("}");
        }
    }

    fn message(&mut self, message: &Message) {
        for record in &message.records {
            self.record(record);
        }
        if let Some(Problem { offset, kind, .. }) = &message.problem {
            self.comment(&format!("at offset {offset}: {kind}"));
        }
        self.bytes(message.rest());
    }

    fn record(&mut self, record: &Record) {
        let tag = format!("{}{}:", long_form(record.tag), record.tag.number());
        let comment = comment(record, self.input);
        let meaning = record.meaning(self.input);
        match &record.value {
            Value::Varint(varint) if varint.overflows => {
                let hex = hex(varint.span.of(self.input));
                self.line(&format!("{tag}VARINT `{hex}`{comment}"));
            }
            Value::Varint(varint) => {
                let (long_form, number) =
                    (long_form(*varint), varint_literal(varint.value, meaning.as_ref()));
                self.line(&format!("{tag} {long_form}{number}{comment}"));
            }
            Value::I64 { bits, .. } => {
                self.line(&format!("{tag} {}{comment}", literal_64(*bits, meaning.as_ref())));
            }
            Value::I32 { bits, .. } => {
                self.line(&format!("{tag} {}{comment}", literal_32(*bits, meaning.as_ref())));
            }
            Value::Len { length, payload, .. } => {
                let open = format!("{tag} {}{{", long_form(*length));
                match (record.likely_message(self.input), meaning) {
                    (Some(message), _) => self.block(&open, message, &comment),
                    (None, Some(Meaning::Packed(elements))) => {
                        self.packed(&open, record, *payload, &elements);
                    }
                    (None, meaning) => {
                        let is_string = matches!(meaning, Some(Meaning::Scalar(Scalar::String(_))));
                        self.payload(&open, *payload, is_string, &comment);
                    }
                }
            }
            Value::Group { message, end } => self.group(record, message, *end, &comment),
        }
    }

    /// Writes packed values as numbers where these assemble to the same bytes.
    fn packed(&mut self, open: &str, record: &Record, payload: Span, elements: &[(Span, Scalar)]) {
        let wire_type = record.known().map_or(WireType::Varint, |field| field.kind().wire_type());
        let mut literals = Vec::with_capacity(elements.len());
        let mut end = payload.start;
        for (span, scalar) in elements {
            let Some(literal) = element_literal(span.of(self.input), scalar, wire_type) else { break };
            literals.push(literal);
            end = span.end;
        }
        let rest = hex((Span { start: end, end: payload.end }).of(self.input));
        if !rest.is_empty() {
            literals.push(format!("`{rest}`"));
        }
        self.line(&format!("{open}{}}}{}", literals.join(" "), comment(record, self.input)));
    }

    fn group(&mut self, record: &Record, message: &Message, end: Option<Varint>, comment: &str) {
        let (long, number) = (long_form(record.tag), record.tag.number());
        if end.is_some_and(|end| end.excess_bytes() == 0) {
            return self.block(&format!("{long}{number}: !{{"), message, comment);
        }
        self.line(&format!("{long}{number}:{}{comment}", wire_type_name(WireType::StartGroup)));
        self.depth += 1;
        self.message(message);
        self.depth -= 1;
        if let Some(end) = end {
            self.line(&format!("{}{number}:{}", long_form(end), wire_type_name(WireType::EndGroup)));
        }
    }

    fn block(&mut self, open: &str, message: &Message, comment: &str) {
        if message.span.is_empty() {
            return self.line(&format!("{open}}}{comment}"));
        }
        self.line(&format!("{open}{comment}"));
        self.depth += 1;
        self.message(message);
        self.depth -= 1;
        self.line("}");
    }

    /// Writes the payload of a record that is not a message.
    fn payload(&mut self, open: &str, payload: Span, is_string: bool, comment: &str) {
        let bytes = payload.of(self.input);
        match std::str::from_utf8(bytes) {
            _ if bytes.is_empty() => self.line(&format!("{open}}}{comment}")),
            Ok(text) if is_string || is_prose(text) => {
                self.line(&format!("{open}{}}}{comment}", quoted(text)));
            }
            _ if bytes.len() <= LINE_BYTES => self.line(&format!("{open}`{}`}}{comment}", hex(bytes))),
            _ => {
                self.line(&format!("{open}{comment}"));
                self.depth += 1;
                self.bytes(payload);
                self.depth -= 1;
                self.line("}");
            }
        }
    }

    /// Writes bytes as hex.
    fn bytes(&mut self, span: Span) {
        for line in span.of(self.input).chunks(LINE_BYTES) {
            self.line(&format!("`{}`", hex(line)));
        }
    }

    fn comment(&mut self, comment: &str) {
        self.line(&format!("# {comment}"));
    }

    fn line(&mut self, line: &str) {
        // Writing to a `String` cannot fail.
        let _ = writeln!(self.text, "{:indent$}{line}", "", indent = 2 * self.depth);
    }
}

/// Returns the prefix for a varint that is longer than necessary.
fn long_form(varint: Varint) -> String {
    match varint.excess_bytes() {
        0 => String::new(),
        excess => format!("long-form:{excess} "),
    }
}

/// Returns the schema's information about a record as a comment, after two spaces.
fn comment(record: &Record, input: &[u8]) -> String {
    let Some(field) = record.field else { return String::new() };
    let name = known::name(field);
    match record.meaning(input) {
        None => format!("  # not {name}: written otherwise"),
        Some(Meaning::Scalar(Scalar::Enum(_, Some(value)))) => format!("  # {name}: {value}"),
        Some(_) => format!("  # {name}"),
    }
}

fn varint_literal(value: u64, meaning: Option<&Meaning>) -> String {
    match meaning {
        Some(Meaning::Scalar(scalar)) => scalar_varint(value, scalar),
        // A value with all upper bits set was probably a negative number.
        _ => value.cast_signed().to_string(),
    }
}

/// Formats the varint `value`, which means `scalar`, by the field's type.
fn scalar_varint(value: u64, scalar: &Scalar) -> String {
    match scalar {
        Scalar::Zigzag(..) => format!("{}z", unzigzag(value)),
        Scalar::Bool(truth) if value <= 1 => truth.to_string(),
        Scalar::Uint(_) => value.to_string(),
        _ => value.cast_signed().to_string(),
    }
}

fn literal_64(bits: u64, meaning: Option<&Meaning>) -> String {
    let float = || float_literal(&format!("{:?}", f64::from_bits(bits)));
    match meaning {
        Some(Meaning::Scalar(Scalar::Int(number))) => format!("{number}i64"),
        Some(Meaning::Scalar(Scalar::Uint(number))) => format!("{number}i64"),
        _ => float().unwrap_or_else(|| format!("{bits}i64")),
    }
}

fn literal_32(bits: u32, meaning: Option<&Meaning>) -> String {
    let float = || float_literal(&format!("{:?}", f32::from_bits(bits))).map(|float| float + "i32");
    match meaning {
        Some(Meaning::Scalar(Scalar::Int(number))) => format!("{number}i32"),
        Some(Meaning::Scalar(Scalar::Uint(number))) => format!("{number}i32"),
        _ => float().unwrap_or_else(|| format!("{bits}i32")),
    }
}

/// Formats a packed value as a number. Returns `None` if no number assembles to these bytes.
fn element_literal(bytes: &[u8], scalar: &Scalar, wire_type: WireType) -> Option<String> {
    let meaning = Meaning::Scalar(scalar.clone());
    match wire_type {
        WireType::Fixed64 => Some(literal_64(u64::from_le_bytes(*bytes.first_chunk()?), Some(&meaning))),
        WireType::Fixed32 => Some(literal_32(u32::from_le_bytes(*bytes.first_chunk()?), Some(&meaning))),
        _ => {
            let varint = read_varint(bytes, 0).ok().filter(|varint| !varint.overflows)?;
            Some(format!("{}{}", long_form(varint), scalar_varint(varint.value, scalar)))
        }
    }
}

/// Returns Rust's form of a float if it is short, has a point, and is not zero, which is more likely an integer.
fn float_literal(debug: &str) -> Option<String> {
    const LITERAL_LEN_MAX: usize = 20;
    let digits = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-');
    let is_literal =
        debug.len() <= LITERAL_LEN_MAX && debug.chars().all(digits) && !matches!(debug, "0.0" | "-0.0");
    is_literal.then(|| debug.to_owned())
}

fn hex(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// Returns a string in quotes. Invisible characters and those that change text direction are written in hex.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            _ if is_unseen(c) => {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    let _ = write!(quoted, "\\x{byte:02x}");
                }
            }
            _ => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Whether a character is unprintable or invisible.
fn is_unseen(c: char) -> bool {
    is_unprintable(c) || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}
