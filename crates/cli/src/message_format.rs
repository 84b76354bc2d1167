//! How messages are written where people and pipes see them.

use clap::ValueEnum;

use crate::documents::Documents;
use crate::records::Records;

/// How messages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MessageFormat {
    /// ProtoJSON
    Json,
    /// Protobuf text format
    Text,
    /// Wire format
    Binary,
}

/// Begins texts of some editors. It is no part of any format.
pub(crate) const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Splits bytes into what messages are written in, as they come. A byte order mark before them is skipped.
#[derive(Debug)]
pub(crate) struct Texts {
    splitter: Splitter,
    /// The first bytes, while they may become a byte order mark.
    begin: Option<Vec<u8>>,
}

#[derive(Debug)]
enum Splitter {
    Json(Documents),
    Text(Records),
}

impl Texts {
    /// None for messages that are no text.
    pub(crate) fn of(format: MessageFormat) -> Option<Self> {
        let splitter = match format {
            MessageFormat::Json => Splitter::Json(Documents::default()),
            MessageFormat::Text => Splitter::Text(Records::default()),
            MessageFormat::Binary => return None,
        };
        Some(Self { splitter, begin: Some(Vec::new()) })
    }

    /// Takes bytes that have come.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let Some(begin) = &mut self.begin else { return self.split(bytes) };
        begin.extend_from_slice(bytes);
        let mark = BYTE_ORDER_MARK.as_bytes();
        if begin.len() >= mark.len() || !mark.starts_with(begin) {
            self.end_begin();
        }
    }

    fn end_begin(&mut self) {
        if let Some(begin) = self.begin.take() {
            self.split(begin.strip_prefix(BYTE_ORDER_MARK.as_bytes()).unwrap_or(&begin));
        }
    }

    fn split(&mut self, bytes: &[u8]) {
        match &mut self.splitter {
            Splitter::Json(documents) => documents.push(bytes),
            Splitter::Text(records) => records.push(bytes),
        }
    }

    /// The next message that is complete.
    pub(crate) fn next(&mut self) -> Option<Vec<u8>> {
        match &mut self.splitter {
            Splitter::Json(documents) => documents.next(),
            Splitter::Text(records) => records.next(),
        }
    }

    /// What is left when nothing more comes.
    pub(crate) fn rest(&mut self) -> Option<Vec<u8>> {
        self.end_begin();
        match &mut self.splitter {
            Splitter::Json(documents) => documents.rest(),
            Splitter::Text(records) => records.rest(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_is_skipped_wherever_it_is_divided() {
        for (format, text) in [(MessageFormat::Json, "{\"a\": 1}"), (MessageFormat::Text, "a: 1")] {
            for mark in ["", BYTE_ORDER_MARK] {
                let bytes = format!("{mark}{text}");
                for piece in 1..=bytes.len() {
                    let mut texts = Texts::of(format).unwrap();
                    bytes.as_bytes().chunks(piece).for_each(|bytes| texts.push(bytes));
                    let mut found: Vec<Vec<u8>> = std::iter::from_fn(|| texts.next()).collect();
                    found.extend(texts.rest());
                    assert_eq!(found, [text.as_bytes()], "{format:?} in pieces of {piece}");
                }
            }
        }
        // A part of one is text like any other.
        let mut texts = Texts::of(MessageFormat::Text).unwrap();
        texts.push(b"\xef\xbb");
        assert_eq!((texts.next(), texts.rest()), (None, Some(b"\xef\xbb".to_vec())));
    }
}
