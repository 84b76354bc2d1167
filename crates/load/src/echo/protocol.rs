//! Protocols of the echo workload.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::shape::Shape;

/// A protocol on an HTTP version. Serialized as its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Protocol {
    /// gRPC over HTTP/2.
    Grpc,
    /// gRPC-Web over HTTP/1.1.
    GrpcWebHttp1,
    /// gRPC-Web over HTTP/2.
    GrpcWebH2,
    /// Connect's unary calls with JSON, over HTTP/1.1.
    ConnectHttp1,
    /// Connect's unary calls with JSON, over HTTP/2.
    ConnectH2,
    /// JSON posted over HTTP/1.1.
    JsonHttp1,
    /// JSON posted over HTTP/2.
    JsonH2,
    /// Connect's unary calls with MessagePack, over HTTP/1.1.
    MsgpackHttp1,
    /// Connect's unary calls with MessagePack, over HTTP/2.
    MsgpackH2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Protobuf,
    Json,
    Msgpack,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// None: the message is the body.
    Body,
    /// A prefix before the message, and the status in trailers.
    Grpc,
    /// The same prefix, and the status after the message in the body.
    GrpcWeb,
}

/// An unknown protocol name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid protocol `{0}`; use grpc, or grpc-web, connect, json or msgpack followed by -http1 or -h2, such as \
     json-http1"
)]
pub struct UnknownProtocol(String);

impl Protocol {
    /// All protocols, in the order of reports.
    pub const ALL: [Self; 9] = [
        Self::Grpc,
        Self::GrpcWebHttp1,
        Self::GrpcWebH2,
        Self::ConnectHttp1,
        Self::ConnectH2,
        Self::JsonHttp1,
        Self::JsonH2,
        Self::MsgpackHttp1,
        Self::MsgpackH2,
    ];

    /// Returns the name in JSON and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Grpc => "grpc",
            Self::GrpcWebHttp1 => "grpc-web-http1",
            Self::GrpcWebH2 => "grpc-web-h2",
            Self::ConnectHttp1 => "connect-http1",
            Self::ConnectH2 => "connect-h2",
            Self::JsonHttp1 => "json-http1",
            Self::JsonH2 => "json-h2",
            Self::MsgpackHttp1 => "msgpack-http1",
            Self::MsgpackH2 => "msgpack-h2",
        }
    }

    /// Returns the display name, such as `JSON over HTTP/1.1`.
    pub fn title(self) -> &'static str {
        match self {
            Self::Grpc => "gRPC",
            Self::GrpcWebHttp1 => "gRPC-Web over HTTP/1.1",
            Self::GrpcWebH2 => "gRPC-Web over HTTP/2",
            Self::ConnectHttp1 => "Connect (JSON) over HTTP/1.1",
            Self::ConnectH2 => "Connect (JSON) over HTTP/2",
            Self::JsonHttp1 => "JSON over HTTP/1.1",
            Self::JsonH2 => "JSON over HTTP/2",
            Self::MsgpackHttp1 => "MessagePack over HTTP/1.1",
            Self::MsgpackH2 => "MessagePack over HTTP/2",
        }
    }

    /// Returns whether the protocol runs over HTTP/1.1, with one call at a time per connection.
    pub fn is_http1(self) -> bool {
        matches!(self, Self::GrpcWebHttp1 | Self::ConnectHttp1 | Self::JsonHttp1 | Self::MsgpackHttp1)
    }

    pub(super) fn format(self) -> Format {
        match self {
            Self::Grpc | Self::GrpcWebHttp1 | Self::GrpcWebH2 => Format::Protobuf,
            Self::ConnectHttp1 | Self::ConnectH2 | Self::JsonHttp1 | Self::JsonH2 => Format::Json,
            Self::MsgpackHttp1 | Self::MsgpackH2 => Format::Msgpack,
        }
    }

    pub(super) fn framing(self) -> Framing {
        match self {
            Self::Grpc => Framing::Grpc,
            Self::GrpcWebHttp1 | Self::GrpcWebH2 => Framing::GrpcWeb,
            _ => Framing::Body,
        }
    }

    pub(super) fn path(self, shape: Shape) -> String {
        match self {
            Self::JsonHttp1 | Self::JsonH2 => shape.route().to_owned(),
            _ => format!("/thalweg.lab.v1.{}", shape.method()),
        }
    }

    /// Returns the header fields of each request.
    pub(super) fn fields(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Grpc => &[("content-type", "application/grpc"), ("te", "trailers")],
            Self::GrpcWebHttp1 | Self::GrpcWebH2 => {
                &[("content-type", "application/grpc-web+proto"), ("x-grpc-web", "1")]
            }
            Self::JsonHttp1 | Self::JsonH2 => &[("content-type", "application/json")],
            Self::ConnectHttp1 | Self::ConnectH2 => {
                &[("content-type", "application/json"), ("connect-protocol-version", "1")]
            }
            Self::MsgpackHttp1 | Self::MsgpackH2 => {
                &[("content-type", "application/msgpack"), ("connect-protocol-version", "1")]
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

impl TryFrom<String> for Protocol {
    type Error = UnknownProtocol;

    fn try_from(text: String) -> Result<Self, UnknownProtocol> {
        text.parse()
    }
}

impl From<Protocol> for String {
    fn from(protocol: Protocol) -> Self {
        protocol.name().to_owned()
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
    fn protocol_names_round_trip() {
        for protocol in Protocol::ALL {
            assert_eq!(protocol.name().parse(), Ok(protocol));
            assert_eq!(serde_json::to_value(protocol).unwrap(), protocol.name());
            assert_eq!(protocol.is_http1(), protocol.title().ends_with("HTTP/1.1"), "{protocol}");
        }
        assert_eq!("http".parse::<Protocol>(), Err(UnknownProtocol("http".to_owned())));
    }
}
