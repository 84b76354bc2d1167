//! Input of `inspect`: a file, stdin, or hex or Base64 on the command line.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, IsTerminal, Read};

use clap::Args;
use thalweg_inspect::{Input, Source};

use crate::failure::Failure;

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
    /// Both alphabets, with or without padding, including a grpc-web-text body. @FILE and @- read it from a file and
    /// stdin.
    #[arg(long, value_name = "TEXT")]
    base64: Option<String>,
}

impl InputArgs {
    /// Returns the name of the input and its source. Rejects an empty file or pipe, which is usually a mistake; `--hex
    /// ''` gives an empty message.
    pub(super) fn open(&self) -> Result<(&str, Source), Failure> {
        if let Some(input) = self.written()? {
            return Ok(("", Source::Bytes(input)));
        }
        let (name, reader) = self.reader()?;
        match Source::read(name, reader).map_err(|error| unreadable(name, &error))? {
            Source::Bytes(input) if input.bytes.is_empty() => {
                let why = "empty input; for an empty message use --hex ''";
                Err(Failure::failed(format!("{}: {why}", input.name)))
            }
            source => Ok((name, source)),
        }
    }

    /// Reads the input, which may be empty.
    pub(super) fn read(&self) -> Result<Input, Failure> {
        if let Some(input) = self.written()? {
            return Ok(input);
        }
        let (name, reader) = self.reader()?;
        Ok(Input { name: name.to_owned(), bytes: bytes_of(name, reader)? })
    }

    /// Returns the bytes of `--hex` or `--base64`.
    fn written(&self) -> Result<Option<Input>, Failure> {
        let wrong = |flag: &str, what: String| Failure::bad_arguments(format!("{flag}: {what}"));
        Ok(match (&self.hex, &self.base64) {
            (Some(text), _) => {
                Some(Input::of_hex("--hex", &text_of(text)?).map_err(|what| wrong("--hex", what))?)
            }
            (None, Some(text)) => {
                Some(Input::of_base64("--base64", &text_of(text)?).map_err(|what| wrong("--base64", what))?)
            }
            (None, None) => None,
        })
    }

    fn reader(&self) -> Result<(&str, Box<dyn Read + Send>), Failure> {
        match self.file.as_deref() {
            None if io::stdin().is_terminal() => {
                Err(Failure::bad_arguments("no input; use FILE, - for stdin, --hex or --base64"))
            }
            path => opened(path.unwrap_or("-")),
        }
    }
}

/// Returns the flag's text, or that of the file it names.
fn text_of(value: &str) -> Result<Cow<'_, str>, Failure> {
    let Some(path) = value.strip_prefix('@') else { return Ok(value.into()) };
    let (name, reader) = opened(path)?;
    let text = String::from_utf8(bytes_of(name, reader)?);
    text.map(Cow::from).map_err(|_| Failure::failed(format!("{path} is not UTF-8")))
}

/// Opens a file or stdin and returns its name.
fn opened(path: &str) -> Result<(&str, Box<dyn Read + Send>), Failure> {
    match path {
        "-" => Ok((STDIN, Box::new(io::stdin()))),
        path => match File::open(path) {
            Ok(file) => Ok((path, Box::new(file))),
            Err(error) => Err(unreadable(path, &error)),
        },
    }
}

fn bytes_of(name: &str, mut reader: impl Read) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).map_err(|error| unreadable(name, &error))?;
    Ok(bytes)
}

fn unreadable(name: &str, error: &io::Error) -> Failure {
    Failure::failed(format!("failed to read {name}: {error}"))
}
