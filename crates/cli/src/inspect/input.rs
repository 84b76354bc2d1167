//! Where bytes come from: a file, stdin, or the command line in hex or Base64.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, IsTerminal, Read};

use base64::Engine;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use clap::Args;
use flate2::read::MultiGzDecoder;
use thalweg_capture::is_capture;
use thalweg_protobuf::dissect::Limits;
use thalweg_protobuf::dissect::framing::{Framing, split};

use super::hex;
use crate::failure::Failure;

/// As many bytes tell a capture.
const MAGIC_LEN: u64 = 4;
/// gzip's, and its only method.
const GZIP_MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
/// A prefix of gRPC in Base64.
const TEXT_FRAME_LEN_MIN: usize = 8;

/// Name of stdin in errors.
pub(super) const STDIN: &str = "stdin";

#[derive(Debug, Args)]
#[group(multiple = false)]
pub(super) struct InputArgs {
    /// Message, pcap or pcapng capture; - for stdin [default: stdin if piped]
    #[arg(value_name = "FILE")]
    file: Option<String>,

    /// Bytes in hex, or a dump of xxd, hexdump or Wireshark
    ///
    /// @FILE and @- read it from a file and stdin. Spaces, commas, colons and 0x between bytes are ignored.
    #[arg(long, value_name = "TEXT")]
    hex: Option<String>,

    /// Bytes in Base64
    ///
    /// Both alphabets, with or without padding, also a body of grpc-web-text. @FILE and @- read it from a file and
    /// stdin.
    #[arg(long, value_name = "TEXT")]
    base64: Option<String>,
}

/// What an input turns out to be.
pub(super) enum Source {
    Bytes(Input),
    /// A packet capture, which is read as it comes.
    Capture {
        name: String,
        reader: Box<dyn Read + Send>,
    },
}

/// Bytes, and what to call them.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

impl InputArgs {
    /// The bytes. A file or a pipe that brings none is mostly a mistake, and refused; who means an empty message says
    /// `--hex ''`.
    pub(super) fn read(&self) -> Result<Input, Failure> {
        let input = self.read_any()?;
        if self.hex.is_some() || self.base64.is_some() { Ok(input) } else { input.not_empty() }
    }

    /// A capture, known by its first bytes; or the bytes, as [`read`](Self::read) has them.
    pub(super) fn open(&self) -> Result<Source, Failure> {
        let (name, mut reader): (&str, Box<dyn Read + Send>) = match self.file.as_deref() {
            _ if self.hex.is_some() || self.base64.is_some() => return self.read().map(Source::Bytes),
            None if io::stdin().is_terminal() => return self.read().map(Source::Bytes),
            None | Some("-") => (STDIN, Box::new(io::stdin())),
            Some(path) => match File::open(path) {
                Ok(file) => (path, Box::new(file)),
                Err(error) => return Err(Failure::failed(format!("cannot read {path}: {error}"))),
            },
        };
        let failed = |error: io::Error| Failure::failed(format!("cannot read {name}: {error}"));
        let mut bytes = Vec::new();
        reader.by_ref().take(MAGIC_LEN).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.starts_with(&GZIP_MAGIC) {
            reader = Box::new(MultiGzDecoder::new(io::Cursor::new(std::mem::take(&mut bytes)).chain(reader)));
            reader.by_ref().take(MAGIC_LEN).read_to_end(&mut bytes).map_err(failed)?;
        }
        if is_capture(&bytes) {
            let reader = Box::new(io::Cursor::new(bytes).chain(reader));
            return Ok(Source::Capture { name: name.to_owned(), reader });
        }
        reader.read_to_end(&mut bytes).map_err(failed)?;
        Input { name: name.to_owned(), bytes }.decoded().not_empty().map(Source::Bytes)
    }

    /// The bytes, or none.
    pub(super) fn read_any(&self) -> Result<Input, Failure> {
        if let Some(text) = &self.hex {
            let text = text_of(text)?;
            let bytes = hex::read(&text).map_err(|what| Failure::bad_arguments(format!("--hex: {what}")))?;
            return Ok(Input { name: "--hex".to_owned(), bytes });
        }
        if let Some(text) = &self.base64 {
            let bytes = base64(&text_of(text)?)
                .map_err(|what| Failure::bad_arguments(format!("--base64: {what}")))?;
            return Ok(Input { name: "--base64".to_owned(), bytes });
        }
        match self.file.as_deref() {
            None if io::stdin().is_terminal() => {
                Err(Failure::bad_arguments("no input; use FILE, - for stdin, --hex or --base64"))
            }
            None | Some("-") => Ok(Input { name: STDIN.to_owned(), bytes: bytes_of("-")? }),
            Some(path) => Ok(Input { name: path.to_owned(), bytes: bytes_of(path)? }),
        }
    }
}

impl Input {
    fn not_empty(self) -> Result<Self, Failure> {
        if self.bytes.is_empty() {
            let why = "empty input; for an empty message use --hex ''";
            return Err(Failure::failed(format!("{}: {why}", self.name)));
        }
        Ok(self)
    }

    /// The bytes of a text that can only be a hex dump, or a body of grpc-web-text; any others as they are.
    fn decoded(self) -> Self {
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

    /// What bytes that are no message may be instead.
    pub(super) fn hint(&self) -> &'static str {
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

/// The text that a flag has, or that of the file that it names.
fn text_of(value: &str) -> Result<Cow<'_, str>, Failure> {
    let Some(path) = value.strip_prefix('@') else { return Ok(value.into()) };
    let text = String::from_utf8(bytes_of(path)?);
    text.map(Cow::from).map_err(|_| Failure::failed(format!("{path} is not UTF-8")))
}

fn bytes_of(path: &str) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let (name, read) = match path {
        "-" => ("stdin", io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)),
        path => (path, fs::read(path)),
    };
    read.map_err(|error| Failure::failed(format!("cannot read {name}: {error}")))
}

/// Whether these are messages with gRPC's prefixes from the first to the last byte.
fn is_framed(bytes: &[u8]) -> bool {
    let frames = split(bytes, Framing::Grpc, &Limits::default());
    frames.problem.is_none() && frames.frames.iter().all(|frame| frame.missing_of.is_none())
}

/// Reads Base64 as anybody may have written it. grpc-web-text may have padding behind each of its parts.
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
    fn base64_is_read_in_both_alphabets_and_without_padding() {
        for text in ["+/8=", "+/8", "-_8=", "-_8", " +/ 8=\n"] {
            assert_eq!(base64(text), Ok(vec![0xfb, 0xff]), "{text:?}");
        }
        assert_eq!(base64("ab!d"), Err("invalid character `!` at position 3".to_owned()));
        // Parts that each have padding.
        assert_eq!(base64("+/8=+/8=AA=="), Ok(vec![0xfb, 0xff, 0xfb, 0xff, 0]));
        assert_eq!(base64("abcde"), Err("5 characters do not decode to whole bytes".to_owned()));
    }
}
