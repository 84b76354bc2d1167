//! Encoding of a message in a body: prefix, compression, and trailing status.

use std::io::{Read, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use http::{HeaderMap, StatusCode};
use thalweg::{Code, Status};

use super::connection::EchoResponse;
use super::document::Document;
use super::protocol::{Format, Framing, Protocol};

/// Length of gRPC's message prefix: a compression flag and the message length.
const PREFIX_LEN: usize = thalweg_engine::Prefix::LEN;
/// First byte of the prefix of a compressed message, and of a gRPC-Web status.
const COMPRESSED: u8 = 1;
const TRAILERS: u8 = 0x80;
/// Maximum characters quoted from a failed response.
const QUOTED_LEN_MAX: usize = 200;

#[derive(Clone, Copy, Debug)]
pub(super) struct Bodies {
    format: Format,
    framing: Framing,
    gzip: bool,
}

impl Bodies {
    pub(super) fn new(protocol: Protocol, gzip: bool) -> Self {
        Self { format: protocol.format(), framing: protocol.framing(), gzip }
    }

    /// Header fields for the compression in use and the ones accepted.
    pub(super) fn fields(self) -> &'static [(&'static str, &'static str)] {
        match (self.gzip, self.framing) {
            (false, _) => &[],
            (true, Framing::Body) => &[("content-encoding", "gzip"), ("accept-encoding", "gzip")],
            (true, Framing::Grpc | Framing::GrpcWeb) => {
                &[("grpc-encoding", "gzip"), ("grpc-accept-encoding", "gzip")]
            }
        }
    }

    pub(super) fn encode(self, document: &Document) -> Bytes {
        let prefix_len = if self.framing == Framing::Body { 0 } else { PREFIX_LEN };
        let mut bytes = document.encode_after_prefix(self.format, if self.gzip { 0 } else { prefix_len });
        if self.gzip {
            bytes = compressed(&bytes, prefix_len);
        }
        if let Some((prefix, message)) = bytes.split_at_mut_checked(PREFIX_LEN)
            && prefix_len > 0
        {
            prefix[0] = if self.gzip { COMPRESSED } else { 0 };
            prefix[1..].copy_from_slice(&(message.len() as u32).to_be_bytes());
        }
        bytes.into()
    }

    /// Decodes the response's document. Returns the call's status if it failed.
    pub(super) fn decode(self, response: &EchoResponse, like: &Document) -> Result<Document, Status> {
        let message = self.message(response)?;
        let decoded = match message {
            Message { bytes, is_compressed: false } => like.decode_like(self.format, bytes),
            Message { bytes, is_compressed: true } => {
                decompressed(bytes).and_then(|bytes| like.decode_like(self.format, &bytes))
            }
        };
        decoded.map_err(Status::data_loss)
    }

    /// Checks the status of the call without decoding the message.
    pub(super) fn check(self, response: &EchoResponse) -> Result<(), Status> {
        self.message(response).map(drop)
    }

    fn message(self, response: &EchoResponse) -> Result<Message<'_>, Status> {
        match self.framing {
            Framing::Body if response.status == StatusCode::OK => {
                let is_compressed = response.headers.contains_key("content-encoding");
                Ok(Message { bytes: &response.body, is_compressed })
            }
            Framing::Body => Err(http_status(response)),
            Framing::Grpc => {
                grpc_status(response.trailers.as_ref().unwrap_or(&response.headers), response)?;
                match parts(&response.body)? {
                    (message, []) => Ok(message),
                    _ => Err(Status::data_loss("unexpected data after the response message")),
                }
            }
            Framing::GrpcWeb => {
                if response.headers.contains_key("grpc-status") {
                    grpc_status(&response.headers, response)?;
                }
                if response.status != StatusCode::OK {
                    return Err(http_status(response));
                }
                if response.body.first().is_some_and(|first| first & TRAILERS != 0) {
                    grpc_status(&trailers(&response.body)?, response)?;
                }
                let (message, behind) = parts(&response.body)?;
                grpc_status(&trailers(behind)?, response)?;
                Ok(message)
            }
        }
    }
}

/// Bytes of a message, as received.
struct Message<'b> {
    bytes: &'b [u8],
    is_compressed: bool,
}

/// Splits off the first message. Returns it and the rest.
fn parts(body: &[u8]) -> Result<(Message<'_>, &[u8]), Status> {
    let [flag, a, b, c, d, rest @ ..] = body else {
        return Err(Status::data_loss("the response has no message"));
    };
    let len = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
    let Some((bytes, behind)) = rest.split_at_checked(len) else {
        let (has, should) = (rest.len(), len);
        return Err(Status::data_loss(format!("the response message has {has} of {should} bytes")));
    };
    Ok((Message { bytes, is_compressed: flag & COMPRESSED != 0 }, behind))
}

/// Parses the status of gRPC-Web, which is part of the body.
fn trailers(part: &[u8]) -> Result<HeaderMap, Status> {
    let no_status = || Status::data_loss("missing grpc-status after the response message");
    if part.first().is_none_or(|first| first & TRAILERS == 0) {
        return Err(no_status());
    }
    let (Message { bytes, .. }, _) = parts(part)?;
    let text = std::str::from_utf8(bytes).map_err(|_| no_status())?;
    let mut fields = HeaderMap::new();
    for (name, value) in text.lines().filter_map(|line| line.split_once(':')) {
        let name = name.to_ascii_lowercase().parse::<http::HeaderName>();
        if let (Ok(name), Ok(value)) = (name, value.trim().parse()) {
            fields.insert(name, value);
        }
    }
    Ok(fields)
}

