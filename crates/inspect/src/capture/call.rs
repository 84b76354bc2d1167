//! A captured call.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use thalweg_http2::{ErrorCode, FieldList};

/// Names and values of headers or trailers, including pseudo-headers. Values of names ending in `-bin` are Base64, even
/// if the peers use raw bytes (gRFC G1).
pub type Fields = Vec<(String, Vec<u8>)>;

/// A captured call. Times are relative to 1970.
#[derive(Clone, Debug)]
pub struct Call {
    /// Address of the client.
    pub client: SocketAddr,
    /// Address of the server.
    pub server: SocketAddr,
    /// Stream ID.
    pub stream: u32,
    /// Data from the client.
    pub request: CallDirection,
    /// Data from the server.
    pub response: CallDirection,
    /// Trailers. In a trailers-only response, all of its headers.
    pub trailers: Option<Fields>,
    /// Kind of end.
    pub end: CallEnd,
    /// Time of the end, or of the last known event.
    pub ended_at: Duration,
    /// Missing data and other remarks.
    pub notes: Vec<String>,
}

/// One direction of a call.
#[derive(Clone, Debug, Default)]
pub struct CallDirection {
    /// Headers. `None` if they were not captured or the response is trailers-only.
    pub headers: Option<Fields>,
    /// Time of the headers, or of the first data in this direction.
    pub started_at: Option<Duration>,
    /// Messages that were kept.
    pub messages: Vec<Message>,
    /// Number of all messages.
    pub message_count: u64,
    /// Size of all messages on the wire, without gRPC prefixes.
    pub message_bytes: u64,
    /// Time when the first message was complete.
    pub first_message_at: Option<Duration>,
    /// Time when the last message was complete.
    pub last_message_at: Option<Duration>,
    /// Bytes of an incomplete message.
    pub incomplete_bytes: u64,
}

/// A message on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Time when the message was complete.
    pub at: Duration,
    /// gRPC flags: 1 means compressed.
    pub flags: u8,
    /// The bytes after the prefix.
    pub bytes: Vec<u8>,
}

/// One of the two peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// The client.
    Client,
    /// The server.
    Server,
}

/// Kind of end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallEnd {
    /// The response ended; its trailers have the status.
    Trailers,
    /// RST_STREAM by this peer with this code.
    Reset(Endpoint, u32),
    /// The connection ended before the call.
    Disconnected,
    /// The capture, or its decodable part, ended before the call.
    Unknown,
}

/// Displays what to show if there is no status.
impl fmt::Display for CallEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trailers => f.write_str("no status"),
            Self::Reset(Endpoint::Client, code) => write!(f, "{} by client", ErrorCode::from(*code)),
            Self::Reset(Endpoint::Server, code) => write!(f, "{} by server", ErrorCode::from(*code)),
            Self::Disconnected => f.write_str("disconnected"),
            Self::Unknown => f.write_str("not ended"),
        }
    }
}

impl Call {
    /// Returns `package.Service/Method`, if the request headers were captured.
    pub fn method(&self) -> Option<String> {
        let path = self.request.field(":path")?;
        Some(String::from_utf8_lossy(path.strip_prefix(b"/").unwrap_or(path)).into_owned())
    }

    /// Returns the gRPC status code, if there is a status. An invalid code is UNKNOWN (2), and the
    /// [message](Self::status_message) includes it.
    pub fn status(&self) -> Option<i32> {
        let value = field(self.trailers.as_ref()?, "grpc-status")?;
        Some(valid_code(value).unwrap_or(UNKNOWN))
    }

    /// Returns the percent-decoded status message, prefixed by an invalid `grpc-status`.
    pub fn status_message(&self) -> String {
        let message = self.sent_status_message();
        let sent = self.trailers.as_ref().and_then(|trailers| field(trailers, "grpc-status"));
        match sent.filter(|sent| valid_code(sent).is_none()) {
            None => message,
            Some(sent) => {
                let problem =
                    format!("the server sent an unknown grpc-status: {}", String::from_utf8_lossy(sent));
                if message.is_empty() { problem } else { format!("{problem}: {message}") }
            }
        }
    }

    fn sent_status_message(&self) -> String {
        let coded = self.trailers.as_ref().and_then(|trailers| field(trailers, "grpc-message"));
        let mut rest = coded.unwrap_or_default();
        let mut bytes = Vec::with_capacity(rest.len());
        let digit = |byte: u8| char::from(byte).to_digit(16);
        while let [first, behind @ ..] = rest {
            let byte = match rest {
                [b'%', high, low, ..] => digit(*high).zip(digit(*low)).map(|(high, low)| high * 16 + low),
                _ => None,
            };
            // A `%` without two hex digits is kept.
            rest = if byte.is_some() { &rest[3..] } else { behind };
            bytes.push(byte.map_or(*first, |byte| byte as u8));
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Returns the time of the request headers, or of the first data.
    pub fn started_at(&self) -> Duration {
        self.request.started_at.or(self.response.started_at).unwrap_or(self.ended_at)
    }
}

impl CallDirection {
    /// Returns the value of the first header of this name.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        field(self.headers.as_ref()?, name)
    }
}

/// Converts a decoded header block.
pub(crate) fn fields(list: &FieldList) -> Fields {
    let field = |field: thalweg_http2::Field<'_>| {
        let name = String::from_utf8_lossy(field.name).into_owned();
        // gRFC G1: a value after NUL is raw. C-core sends such values to peers with GRPC_ALLOW_TRUE_BINARY_METADATA.
        let value = match field.value {
            [0, raw @ ..] if name.ends_with("-bin") => STANDARD_NO_PAD.encode(raw).into_bytes(),
            value => value.to_vec(),
        };
        (name, value)
    };
    list.iter().map(field).collect()
}

/// gRPC status code UNKNOWN.
const UNKNOWN: i32 = 2;

/// Parses `grpc-status`, if it is a known code.
fn valid_code(value: &[u8]) -> Option<i32> {
    std::str::from_utf8(value).ok()?.parse().ok().filter(|code| (0..=16).contains(code))
}

pub(crate) fn field<'f>(fields: &'f Fields, name: &str) -> Option<&'f [u8]> {
    fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_slice())
}
