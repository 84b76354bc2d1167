//! Input to inspect: raw bytes, hex, Base64 or a packet capture.

use std::io::{self, Cursor, Read};

use base64::Engine;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use flate2::read::MultiGzDecoder;
use thalweg_protobuf_text::dissect::Limits;
use thalweg_protobuf_text::dissect::framing::{Framing, split};

use crate::capture::is_capture;
use crate::hex;

/// Number of bytes that identify a capture.
const MAGIC_LEN: u64 = 4;
/// gzip magic with DEFLATE, its only method.
const GZIP_MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
/// Length of a gRPC prefix in Base64.
const TEXT_FRAME_LEN_MIN: usize = 8;

/// An input, identified by its first bytes.
pub enum Source {
    /// Bytes, [decoded](Input::decoded).
    Bytes(Input),
    /// A packet capture, to be read as a stream.
    Capture(Box<dyn Read + Send>),
}

impl Source {
    /// Reads an input completely, or a capture up to its identification. Decompresses gzip.
    ///
    /// # Errors
    ///
    /// Returns an error if the input cannot be read.
    pub fn read(name: &str, mut reader: Box<dyn Read + Send>) -> io::Result<Self> {
        let mut bytes = Vec::new();
        reader.by_ref().take(MAGIC_LEN).read_to_end(&mut bytes)?;
        if bytes.starts_with(&GZIP_MAGIC) {
            reader = Box::new(MultiGzDecoder::new(Cursor::new(std::mem::take(&mut bytes)).chain(reader)));
            reader.by_ref().take(MAGIC_LEN).read_to_end(&mut bytes)?;
        }
        if is_capture(&bytes) {
            return Ok(Self::Capture(Box::new(Cursor::new(bytes).chain(reader))));
        }
        reader.read_to_end(&mut bytes)?;
        Ok(Self::Bytes(Input { name: name.to_owned(), bytes }.decoded()))
    }
}

/// Bytes with a name.
#[derive(Clone, Debug)]
pub struct Input {
    /// The name in headings and errors.
    pub name: String,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl Input {
    /// Reads bytes in hex, or a dump of xxd, hexdump, od, tcpdump or Wireshark.
    ///
    /// # Errors
    ///
    /// Returns an error that describes an invalid text.
    pub fn of_hex(name: &str, text: &str) -> Result<Self, String> {
        Ok(Self { name: name.to_owned(), bytes: hex::read(text)? })
    }

    /// Reads bytes in Base64: both alphabets, with or without padding, including a grpc-web-text body.
    ///
    /// # Errors
    ///
    /// Returns an error that describes an invalid text.
    pub fn of_base64(name: &str, text: &str) -> Result<Self, String> {
        Ok(Self { name: name.to_owned(), bytes: base64(text)? })
    }

    /// Decodes a text that can only be a hex dump or a grpc-web-text body. Returns other bytes unchanged.
    #[must_use]
    pub fn decoded(self) -> Self {
        let Self { name, bytes } = self;
        let text = std::str::from_utf8(&bytes);
        if let Some(bytes) = text.ok().and_then(hex::dump) {
            return Self { name: format!("{name} (a hex dump)"), bytes };
        }
        match text.ok().and_then(|text| base64(text).ok()) {
            Some(frames) if bytes.len() >= TEXT_FRAME_LEN_MIN && is_framed(&frames) => {
                Self { name: format!("{name} (Base64)"), bytes: frames }
            }
            _ => Self { name, bytes },
        }
    }

    /// Returns a hint about what an invalid message may be.
    pub(crate) fn hint(&self) -> &'static str {
        let is_hex = |byte: &u8| byte.is_ascii_hexdigit() || byte.is_ascii_whitespace();
        match &self.bytes[..] {
            [b'{' | b'[', ..] => " (this looks like JSON)",
            bytes if bytes.len() >= 4 && bytes.iter().all(is_hex) => {
                " (this looks like hex; use --hex @FILE)"
            }
            bytes if bytes.len() >= 8 && base64(&String::from_utf8_lossy(bytes)).is_ok() => {
                " (this looks like Base64; use --base64 @FILE)"
            }
            _ => "",
        }
    }
}

/// Returns whether all bytes are messages with gRPC prefixes.
fn is_framed(bytes: &[u8]) -> bool {
    let frames = split(bytes, Framing::Grpc, &Limits::default());
    frames.problem.is_none() && frames.frames.iter().all(|frame| frame.truncated_from.is_none())
}

/// Parses Base64 in any common variant. grpc-web-text may have padding after each part.
fn base64(text: &str) -> Result<Vec<u8>, String> {
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let alphabet = if text.contains(['-', '_']) { &URL_SAFE } else { &STANDARD };
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let engine = GeneralPurpose::new(alphabet, config);
    let mut bytes = Vec::new();
    let mut start = 0;
    for part in text.split_inclusive('=') {
        engine.decode_vec(part.trim_end_matches('='), &mut bytes).map_err(|error| match error {
            base64::DecodeError::InvalidByte(at, _) => {
                let at = start + at;
                let c = text.get(at..).and_then(|rest| rest.chars().next()).unwrap_or_default();
                format!("invalid character `{c}` at position {}", at + 1)
            }
            _ => format!("{} characters do not decode to whole bytes", text.len()),
        })?;
        start += part.len();
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_accepts_both_alphabets_with_or_without_padding() {
        for text in ["+/8=", "+/8", "-_8=", "-_8", " +/ 8=\n"] {
            assert_eq!(base64(text), Ok(vec![0xfb, 0xff]), "{text:?}");
        }
        assert_eq!(base64("ab!d"), Err("invalid character `!` at position 3".to_owned()));
        // Parts with padding each.
        assert_eq!(base64("+/8=+/8=AA=="), Ok(vec![0xfb, 0xff, 0xfb, 0xff, 0]));
        assert_eq!(base64("abcde"), Err("5 characters do not decode to whole bytes".to_owned()));
    }
}
