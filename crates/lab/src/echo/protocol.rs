//! How the same work is said.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::shape::Shape;

/// A protocol, on a version of HTTP. Its name in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// gRPC over HTTP/2.
    Grpc,
    /// JSON posted over HTTP/1.1.
    JsonHttp1,
    /// JSON posted over HTTP/2.
    JsonH2,
    /// Connect's unary calls with JSON, over HTTP/1.1.
    ConnectHttp1,
    /// Connect's unary calls with JSON, over HTTP/2.
    ConnectH2,
}

/// What a body is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// A message of gRPC, with its prefix.
    Envelope,
    Json,
}

/// A name that is no protocol's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no protocol: use grpc, json-http1, json-h2, connect-http1 or connect-h2")]
pub struct UnknownProtocol(String);

impl Protocol {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 5] =
        [Self::Grpc, Self::JsonHttp1, Self::JsonH2, Self::ConnectHttp1, Self::ConnectH2];

    /// The name in JSON and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Grpc => "grpc",
            Self::JsonHttp1 => "json-http1",
            Self::JsonH2 => "json-h2",
            Self::ConnectHttp1 => "connect-http1",
            Self::ConnectH2 => "connect-h2",
        }
    }

    /// A connection carries one call at a time.
    pub fn is_http1(self) -> bool {
        matches!(self, Self::JsonHttp1 | Self::ConnectHttp1)
    }

    pub(super) fn format(self) -> Format {
        match self {
            Self::Grpc => Format::Envelope,
            Self::JsonHttp1 | Self::JsonH2 | Self::ConnectHttp1 | Self::ConnectH2 => Format::Json,
        }
    }

    pub(super) fn path(self, shape: Shape) -> String {
        match self {
            Self::JsonHttp1 | Self::JsonH2 => shape.route().to_owned(),
            Self::Grpc | Self::ConnectHttp1 | Self::ConnectH2 => {
                format!("/thalweg.lab.v1.Echo/{}", shape.method())
            }
        }
    }

    /// The header fields of each request.
    pub(super) fn fields(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Grpc => &[("content-type", "application/grpc"), ("te", "trailers")],
            Self::JsonHttp1 | Self::JsonH2 => &[("content-type", "application/json")],
            Self::ConnectHttp1 | Self::ConnectH2 => {
                &[("content-type", "application/json"), ("connect-protocol-version", "1")]
            }
        }
    }
}

impl FromStr for Protocol {
    type Err = UnknownProtocol;

    fn from_str(text: &str) -> Result<Self, UnknownProtocol> {
        let found = Self::ALL.into_iter().find(|protocol| protocol.name() == text);
        found.ok_or_else(|| UnknownProtocol(text.to_owned()))
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_everywhere() {
        for protocol in Protocol::ALL {
            assert_eq!(protocol.name().parse(), Ok(protocol));
            assert_eq!(serde_json::to_value(protocol).unwrap(), protocol.name());
        }
        assert_eq!("http".parse::<Protocol>(), Err(UnknownProtocol("http".to_owned())));
    }
}
