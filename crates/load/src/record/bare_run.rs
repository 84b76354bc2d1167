//! Settings of the bare client.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Protocol of the bare client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BareWire {
    /// Messages of 60 bytes plus payload, echoed by the server.
    Echo,
    /// Unary gRPC calls.
    Grpc,
}

/// A run of the bare client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BareRun {
    /// Protocol.
    pub wire: BareWire,
    /// Number of connections with calls; the others are open and idle.
    pub active: u32,
}

impl BareWire {
    /// Returns the name on the command line.
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

/// An unknown protocol name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid protocol `{0}` of the bare client; use grpc or echo")]
pub struct UnknownBareWire(String);

impl FromStr for BareWire {
    type Err = UnknownBareWire;

    fn from_str(text: &str) -> Result<Self, UnknownBareWire> {
        let known = [Self::Echo, Self::Grpc].into_iter().find(|wire| wire.name() == text);
        known.ok_or_else(|| UnknownBareWire(text.to_owned()))
    }
}
