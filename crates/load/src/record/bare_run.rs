//! What the bare client is asked to do.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What the bare client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BareWire {
    /// Messages of 60 bytes and the payload, which come back.
    Echo,
    /// Unary calls of gRPC.
    Grpc,
}

/// A run of the bare client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BareRun {
    /// What it speaks.
    pub wire: BareWire,
    /// So many of the connections have calls; the others are open and idle.
    pub active: u32,
}

impl BareWire {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Grpc => "grpc",
        }
    }
}

impl fmt::Display for BareWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is no protocol's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is nothing that the bare client speaks: use grpc or echo")]
pub struct UnknownBareWire(String);

impl FromStr for BareWire {
    type Err = UnknownBareWire;

    fn from_str(text: &str) -> Result<Self, UnknownBareWire> {
        let known = [Self::Echo, Self::Grpc].into_iter().find(|wire| wire.name() == text);
        known.ok_or_else(|| UnknownBareWire(text.to_owned()))
    }
}
