//! `thalweg inspect`.

mod arguments;
mod call;
mod capture;
mod input;
mod line;
mod paint;
mod selection;
mod show;

use std::io::Write;
use std::process::ExitCode;

use arguments::Format;
pub(crate) use arguments::InspectArgs;
use input::STDIN;
use show::{show, take_apart};
use thalweg_dynamic::texts::BYTE_ORDER_MARK;
use thalweg_inspect::exchange::Exchange;
use thalweg_inspect::{Input, Inspection, Source};
use thalweg_protobuf::Schema;
use thalweg_protobuf_text::dissect::framing::Framing;
use thalweg_protobuf_text::dissect::text;

use crate::failure::Failure;
use crate::output::OutputFile;
use crate::terminal::{self, Escaping, Syntax, written};

pub(crate) fn run(args: &InspectArgs) -> Result<ExitCode, Failure> {
    if args.assemble {
        return assemble(args);
    }
    // Reports errors in flags and schemas before waiting for stdin.
    let schema = args.schema.load()?;
    let named = args.schema.named_message().and(schema.as_ref());
    named.map(|schema| args.schema.message(schema)).transpose()?;
    let (name, source) = args.input.open()?;
    let file = OutputFile::open(args.output.as_deref())?;
    // A live capture is flushed as it arrives.
    let is_live = matches!(source, Source::Capture(_)) && name == STDIN;
    let mut writer = file.writer(is_live)?;
    let syntax = if args.format == Format::Json { Syntax::Json } else { Syntax::Text };
    let mut output = Escaping::new(&mut writer, syntax, paint::is_on(args.color, file.is_stdout()));
    let problem = match source {
        Source::Bytes(input) => of_bytes(args, schema.as_ref(), &input, &mut output)?,
        Source::Capture(_) if args.schema.named_message().is_some() || args.framing.is_some() => {
            return Err(Failure::bad_arguments(format!(
                "{name} is a capture, where methods define the types; leave out --type and --framing"
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

/// Inspects messages or an exchange. Returns the problem found, if any.
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

/// Converts text to bytes.
fn assemble(args: &InspectArgs) -> Result<ExitCode, Failure> {
    let file = OutputFile::open(args.output.as_deref())?;
    if file.is_stdout() {
        terminal::check_takes_bytes("use -o FILE or a pipe (… | xxd)")?;
    }
    let input = args.input.read()?;
    let text = std::str::from_utf8(&input.bytes)
        .map_err(|error| Failure::failed(format!("failed to read {} as text: {error}", input.name)))?
        .trim_start_matches(BYTE_ORDER_MARK);
    let bytes = text::assemble(text).map_err(|error| Failure::failed(format!("{}: {error}", input.name)))?;
    file.write_bytes(&bytes)?;
    Ok(ExitCode::SUCCESS)
}
