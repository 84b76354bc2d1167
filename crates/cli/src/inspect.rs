//! `thalweg inspect`.

mod call;
mod capture;
mod input;
mod line;
mod paint;
mod selection;

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use input::STDIN;
use paint::ColorChoice;
use selection::Selection;
use thalweg_dynamic::texts::BYTE_ORDER_MARK;
use thalweg_inspect::capture::KeyLog;
use thalweg_inspect::exchange::Exchange;
use thalweg_inspect::transcript::Transcript;
use thalweg_inspect::{Input, Inspection, Source, write};
use thalweg_protobuf::Schema;
use thalweg_protobuf::dissect::framing::Framing;
use thalweg_protobuf::dissect::text;

use crate::failure::Failure;
use crate::output::OutputFile;
use crate::schema::SchemaArgs;
use crate::terminal::{self, Escaping, Syntax, written};

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
    input: input::InputArgs,

    #[command(flatten)]
    schema: SchemaArgs,

    /// Framing of messages [default: detected and reported]
    #[arg(long, value_enum, value_name = "FRAMING")]
    framing: Option<FramingChoice>,

    /// Output: tree, text (for --assemble) or json (thalweg.inspect/1)
    #[arg(short = 'O', long, value_enum, default_value_t = Format::Tree)]
    format: Format,

    /// Convert the text of `-O text` back to bytes
    #[arg(
        long,
        conflicts_with_all = [
            "hex", "base64", "proto", "protoset", "message", "framing", "format", "full", "color", "width",
            "call", "verbose", "keylog",
        ]
    )]
    assemble: bool,

    /// Write to a file
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Capture: show calls by number (7, 3-9) or part of the method; repeatable
    #[arg(long, value_name = "WHICH")]
    call: Vec<Selection>,

    /// Capture: decrypt TLS with this SSLKEYLOGFILE
    #[arg(long, value_name = "FILE")]
    keylog: Option<PathBuf>,

    /// Capture: show all details of calls [default for --call NUMBER]
    #[arg(short = 'v', long)]
    verbose: bool,

    /// Do not shorten long values and lists
    #[arg(long)]
    full: bool,

    /// Use colors; auto: on a terminal, unless NO_COLOR is set
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    color: ColorChoice,

    /// Width of the tree [default: terminal width, COLUMNS, or 100]
    #[arg(long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(40..))]
    width: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Human-readable tree
    Tree,
    /// Human-readable, and the input of --assemble
    Text,
    /// Machine-readable
    Json,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FramingChoice {
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

pub(crate) fn run(args: &InspectArgs) -> Result<ExitCode, Failure> {
    if args.assemble {
        return assemble(args);
    }
    // What is wrong with flags and schemas is said before stdin is waited for.
    let schema = args.schema.load()?;
    let named = args.schema.named_message().and(schema.as_ref());
    named.map(|schema| args.schema.message(schema)).transpose()?;
    let (name, source) = args.input.open()?;
    let file = OutputFile::open(args.output.as_deref())?;
    // A live capture is written as it arrives.
    let is_live = matches!(source, Source::Capture(_)) && name == STDIN;
    let mut writer = file.writer(is_live)?;
    let syntax = if args.format == Format::Json { Syntax::Json } else { Syntax::Text };
    let mut output = Escaping::new(&mut writer, syntax, paint::is_on(args.color, file.is_stdout()));
    let problem = match source {
        Source::Bytes(input) => of_bytes(args, schema.as_ref(), &input, &mut output)?,
        Source::Capture(_) if args.schema.named_message().is_some() || args.framing.is_some() => {
            return Err(Failure::bad_arguments(format!(
                "{name} is a capture, whose methods define the types; leave out --type and --framing"
            )));
        }
        Source::Capture(reader) => capture::inspect(args, schema.as_ref(), name, reader, &mut output)?,
    };
    written(writer.finish())?;
    match problem {
        None => Ok(ExitCode::SUCCESS),
        Some(problem) => Err(Failure::failed(problem)),
    }
}

/// One message or several, or an exchange; gives what is wrong with it.
fn of_bytes(
    args: &InspectArgs,
    schema: Option<&Schema>,
    input: &Input,
    output: &mut dyn Write,
) -> Result<Option<String>, Failure> {
    if args.verbose || !args.call.is_empty() || args.keylog.is_some() {
        return Err(Failure::bad_arguments(format!(
            "-v, --call and --keylog need a capture; {} is neither pcap nor pcapng",
            input.name
        )));
    }
    let Some(exchange) = Exchange::read(&input.bytes) else {
        let message_type = schema.map(|schema| args.schema.message(schema)).transpose()?;
        let inspection = Inspection::of(input, message_type, args.framing.map(Framing::from));
        take_apart(args, &inspection, output)?;
        return Ok(inspection.verdict());
    };
    let failed = |why: String| Failure::failed(format!("{}: {why}", input.name));
    let exchange = exchange.map_err(failed)?;
    let types = exchange.types().map_err(failed)?;
    show(args, &exchange.transcript(&input.name, &types).map_err(failed)?, &types, output)
}

/// Writes a call; gives what is wrong with its messages.
fn show(
    args: &InspectArgs,
    call: &Transcript<'_>,
    schema: &Schema,
    output: &mut dyn Write,
) -> Result<Option<String>, Failure> {
    let inspections = call.inspections();
    if args.format == Format::Json {
        written(writeln!(output, "{:#}", call.json(&inspections)))?;
    } else {
        written(output.write_all(call::heading(call).as_bytes()))?;
        for (_, inspection) in &inspections {
            take_apart(args, inspection, output)?;
            written(output.write_all(b"\n"))?;
        }
        written(output.write_all(call::ending(call, schema)?.as_bytes()))?;
    }
    Ok(inspections.iter().find_map(|(_, inspection)| inspection.verdict()))
}

/// Writes what an input has.
fn take_apart(
    args: &InspectArgs,
    inspection: &Inspection<'_>,
    output: &mut dyn Write,
) -> Result<(), Failure> {
    written(match args.format {
        Format::Tree => {
            let paint = paint::paint(args.color, args.output.is_none());
            let width = args.width.map_or_else(|| paint::width(args.output.is_none()), usize::from);
            write::tree(inspection, output, paint, width, args.full)
        }
        Format::Text => {
            let heading =
                "# Written by `thalweg inspect -O text`; `thalweg inspect --assemble` makes bytes of it.\n";
            output.write_all(heading.as_bytes()).and_then(|()| write::text(inspection, output))
        }
        Format::Json => write::json(inspection, output),
    })
}

impl InspectArgs {
    /// The secrets of TLS connections, if they are named.
    fn key_log(&self) -> Result<Option<KeyLog>, Failure> {
        let Some(path) = &self.keylog else { return Ok(None) };
        let failed = |why: String| Failure::failed(format!("{}: {why}", path.display()));
        let text = fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        KeyLog::parse(&text).map(Some).map_err(|error| failed(error.to_string()))
    }
}

/// Makes bytes of a text.
fn assemble(args: &InspectArgs) -> Result<ExitCode, Failure> {
    let file = OutputFile::open(args.output.as_deref())?;
    if file.is_stdout() {
        terminal::check_takes_bytes("use -o FILE or a pipe (… | xxd)")?;
    }
    let input = args.input.read()?;
    let text = std::str::from_utf8(&input.bytes)
        .map_err(|error| Failure::failed(format!("{} is not text: {error}", input.name)))?
        .trim_start_matches(BYTE_ORDER_MARK);
    let bytes = text::assemble(text).map_err(|error| Failure::failed(format!("{}: {error}", input.name)))?;
    file.write_bytes(&bytes)?;
    Ok(ExitCode::SUCCESS)
}
