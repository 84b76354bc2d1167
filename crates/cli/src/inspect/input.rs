//! Where bytes come from: a file, stdin, or the command line in hex or Base64.

use std::fs::{self, File};
use std::io::{self, IsTerminal, Read};

use base64::Engine;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use clap::Args;
use thalweg_capture::is_capture;

use crate::failure::Failure;

/// As many bytes tell a capture.
const MAGIC_LEN: u64 = 4;

#[derive(Debug, Args)]
#[group(multiple = false)]
pub(super) struct InputArgs {
    /// A file, or - for stdin [default: stdin, if something is piped to it]
    #[arg(value_name = "FILE")]
    file: Option<String>,

    /// The bytes in hex; spaces, commas, colons and 0x between them are read over
    #[arg(long, value_name = "TEXT")]
    hex: Option<String>,

    /// The bytes in Base64, of either alphabet, with or without padding
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
            None | Some("-") => ("stdin", Box::new(io::stdin())),
            Some(path) => match File::open(path) {
                Ok(file) => (path, Box::new(file)),
                Err(error) => return Err(Failure::failed(format!("cannot read {path}: {error}"))),
            },
        };
        let failed = |error: io::Error| Failure::failed(format!("cannot read {name}: {error}"));
        let mut bytes = Vec::new();
        reader.by_ref().take(MAGIC_LEN).read_to_end(&mut bytes).map_err(failed)?;
        if is_capture(&bytes) {
            let reader = Box::new(io::Cursor::new(bytes).chain(reader));
            return Ok(Source::Capture { name: name.to_owned(), reader });
        }
        reader.read_to_end(&mut bytes).map_err(failed)?;
        Input { name: name.to_owned(), bytes }.not_empty().map(Source::Bytes)
    }

    /// The bytes, or none.
    pub(super) fn read_any(&self) -> Result<Input, Failure> {
        if let Some(text) = &self.hex {
            let bytes = hex(text).map_err(|what| Failure::bad_arguments(format!("--hex: {what}")))?;
            return Ok(Input { name: "--hex".to_owned(), bytes });
        }
        if let Some(text) = &self.base64 {
            let bytes = base64(text).map_err(|what| Failure::bad_arguments(format!("--base64: {what}")))?;
            return Ok(Input { name: "--base64".to_owned(), bytes });
        }
        match self.file.as_deref() {
            None if io::stdin().is_terminal() => Err(Failure::bad_arguments(
                "there is nothing to look at: say FILE, - for stdin, --hex or --base64",
            )),
            None | Some("-") => {
                let mut bytes = Vec::new();
                io::stdin()
                    .lock()
                    .read_to_end(&mut bytes)
                    .map_err(|error| Failure::failed(format!("cannot read stdin: {error}")))?;
                Ok(Input { name: "stdin".to_owned(), bytes })
            }
            Some(path) => {
                let bytes = fs::read(path)
                    .map_err(|error| Failure::failed(format!("cannot read {path}: {error}")))?;
                Ok(Input { name: path.to_owned(), bytes })
            }
        }
    }
}

impl Input {
    fn not_empty(self) -> Result<Self, Failure> {
        if self.bytes.is_empty() {
            let why = "there are no bytes to take apart; an empty message is --hex ''";
            return Err(Failure::failed(format!("{}: {why}", self.name)));
        }
        Ok(self)
    }

    /// What bytes that are no message may be instead.
    pub(super) fn hint(&self) -> &'static str {
        let is_hex = |byte: &u8| byte.is_ascii_hexdigit() || byte.is_ascii_whitespace();
        match &self.bytes[..] {
            [0x1f, 0x8b, ..] => " (this is gzip: pipe it through `gzip -dc`)",
            [b'{' | b'[', ..] => " (this looks like JSON)",
            bytes if bytes.len() >= 4 && bytes.iter().all(is_hex) => {
                " (this looks like hex: say it as --hex \"$(cat FILE)\")"
            }
            bytes if bytes.len() >= 8 && base64(&String::from_utf8_lossy(bytes)).is_ok() => {
                " (this looks like Base64: say it as --base64 \"$(cat FILE)\")"
            }
            _ => "",
        }
    }
}

/// Reads pairs of hex digits, and over what people put between them.
fn hex(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len() / 2);
    for group in text.split(|c: char| c.is_whitespace() || matches!(c, ',' | ':' | '-' | '_')) {
        let group = group.strip_prefix("0x").or_else(|| group.strip_prefix("\\x")).unwrap_or(group);
        let group = group.replace("\\x", "");
        if let Some(c) = group.chars().find(|c| !c.is_ascii_hexdigit()) {
            return Err(format!("`{c}` is no hex digit"));
        }
        let (pairs, rest) = group.as_bytes().as_chunks::<2>();
        if !rest.is_empty() {
            return Err(format!("a byte has two digits, and `{}` has {}", shortened(&group), group.len()));
        }
        // All of them are digits.
        let value = |digit: u8| char::from(digit).to_digit(16).unwrap_or_default() as u8;
        bytes.extend(pairs.iter().map(|[high, low]| 16 * value(*high) + value(*low)));
    }
    Ok(bytes)
}

fn shortened(text: &str) -> String {
    const SHOWN: usize = 20;
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Reads Base64 as anybody may have written it.
fn base64(text: &str) -> Result<Vec<u8>, String> {
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let alphabet = if text.contains(['-', '_']) { &URL_SAFE } else { &STANDARD };
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    GeneralPurpose::new(alphabet, config).decode(&text).map_err(|error| match error {
        base64::DecodeError::InvalidByte(at, _) => {
            let c = text.get(at..).and_then(|rest| rest.chars().next()).unwrap_or_default();
            format!("`{c}`, the character {}, is not of the alphabet", at + 1)
        }
        _ => format!("{} characters are no whole number of bytes", text.len()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_is_read_as_people_write_it() {
        for text in ["0a0dff", "0A 0D FF", "0x0a, 0x0d, 0xff", "0a:0d:ff", " 0a0d\n ff ", "\\x0a\\x0d\\xff"] {
            assert_eq!(hex(text), Ok(vec![10, 13, 255]), "{text:?}");
        }
        assert_eq!(hex(""), Ok(Vec::new()));
        assert_eq!(hex("0a0"), Err("a byte has two digits, and `0a0` has 3".to_owned()));
        assert_eq!(hex("0a 0g"), Err("`g` is no hex digit".to_owned()));
    }

    #[test]
    fn base64_is_read_in_both_alphabets_and_without_padding() {
        for text in ["+/8=", "+/8", "-_8=", "-_8", " +/ 8=\n"] {
            assert_eq!(base64(text), Ok(vec![0xfb, 0xff]), "{text:?}");
        }
        assert_eq!(base64("ab!d"), Err("`!`, the character 3, is not of the alphabet".to_owned()));
        assert_eq!(base64("abcde"), Err("5 characters are no whole number of bytes".to_owned()));
    }
}
