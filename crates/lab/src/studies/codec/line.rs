//! What is measured as one line, and the words for it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How many conversions come before each window, without being counted.
pub const WARM_UPS: u64 = 50;

/// What is done to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Operation {
    /// An object becomes bytes.
    Encode,
    /// Bytes become an object, which is dropped.
    Decode,
    /// An object becomes bytes, and these become another object, which is dropped.
    RoundTrip,
}

impl Operation {
    /// All of them, in the order in which they are measured.
    pub(crate) const ALL: [Self; 3] = [Self::Encode, Self::Decode, Self::RoundTrip];

    /// Bytes become an object in it.
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

/// What bytes a codec makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Format {
    /// Protobuf's binary format.
    Protobuf,
    /// JSON, as the program's own types are written.
    Json,
    /// JSON as Protobuf maps it: 64-bit integers are strings, names are in camel case, defaults are left out.
    ProtoJson,
    /// MessagePack, structs as maps with names.
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

/// Whose memory holds what a codec decodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Decodes {
    /// The message's own: nothing of it is in the bytes any more.
    Owned,
    /// Strings stay in the bytes. Each field is read within the time, as its user still has to.
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

/// What is measured as one line: a codec doing something to a kind of message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CodecLine {
    /// The message's name, see `DataInfo`.
    pub(crate) data: String,
    /// The codec's name, see `CodecInfo`.
    pub(crate) codec: String,
    /// What is done.
    pub(crate) operation: Operation,
}

impl fmt::Display for CodecLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} of {}", self.codec, self.operation, self.data)
    }
}
