//! How messages are written where people and pipes see them.

use clap::ValueEnum;

use crate::documents::Documents;
use crate::records::Records;

/// How messages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MessageFormat {
    /// ProtoJSON
    Json,
    /// Protobuf's text format
    Text,
    /// As on the wire
    Binary,
}

/// Splits bytes into what messages are written in, as they come.
#[derive(Debug)]
pub(crate) enum Texts {
    Json(Documents),
    Text(Records),
}

impl Texts {
    /// None for messages that are no text.
    pub(crate) fn of(format: MessageFormat) -> Option<Self> {
        match format {
            MessageFormat::Json => Some(Self::Json(Documents::default())),
            MessageFormat::Text => Some(Self::Text(Records::default())),
            MessageFormat::Binary => None,
        }
    }

    /// Takes bytes that have come.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        match self {
            Self::Json(documents) => documents.push(bytes),
            Self::Text(records) => records.push(bytes),
        }
    }

    /// The next message that is complete.
    pub(crate) fn next(&mut self) -> Option<Vec<u8>> {
        match self {
            Self::Json(documents) => documents.next(),
            Self::Text(records) => records.next(),
        }
    }

    /// What is left when nothing more comes.
    pub(crate) fn rest(&mut self) -> Option<Vec<u8>> {
        match self {
            Self::Json(documents) => documents.rest(),
            Self::Text(records) => records.rest(),
        }
    }
}
