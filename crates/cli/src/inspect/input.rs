//! Where bytes come from: a file, stdin, or the command line in hex or Base64.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, IsTerminal, Read};

use clap::Args;
use flate2::read::MultiGzDecoder;
use thalweg_inspect::Input;
use thalweg_inspect::capture::is_capture;

use crate::failure::Failure;

/// As many bytes tell a capture.
const MAGIC_LEN: u64 = 4;
/// gzip's, and its only method.
const GZIP_MAGIC: [u8; 3] = [0x1f, 0x8b, 8];

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

impl InputArgs {
    /// The bytes. A file or a pipe that brings none is mostly a mistake, and refused; who means an empty message says
    /// `--hex ''`.
    pub(super) fn read(&self) -> Result<Input, Failure> {
        let input = self.read_any()?;
        if self.hex.is_some() || self.base64.is_some() { Ok(input) } else { not_empty(input) }
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
        not_empty(Input { name: name.to_owned(), bytes }.decoded()).map(Source::Bytes)
    }

    /// The bytes, or none.
    pub(super) fn read_any(&self) -> Result<Input, Failure> {
        if let Some(text) = &self.hex {
            return Input::of_hex("--hex", &text_of(text)?)
                .map_err(|what| Failure::bad_arguments(format!("--hex: {what}")));
        }
        if let Some(text) = &self.base64 {
            return Input::of_base64("--base64", &text_of(text)?)
                .map_err(|what| Failure::bad_arguments(format!("--base64: {what}")));
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

fn not_empty(input: Input) -> Result<Input, Failure> {
    if input.bytes.is_empty() {
        let why = "empty input; for an empty message use --hex ''";
        return Err(Failure::failed(format!("{}: {why}", input.name)));
    }
    Ok(input)
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
