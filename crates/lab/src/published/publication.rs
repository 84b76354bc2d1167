//! Publications that the lab can reproduce.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A published measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Publication {
    /// Qt GRPC against gRPC C++, over message sizes.
    Qt,
    /// gRPC against a JSON API on the JVM.
    Json,
    /// Protobuf against JSON conversions.
    Codec,
    /// Whether one channel is a bottleneck.
    Channels,
}

impl Publication {
    /// All publications, in the order of the page.
    pub const ALL: [Self; 4] = [Self::Qt, Self::Json, Self::Codec, Self::Channels];

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Qt => "qt",
            Self::Json => "json",
            Self::Codec => "codec",
            Self::Channels => "channels",
        }
    }
}

impl fmt::Display for Publication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Error for an unknown publication name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown measurement `{0}`; use qt, json, codec or channels")]
pub struct UnknownPublication(String);

impl FromStr for Publication {
    type Err = UnknownPublication;

    fn from_str(text: &str) -> Result<Self, UnknownPublication> {
        let named = Self::ALL.into_iter().find(|it| it.name() == text);
        named.ok_or_else(|| UnknownPublication(text.to_owned()))
    }
}
