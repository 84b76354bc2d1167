//! `thalweg inspect`.

mod compressed;
mod input;
mod inspection;
mod json;
mod paint;
mod saved;
mod sizes;
mod tree;

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use thalweg_protobuf::MessageType;
use thalweg_protobuf::dissect::framing::{Detection, Framing, detect, split};
use thalweg_protobuf::dissect::{Limits, Message, Span, dissect, text};

use crate::exchange::Exchange;
use crate::failure::Failure;
use crate::schema::SchemaArgs;
use compressed::Opened;
use input::Input;
use inspection::Inspection;
use paint::{ColorChoice, Paint};

const EXAMPLES: &str = "\
Examples:
  thalweg inspect message.bin --proto shop.proto --type shop.Order
  thalweg inspect exchange.json                    # what `thalweg call --save` wrote
  thalweg inspect --hex '0a 05 68 65 6c 6c 6f'
  thalweg inspect message.bin -O text | thalweg inspect --assemble -o same.bin";

/// Take Protobuf bytes apart: where each tag, length and value lies, what it may mean, and what all of it costs
///
/// Malformed or truncated input: what was understood until then, where it stops and why; exit code 1.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    input: input::InputArgs,

    #[command(flatten)]
    schema: SchemaArgs,

    /// How messages are kept apart [default: what fits, which is said]
    #[arg(long, value_enum, value_name = "FRAMING")]
    framing: Option<FramingChoice>,

    /// tree: bytes beside their meaning, and sizes; text: what --assemble makes the same bytes of; json: schema
    /// thalweg.inspect/1
    #[arg(short = 'O', long, value_enum, default_value_t = Format::Tree)]
    format: Format,

    /// Make bytes of the text that `-O text` wrote, instead of taking bytes apart
    #[arg(
        long,
        conflicts_with_all = [
            "hex", "base64", "proto", "descriptor_set", "message", "framing", "format", "full", "color", "width",
        ]
    )]
    assemble: bool,

    /// Write to this file, not to stdout
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Show long values and long lists to their ends
    #[arg(long)]
    full: bool,

    /// When to use colours; auto: on a terminal, unless NO_COLOR is set
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    color: ColorChoice,

    /// How many columns the tree may take [default: the terminal's; elsewhere 100]
    #[arg(long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(40..))]
    width: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Tree,
    /// For people and --assemble
    Text,
    /// For programs
    Json,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FramingChoice {
    /// One message, as long as the input
    Protobuf,
    /// Messages with gRPC's flags and length before them
    Grpc,
    /// Messages with a varint of length before them
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
    let message_type = schema.as_ref().map(|schema| args.schema.message(schema)).transpose()?;
    let input = args.input.read()?;
    let mut output = output(args)?;
    let problem = match Exchange::read(&input.bytes) {
        Some(exchange) => {
            let exchange = exchange.map_err(|why| Failure::failed(format!("{}: {why}", input.name)))?;
            saved::inspect(
                &exchange,
                &input.name,
                &mut output,
                args.format == Format::Json,
                |part, output| {
                    take_apart(args, part.input, Some(part.message_type), Some(Framing::Grpc), output)
                },
            )?
        }
        None => take_apart(args, &input, message_type, args.framing.map(Framing::from), &mut output)?,
    };
    ended(output.flush())?;
    match problem {
        None => Ok(ExitCode::SUCCESS),
        Some(problem) => Err(Failure::failed(problem)),
    }
}

/// Writes what an input has, and gives what is wrong with it.
fn take_apart(
    args: &InspectArgs,
    input: &Input,
    message_type: Option<MessageType<'_>>,
    framing: Option<Framing>,
    output: &mut dyn Write,
) -> Result<Option<String>, Failure> {
    let limits = Limits::default();
    let detection = framing.is_none().then(|| detected(&input.bytes, message_type, &limits));
    let said = framing.unwrap_or(Framing::Protobuf);
    let framing = detection.as_ref().map_or(said, |detection| detection.framing);
    let frames = split(&input.bytes, framing, &limits);
    let open = |frame| Opened::new(&input.bytes, frame, message_type, &limits);
    let inspection = Inspection {
        input,
        message_type,
        framing,
        detection,
        frames: frames.frames.iter().copied().map(open).collect(),
        rest: frames.rest,
        rest_problem: frames.problem.clone(),
    };
    let written = match args.format {
        Format::Tree => {
            let paint = Paint::new(args.color, args.output.is_none());
            let width = args.width.map_or_else(|| paint::width(args.output.is_none()), usize::from);
            tree::write(output, &inspection, paint, width, args.full)
                .and_then(|()| sizes::write(output, &inspection, paint, args.full))
        }
        Format::Text => {
            let messages: Vec<Option<Message>> =
                inspection.frames.iter().map(|opened| opened.plain().cloned()).collect();
            let heading =
                "# Written by `thalweg inspect -O text`; `thalweg inspect --assemble` makes bytes of it.\n";
            let text = text::write_frames(&input.bytes, &frames, &messages);
            output.write_all(heading.as_bytes()).and_then(|()| output.write_all(text.as_bytes()))
        }
        Format::Json => json::write(output, &inspection),
    };
    ended(written)?;
    Ok(inspection.verdict())
}

/// Makes bytes of a text.
fn assemble(args: &InspectArgs) -> Result<ExitCode, Failure> {
    if args.output.is_none() && io::stdout().is_terminal() {
        return Err(Failure::bad_arguments(
            "the bytes would go to the terminal: say -o FILE, or send them on (… | xxd)",
        ));
    }
    let input = args.input.read_any()?;
    let text = std::str::from_utf8(&input.bytes)
        .map_err(|error| Failure::failed(format!("{} is no text: {error}", input.name)))?;
    let bytes = text::assemble(text).map_err(|error| Failure::failed(format!("{}: {error}", input.name)))?;
    let mut output = output(args)?;
    ended(output.write_all(&bytes).and_then(|()| output.flush()))?;
    Ok(ExitCode::SUCCESS)
}

fn output(args: &InspectArgs) -> Result<Box<dyn Write>, Failure> {
    Ok(match &args.output {
        Some(path) => {
            let file = fs::File::create(path)
                .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))?;
            Box::new(io::BufWriter::new(file))
        }
        None => Box::new(io::BufWriter::new(io::stdout().lock())),
    })
}

fn ended(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        // Whoever read has seen enough (`thalweg inspect … | head`).
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| Failure::failed(format!("cannot write the result: {error}"))),
    }
}

/// The framing that fits, and makes of all messages what the schema says, if that can be.
fn detected(bytes: &[u8], message_type: Option<MessageType>, limits: &Limits) -> Detection {
    let shallow = Limits { depth_max: 1, ..*limits };
    let fits = |span: Span| {
        let message = dissect(bytes, span, message_type, &shallow);
        message.records.iter().all(|record| record.known().is_some())
    };
    if message_type.is_some() {
        let detection = detect(bytes, limits, fits);
        if detection.fits {
            return detection;
        }
    }
    detect(bytes, limits, |_| true)
}
