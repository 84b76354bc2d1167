//! A measured line and its names.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Uncounted conversions before each window.
pub const WARM_UPS: u64 = 50;

/// Operation on a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Operation {
    /// Encodes an object as bytes.
    Encode,
    /// Decodes bytes to an object, which is dropped.
    Decode,
    /// Encodes an object and decodes the bytes to another object, which is dropped.
    RoundTrip,
}

impl Operation {
    /// All operations, in the order of measuring.
    pub(crate) const ALL: [Self; 3] = [Self::Encode, Self::Decode, Self::RoundTrip];

    /// Returns whether the operation decodes.
    pub(crate) fn decodes(self) -> bool {
        self != Self::Encode
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Encode => "encode",
            Self::Decode => "decode",
            Self::RoundTrip => "round trip",
        })
    }
}

/// Format of a codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Format {
    /// Protobuf's binary format.
    Protobuf,
    /// JSON in the natural form of the program's own types.
    Json,
    /// Protobuf's JSON mapping: 64-bit integers are strings, names are in camel case, defaults are omitted.
    ProtoJson,
    /// MessagePack, with structs as maps of field names.
    MessagePack,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Protobuf => "Protobuf",
            Self::Json => "JSON",
            Self::ProtoJson => "ProtoJSON",
            Self::MessagePack => "MessagePack",
        })
    }
}

/// Ownership of decoded messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Decodes {
    /// The message owns its memory, and needs the bytes no longer.
    Owned,
    /// Strings borrow from the bytes. Each field is read within the measured time, as a user would have to.
    Borrowed,
}

impl fmt::Display for Decodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Owned => "owned",
            Self::Borrowed => "borrowed, read",
        })
    }
}

/// A line: a codec's operation on a kind of message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CodecLine {
    /// Name of the message, see `DataInfo`.
    pub(crate) data: String,
    /// Name of the codec, see `CodecInfo`.
    pub(crate) codec: String,
    pub(crate) operation: Operation,
}

impl fmt::Display for CodecLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} of {}", self.codec, self.operation, self.data)
    }
}
