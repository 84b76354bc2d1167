//! From bytes to text.

use std::fmt::Write as _;

use crate::dissect::framing::{COMPRESSED, Frame, Frames, Prefix};
use crate::dissect::{Message, Problem, Record, Span, Value, Varint, WireType};

/// Bytes that stand on one line.
const LINE_BYTES: usize = 32;

/// A message, without framing.
pub fn write(input: &[u8], message: &Message) -> String {
    let mut writer = Writer { input, text: String::new(), depth: 0 };
    writer.message(message);
    writer.text
}

/// An input of any framing: `messages` has what could be taken apart of each frame.
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
            Prefix::Grpc { flags, .. } if frame.missing_of.is_none() => Some(format!("grpc:{flags} {{")),
            Prefix::Delimited(length) if frame.missing_of.is_none() => {
                Some(format!("{}{{", long_form(length)))
            }
            _ => {
                let (all, there) = (frame.missing_of.unwrap_or_default(), frame.payload.len());
                self.comment(&format!("what follows should have {all} bytes, and has {there}"));
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
        match &record.value {
            Value::Varint(varint) if varint.overflows => {
                let hex = hex(varint.span.of(self.input));
                self.line(&format!("{tag}VARINT `{hex}`"));
            }
            Value::Varint(varint) => {
                // What has all upper bits set was a negative number, in all likelihood.
                let (long_form, number) = (long_form(*varint), varint.value.cast_signed());
                self.line(&format!("{tag} {long_form}{number}"));
            }
            Value::I64 { bits, .. } => {
                let literal = float_literal(format!("{:?}", f64::from_bits(*bits)));
                self.line(&format!("{tag} {}", literal.unwrap_or_else(|| format!("{bits}i64"))));
            }
            Value::I32 { bits, .. } => {
                let literal =
                    float_literal(format!("{:?}", f32::from_bits(*bits))).map(|float| float + "i32");
                self.line(&format!("{tag} {}", literal.unwrap_or_else(|| format!("{bits}i32"))));
            }
            Value::Len { length, payload, .. } => {
                let open = format!("{tag} {}{{", long_form(*length));
                match record.value.likely_message(self.input) {
                    Some(message) => self.block(&open, message),
                    None => self.payload(&open, *payload),
                }
            }
            Value::Group { message, end } => self.group(record, message, *end),
        }
    }

    fn group(&mut self, record: &Record, message: &Message, end: Option<Varint>) {
        let (long, number) = (long_form(record.tag), record.tag.number());
        if end.is_some_and(|end| end.excess_bytes() == 0) {
            return self.block(&format!("{long}{number}: !{{"), message);
        }
        self.line(&format!("{long}{number}:{}", WireType::StartGroup.name()));
        self.depth += 1;
        self.message(message);
        self.depth -= 1;
        if let Some(end) = end {
            self.line(&format!("{}{number}:{}", long_form(end), WireType::EndGroup.name()));
        }
    }

    fn block(&mut self, open: &str, message: &Message) {
        if message.span.is_empty() {
            return self.line(&format!("{open}}}"));
        }
        self.line(open);
        self.depth += 1;
        self.message(message);
        self.depth -= 1;
        self.line("}");
    }

    /// What is in a payload that is no message.
    fn payload(&mut self, open: &str, payload: Span) {
        let bytes = payload.of(self.input);
        match std::str::from_utf8(bytes) {
            _ if bytes.is_empty() => self.line(&format!("{open}}}")),
            Ok(text) if super::super::readings::is_prose(text) => {
                self.line(&format!("{open}{}}}", quoted(text)));
            }
            _ if bytes.len() <= LINE_BYTES => self.line(&format!("{open}`{}`}}", hex(bytes))),
            _ => {
                self.line(open);
                self.depth += 1;
                self.bytes(payload);
                self.depth -= 1;
                self.line("}");
            }
        }
    }

    /// Bytes as they are.
    fn bytes(&mut self, span: Span) {
        for line in span.of(self.input).chunks(LINE_BYTES) {
            self.line(&format!("`{}`", hex(line)));
        }
    }

    fn comment(&mut self, comment: &str) {
        self.line(&format!("# {comment}"));
    }

    fn line(&mut self, line: &str) {
        // Writing to a String does not fail.
        let _ = writeln!(self.text, "{:indent$}{line}", "", indent = 2 * self.depth);
    }
}

/// What stands before a varint that is longer than it need be.
fn long_form(varint: Varint) -> String {
    match varint.excess_bytes() {
        0 => String::new(),
        excess => format!("long-form:{excess} "),
    }
}

/// A number as Rust writes it, if that is short, has a point, and is not zero, which is rather a whole number.
fn float_literal(debug: String) -> Option<String> {
    const LITERAL_LEN_MAX: usize = 20;
    let digits = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-');
    (debug.len() <= LITERAL_LEN_MAX && debug.chars().all(digits) && !matches!(debug.as_str(), "0.0" | "-0.0"))
        .then_some(debug)
}

fn hex(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// A string in quotes. What could not be seen, or would turn the rest of the line around, is written in hex.
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

/// Control characters, and those that have no shape of their own or say in which direction others run.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}
