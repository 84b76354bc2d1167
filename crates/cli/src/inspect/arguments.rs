//! Arguments of `thalweg inspect`.

use std::fs;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use thalweg_inspect::capture::KeyLog;
use thalweg_protobuf_text::dissect::framing::Framing;

use super::input;
use super::paint::ColorChoice;
use super::selection::Selection;
use crate::failure::Failure;
use crate::schema::SchemaArgs;

const EXAMPLES: &str = "\
Examples:
  thalweg inspect message.bin --proto shop.proto --type shop.Order
  thalweg inspect traffic.pcapng --call Place -v --proto shop.proto
  thalweg inspect --hex '0a 05 68 65 6c 6c 6f'
  thalweg inspect message.bin -O text | thalweg inspect --assemble -o same.bin
  thalweg inspect exchange.json      # from `thalweg call --save`
  tcpdump -i lo -U -w - port 50051 | thalweg inspect -";

/// Decode Protobuf messages and captured gRPC calls byte by byte
///
/// It shows where each tag, length and value is, what it means, and how many bytes it takes. A packet capture (pcap,
/// pcapng) is shown as a list of gRPC calls, or call by call.
///
/// Malformed input is decoded up to the error; the exit code is then 1.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    pub(super) input: input::InputArgs,

    #[command(flatten)]
    pub(super) schema: SchemaArgs,

    /// Framing of messages [default: detected and reported]
    #[arg(long, value_enum, value_name = "FRAMING")]
    pub(super) framing: Option<FramingChoice>,

    /// Output: tree, text (for --assemble) or json (thalweg.inspect/1)
    #[arg(short = 'O', long, value_enum, default_value_t = Format::Tree)]
    pub(super) format: Format,

    /// Convert the text of `-O text` back to bytes
    #[arg(
        long,
        conflicts_with_all = [
            "hex", "base64", "proto", "protoset", "message", "framing", "format", "full", "color", "width",
            "call", "verbose", "keylog",
        ]
    )]
    pub(super) assemble: bool,

    /// Write to a file
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    /// Capture: show calls by number (7, 3-9) or part of the method; repeatable
    #[arg(long, value_name = "WHICH")]
    pub(super) call: Vec<Selection>,

    /// Capture: decrypt TLS with this SSLKEYLOGFILE
    #[arg(long, value_name = "FILE")]
    pub(super) keylog: Option<PathBuf>,

    /// Capture: show all details of calls [default for --call NUMBER]
    #[arg(short = 'v', long)]
    pub(super) verbose: bool,

    /// Do not shorten long values and lists
    #[arg(long)]
    pub(super) full: bool,

    /// Use colors; auto: on a terminal, unless NO_COLOR is set
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    pub(super) color: ColorChoice,

    /// Width of the tree [default: terminal width, COLUMNS, or 100]
    #[arg(long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(40..))]
    pub(super) width: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Human-readable tree
    Tree,
    /// Human-readable, and the input of --assemble
    Text,
    /// Machine-readable
    Json,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum FramingChoice {
    /// No framing: the input is one message
    Protobuf,
    /// gRPC: 5-byte prefix (flags and length) before each message
    Grpc,
    /// Delimited: varint length before each message
    Delimited,
}

impl From<FramingChoice> for Framing {
    fn from(choice: FramingChoice) -> Self {
        match choice {
            FramingChoice::Protobuf => Framing::Protobuf,
            FramingChoice::Grpc => Framing::Grpc,
            FramingChoice::Delimited => Framing::Delimited,
        }
    }
}

impl InspectArgs {
    /// Reads the key log, if one is named.
    pub(super) fn key_log(&self) -> Result<Option<KeyLog>, Failure> {
        let Some(path) = &self.keylog else { return Ok(None) };
        let failed = |why: String| Failure::failed(format!("{}: {why}", path.display()));
        let text = fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        KeyLog::parse(&text).map(Some).map_err(|error| failed(error.to_string()))
    }
}
