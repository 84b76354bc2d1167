//! A call, as the capture has it.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use thalweg_http2::{ErrorCode, FieldList};

/// Names and values of a head or of trailers, pseudo-headers among them. Values of names that end in `-bin` are Base64,
/// also where the peers agreed on raw bytes (gRFC G1).
pub type Fields = Vec<(String, Vec<u8>)>;

/// A call, as the capture has it. Times are those since 1970.
#[derive(Clone, Debug)]
pub struct Call {
    /// Who calls.
    pub client: SocketAddr,
    /// Who is called.
    pub server: SocketAddr,
    /// Its number on the connection.
    pub stream: u32,
    /// What the client sent.
    pub request: Side,
    /// What the server sent.
    pub response: Side,
    /// With a status that came without a head, all of its fields.
    pub trailers: Option<Fields>,
    /// How it ended.
    pub end: End,
    /// When it ended, or the last thing that is known of it.
    pub ended_at: Duration,
    /// What is missing, and what else is to be said.
    pub notes: Vec<String>,
}

/// One direction of a call.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// Its head; none if the capture does not have it, and of a server's that sent trailers alone.
    pub head: Option<Fields>,
    /// When the head was there, or what came first of this direction.
    pub began_at: Option<Duration>,
    /// The messages that were kept.
    pub messages: Vec<Message>,
    /// How many messages came in all.
    pub message_count: u64,
    /// Their bytes as they were on the wire, without gRPC's prefixes.
    pub message_bytes: u64,
    /// When the first message was there to its last byte.
    pub first_message_at: Option<Duration>,
    /// When the last one was.
    pub last_message_at: Option<Duration>,
    /// Bytes of a message that is not there to its end.
    pub cut_off: u64,
}

/// A message as it was on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// When its last byte was there.
    pub at: Duration,
    /// gRPC's: 1 is compressed.
    pub flags: u8,
    /// What follows the prefix.
    pub bytes: Vec<u8>,
}

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Who calls.
    Client,
    /// Who is called.
    Server,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The server's last frame is there; its trailers have the status.
    Trailers,
    /// RST_STREAM, with its code.
    Reset(Peer, u32),
    /// The connection ended before it.
    Disconnected,
    /// The capture did, or what can be followed of it.
    Unknown,
}

/// What takes the place of a status.
impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trailers => f.write_str("no status"),
            Self::Reset(Peer::Client, code) => write!(f, "{} by client", ErrorCode::from(*code)),
            Self::Reset(Peer::Server, code) => write!(f, "{} by server", ErrorCode::from(*code)),
            Self::Disconnected => f.write_str("disconnected"),
            Self::Unknown => f.write_str("not ended"),
        }
    }
}

impl Call {
    /// `package.Service/Method`, if the head is there.
    pub fn method(&self) -> Option<String> {
        let path = self.request.field(":path")?;
        Some(String::from_utf8_lossy(path.strip_prefix(b"/").unwrap_or(path)).into_owned())
    }

    /// The code of gRPC's status, if there is one. A value that is no code is UNKNOWN (2), and the
    /// [message](Self::status_message) has it.
    pub fn status(&self) -> Option<i32> {
        let value = field(self.trailers.as_ref()?, "grpc-status")?;
        Some(known_code(value).unwrap_or(UNKNOWN))
    }

    /// The message of the status, decoded (it is percent-coded on the wire), behind a `grpc-status` that is no code.
    pub fn status_message(&self) -> String {
        let message = self.sent_message();
        let sent = self.trailers.as_ref().and_then(|trailers| field(trailers, "grpc-status"));
        match sent.filter(|sent| known_code(sent).is_none()) {
            None => message,
            Some(sent) => {
                let problem =
                    format!("the server sent an unknown grpc-status: {}", String::from_utf8_lossy(sent));
                if message.is_empty() { problem } else { format!("{problem}: {message}") }
            }
        }
    }

    fn sent_message(&self) -> String {
        let coded = self.trailers.as_ref().and_then(|trailers| field(trailers, "grpc-message"));
        let mut rest = coded.unwrap_or_default();
        let mut bytes = Vec::with_capacity(rest.len());
        let digit = |byte: u8| char::from(byte).to_digit(16);
        while let [first, behind @ ..] = rest {
            let byte = match rest {
                [b'%', high, low, ..] => digit(*high).zip(digit(*low)).map(|(high, low)| high * 16 + low),
                _ => None,
            };
            // A `%` without two digits stands for itself.
            rest = if byte.is_some() { &rest[3..] } else { behind };
            bytes.push(byte.map_or(*first, |byte| byte as u8));
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// When the request's head was there, or what came first.
    pub fn began_at(&self) -> Duration {
        self.request.began_at.or(self.response.began_at).unwrap_or(self.ended_at)
    }
}

impl Side {
    /// The value of the first field of this name in the head.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        field(self.head.as_ref()?, name)
    }
}

/// The fields of a decoded header block.
pub(crate) fn fields(list: &FieldList) -> Fields {
    let field = |field: thalweg_http2::Field<'_>| {
        let name = String::from_utf8_lossy(field.name).into_owned();
        // gRFC G1: after a NUL the value is raw. C-core sends it so to peers that have set
        // GRPC_ALLOW_TRUE_BINARY_METADATA.
        let value = match field.value {
            [0, raw @ ..] if name.ends_with("-bin") => STANDARD_NO_PAD.encode(raw).into_bytes(),
            value => value.to_vec(),
        };
        (name, value)
    };
    list.iter().map(field).collect()
}

/// The number of gRPC's code UNKNOWN.
const UNKNOWN: i32 = 2;

/// The value of `grpc-status`, if gRPC has such a code.
fn known_code(value: &[u8]) -> Option<i32> {
    std::str::from_utf8(value).ok()?.parse().ok().filter(|code| (0..=16).contains(code))
}

pub(crate) fn field<'f>(fields: &'f Fields, name: &str) -> Option<&'f [u8]> {
    fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_slice())
}
