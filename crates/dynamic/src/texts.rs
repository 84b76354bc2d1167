//! Messages in text.

mod documents;
mod records;

use std::str::FromStr;

use documents::Documents;
use records::Records;

pub use documents::elements;
pub use records::SEPARATOR;

/// Format of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageFormat {
    /// ProtoJSON
    Json,
    /// Protobuf text format
    Text,
    /// Wire format
    Binary,
}

impl FromStr for MessageFormat {
    type Err = String;

    /// Parses `json`, `text` or `binary`.
    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "json" => Ok(Self::Json),
            "text" => Ok(Self::Text),
            "binary" => Ok(Self::Binary),
            _ => Err(format!("unknown format `{name}`; use json, text or binary")),
        }
    }
}

/// Byte order mark that some editors write. Part of no format.
pub const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Splits a byte stream into texts of messages. Skips a leading byte order mark.
#[derive(Debug)]
pub struct Texts {
    splitter: Splitter,
    /// First bytes, while they may be a byte order mark.
    start: Option<Vec<u8>>,
}

#[derive(Debug)]
enum Splitter {
    Json(Documents),
    Text(Records),
}

impl Texts {
    /// Creates a splitter for this format. Returns `None` for binary.
    pub fn of(format: MessageFormat) -> Option<Self> {
        let splitter = match format {
            MessageFormat::Json => Splitter::Json(Documents::default()),
            MessageFormat::Text => Splitter::Text(Records::default()),
            MessageFormat::Binary => return None,
        };
        Some(Self { splitter, start: Some(Vec::new()) })
    }

    /// Adds input.
    pub fn push(&mut self, bytes: &[u8]) {
        let Some(start) = &mut self.start else { return self.split(bytes) };
        start.extend_from_slice(bytes);
        let mark = BYTE_ORDER_MARK.as_bytes();
        if start.len() >= mark.len() || !mark.starts_with(start) {
            self.end_start();
        }
    }

    fn end_start(&mut self) {
        if let Some(start) = self.start.take() {
            self.split(start.strip_prefix(BYTE_ORDER_MARK.as_bytes()).unwrap_or(&start));
        }
    }

    fn split(&mut self, bytes: &[u8]) {
        match &mut self.splitter {
            Splitter::Json(documents) => documents.push(bytes),
            Splitter::Text(records) => records.push(bytes),
        }
    }

    /// Returns the remaining text at the end of the input.
    pub fn rest(&mut self) -> Option<Vec<u8>> {
        self.end_start();
        match &mut self.splitter {
            Splitter::Json(documents) => documents.rest(),
            Splitter::Text(records) => records.rest(),
        }
    }
}

/// Returns complete texts. More may follow after another [`push`](Texts::push).
impl Iterator for Texts {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        match &mut self.splitter {
            Splitter::Json(documents) => documents.next(),
            Splitter::Text(records) => records.next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_order_mark_is_skipped_across_chunks() {
        for (format, text) in [(MessageFormat::Json, "{\"a\": 1}"), (MessageFormat::Text, "a: 1")] {
            for mark in ["", BYTE_ORDER_MARK] {
                let bytes = format!("{mark}{text}");
                for piece in 1..=bytes.len() {
                    let mut texts = Texts::of(format).unwrap();
                    bytes.as_bytes().chunks(piece).for_each(|bytes| texts.push(bytes));
                    let mut found: Vec<Vec<u8>> = texts.by_ref().collect();
                    found.extend(texts.rest());
                    assert_eq!(found, [text.as_bytes()], "{format:?} in pieces of {piece}");
                }
            }
        }
        // An incomplete mark is ordinary text.
        let mut texts = Texts::of(MessageFormat::Text).unwrap();
        texts.push(b"\xef\xbb");
        assert_eq!((texts.next(), texts.rest()), (None, Some(b"\xef\xbb".to_vec())));
    }
}