fn grpc_status(fields: &HeaderMap, response: &EchoResponse) -> Result<(), Status> {
    let code = fields.get("grpc-status").and_then(|value| value.to_str().ok()?.parse().ok());
    let message = fields.get("grpc-message").and_then(|value| value.to_str().ok()).unwrap_or_default();
    match code {
        Some(0) => Ok(()),
        Some(code @ 1..=16) => Err(Status::new(Code::from_i32(code), message)),
        Some(code) => {
            Err(Status::unknown(format!("the server sent an unknown grpc-status: {code}: {message}")))
        }
        None => Err(Status::unknown(format!("HTTP status {} without grpc-status", response.status))),
    }
}

fn http_status(response: &EchoResponse) -> Status {
    let text = String::from_utf8_lossy(&response.body);
    let text: String =
        text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(QUOTED_LEN_MAX).collect();
    Status::unknown(format!("HTTP status {}: {text}", response.status))
}

fn compressed(bytes: &[u8], prefix_len: usize) -> Vec<u8> {
    let mut encoder = GzEncoder::new(vec![0; prefix_len], Compression::default());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("writing to a Vec does not fail")
}

fn decompressed(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut plain = Vec::new();
    let read = GzDecoder::new(bytes).read_to_end(&mut plain);
    read.map(|_| plain).map_err(|error| format!("the response is not valid gzip: {error}"))
}

#[cfg(test)]
mod tests {
    use super::super::shape::Shape;
    use super::*;

    const SHAPE: Shape = Shape::Strings { count: 40, letters: 20 };

    fn response(status: u16, headers: &[(&'static str, &str)], body: Bytes) -> EchoResponse {
        let fields = headers.iter().map(|(name, value)| {
            (http::HeaderName::from_static(name), http::HeaderValue::from_str(value).unwrap())
        });
        let status = StatusCode::from_u16(status).unwrap();
        EchoResponse { status, headers: fields.collect(), body, trailers: None }
    }

    /// Returns the response of a server that echoes the request.
    fn echoed(protocol: Protocol, gzip: bool) -> (Bodies, Document, EchoResponse) {
        let bodies = Bodies::new(protocol, gzip);
        let document = Document::all(SHAPE, protocol.format(), None).remove(0);
        let mut body = bodies.encode(&document).to_vec();
        let mut headers: Vec<(&str, &str)> = Vec::new();
        match protocol.framing() {
            Framing::Body if gzip => headers.push(("content-encoding", "gzip")),
            Framing::Body => {}
            Framing::Grpc => headers.push(("grpc-status", "0")),
            Framing::GrpcWeb => body.extend(b"\x80\0\0\0\x10grpc-status: 0\r\n"),
        }
        (bodies, document, response(200, &headers, body.into()))
    }

    #[test]
    fn bodies_round_trip() {
        for protocol in Protocol::ALL {
            for gzip in [false, true] {
                let (bodies, document, response) = echoed(protocol, gzip);
                bodies.check(&response).unwrap();
                assert_eq!(bodies.decode(&response, &document).unwrap(), document, "{protocol} {gzip}");
                let cut = response.body.slice(..response.body.len() - 1);
                let cut = EchoResponse { body: cut, ..response };
                assert!(bodies.decode(&cut, &document).is_err(), "{protocol} {gzip}");
            }
        }
    }

    #[test]
    fn gzip_makes_bodies_smaller() {
        for protocol in Protocol::ALL {
            let len = |gzip| echoed(protocol, gzip).2.body.len();
            assert!(len(true) < len(false), "{protocol}");
        }
    }

    #[test]
    fn status_is_read_from_headers_trailers_and_body() {
        let failed = |protocol, headers: &[(&'static str, &str)], body: &'static [u8]| {
            let status =
                Bodies::new(protocol, false).check(&response(200, headers, Bytes::from_static(body)));
            let status = status.unwrap_err();
            (status.code(), status.message().to_owned())
        };
        let missing = (Code::NotFound, "gone".to_owned());
        let fields = [("grpc-status", "5"), ("grpc-message", "gone")];
        assert_eq!(failed(Protocol::Grpc, &fields, b""), missing);
        assert_eq!(failed(Protocol::GrpcWebH2, &fields, b""), missing);
        let alone = b"\x80\0\0\0\x22grpc-status:5\r\ngrpc-message:gone\r\n";
        assert_eq!(failed(Protocol::GrpcWebH2, &[], alone), missing);
        let behind = b"\0\0\0\0\0\x80\0\0\0\x22Grpc-Status:5\r\ngrpc-message:gone\r\n";
        assert_eq!(failed(Protocol::GrpcWebHttp1, &[], behind), missing);
        assert_eq!(failed(Protocol::GrpcWebHttp1, &[], b"\0\0\0\0\0").0, Code::DataLoss);
        assert_eq!(failed(Protocol::Grpc, &[], b"").0, Code::Unknown);
        let unknown = "the server sent an unknown grpc-status: 99: gone".to_owned();
        let fields = [("grpc-status", "99"), ("grpc-message", "gone")];
        assert_eq!(failed(Protocol::Grpc, &fields, b""), (Code::Unknown, unknown));
    }
}
