//! A frame with its content, decompressed if necessary.

use std::io::Read;

use flate2::read::{GzDecoder, ZlibDecoder};
use thalweg_protobuf::MessageType;
use thalweg_protobuf_text::dissect::framing::{COMPRESSED, CONNECT_END, Frame, Prefix, WEB_TRAILERS};
use thalweg_protobuf_text::dissect::{Limits, Message, Span, dissect};

/// Maximum decompressed size: 64 MiB.
const DECOMPRESSED_LEN_MAX: usize = 64 << 20;

/// A frame with its content.
#[derive(Debug)]
pub(crate) struct DecodedFrame<'s> {
    pub(crate) frame: Frame,
    pub(crate) content: Content<'s>,
}

#[derive(Debug)]
pub(crate) enum Content<'s> {
    /// A message in the input.
    Message(Message<'s>),
    /// A compressed message. Offsets refer to `bytes`.
    Compressed { encoding: &'static str, bytes: Vec<u8>, message: Message<'s> },
    /// The end of a gRPC-Web or Connect stream.
    Text { what: &'static str, text: String },
    /// Content that could not be decompressed, and why.
    NotDecompressed(String),
}

impl<'s> DecodedFrame<'s> {
    pub(crate) fn new(
        input: &[u8],
        frame: Frame,
        message_type: Option<MessageType<'s>>,
        limits: &Limits,
    ) -> Self {
        let payload = frame.payload.of(input);
        let flags = match frame.prefix {
            Prefix::Grpc { flags, .. } => flags,
            _ => 0,
        };
        let decompressed = (flags & COMPRESSED != 0).then(|| decompress(payload));
        let content = match decompressed {
            Some(Err(why)) => Content::NotDecompressed(why),
            Some(Ok((_, bytes))) if flags & (CONNECT_END | WEB_TRAILERS) != 0 => text(flags, &bytes),
            Some(Ok((encoding, bytes))) => {
                let message = dissect(&bytes, Span::all(&bytes), message_type, limits);
                Content::Compressed { encoding, bytes, message }
            }
            None if flags & (CONNECT_END | WEB_TRAILERS) != 0 => text(flags, payload),
            None => Content::Message(dissect(input, frame.payload, message_type, limits)),
        };
        Self { frame, content }
    }

    /// Returns an uncompressed message.
    pub(crate) fn uncompressed(&self) -> Option<&Message<'s>> {
        match &self.content {
            Content::Message(message) => Some(message),
            _ => None,
        }
    }

    /// Returns the message and the bytes that it refers to.
    pub(crate) fn message<'a>(&'a self, input: &'a [u8]) -> Option<(&'a Message<'s>, &'a [u8])> {
        match &self.content {
            Content::Message(message) => Some((message, input)),
            Content::Compressed { bytes, message, .. } => Some((message, bytes)),
            _ => None,
        }
    }

    /// Returns problems with their offsets.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if let Some(problem) = self.truncation() {
            problems.push(format!("at offset {}: {problem}", self.frame.prefix_span.start));
        }
        match &self.content {
            Content::Message(message) => {
                problems.extend(message.problems().iter().map(|p| format!("at offset {}: {p}", p.offset)));
            }
            Content::Compressed { message, .. } => {
                let start = self.frame.payload.start;
                problems.extend(message.problems().iter().map(|p| {
                    format!("at offset {} of the message decompressed from offset {start}: {p}", p.offset)
                }));
            }
            Content::NotDecompressed(why) => {
                problems.push(format!("at offset {}: {why}", self.frame.payload.start));
            }
            Content::Text { .. } => {}
        }
        problems
    }

    /// Returns a problem if the input ends before the message.
    pub(crate) fn truncation(&self) -> Option<String> {
        let announced = self.frame.truncated_from?;
        let present = self.frame.payload.len();
        Some(match present {
            0 => format!("truncated: the prefix announces {announced} bytes, none follow"),
            _ => format!("truncated: the prefix announces {announced} bytes, {present} follow"),
        })
    }
}

fn text(flags: u8, bytes: &[u8]) -> Content<'static> {
    let what = if flags & WEB_TRAILERS != 0 { "gRPC-Web trailers" } else { "Connect EndStreamResponse" };
    Content::Text { what, text: String::from_utf8_lossy(bytes).into_owned() }
}

/// Detects gzip or zlib. Returns its name and the decompressed bytes.
fn decompress(payload: &[u8]) -> Result<(&'static str, Vec<u8>), String> {
    match payload {
        [0x1f, 0x8b, ..] => decode_all("gzip", GzDecoder::new(payload)),
        // zlib header: DEFLATE with a 32 KiB window; both bytes as a number are a multiple of 31.
        [0x78, second, ..] if (0x7800 + u16::from(*second)) % 31 == 0 => {
            decode_all("deflate", ZlibDecoder::new(payload))
        }
        [] => Err("flagged as compressed, but empty".to_owned()),
        _ => Err("unknown compression; expected gzip or deflate".to_owned()),
    }
}

fn decode_all(encoding: &'static str, decoder: impl Read) -> Result<(&'static str, Vec<u8>), String> {
    let mut bytes = Vec::new();
    match decoder.take(DECOMPRESSED_LEN_MAX as u64 + 1).read_to_end(&mut bytes) {
        Ok(len) if len > DECOMPRESSED_LEN_MAX => {
            Err(format!("more than 64 MiB after {encoding} decompression"))
        }
        Ok(_) => Ok((encoding, bytes)),
        Err(error) => Err(format!("invalid {encoding}: {error}")),
    }
}
