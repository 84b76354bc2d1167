//! Calls of a packet capture, as lines or in detail.

use std::io::{Read, Write};

use thalweg_inspect::capture::{Call, CaptureError, KeyLog, Limits, Summary, read_with_keys};
use thalweg_measure::wording::counted;
use thalweg_protobuf::Schema;

use super::arguments::{Format, InspectArgs};
use super::line;
use super::selection::{self, Selection};
use super::show::show;
use crate::failure::Failure;
use crate::terminal::written;

/// Writes calls as they end, then a summary. Returns the problem found in the capture, if any.
pub(super) fn inspect(
    args: &InspectArgs,
    schema: Option<&Schema>,
    name: &str,
    input: impl Read + Send,
    output: &mut dyn Write,
) -> Result<Option<String>, Failure> {
    let empty = Schema::from_descriptor_set(&[]).map_err(Failure::failed)?;
    let schema = schema.unwrap_or(&empty);
    let keys = args.key_log()?;
    let (mut number, mut shown) = (0, 0);
    let mut outcome: Result<Option<String>, Failure> = Ok(None);
    let (limits, no_keys) = (Limits::default(), KeyLog::default());
    let read = read_with_keys(input, &limits, keys.as_ref().unwrap_or(&no_keys), |call| {
        number += 1;
        if !selection::has(&args.call, number, &call) {
            return true;
        }
        shown += 1;
        match (one(args, number, &call, shown == 1, schema, output), &mut outcome) {
            (Ok(found), Ok(known)) => *known = known.take().or(found),
            (failed, outcome) => *outcome = failed,
        }
        // Live captures are shown as they arrive.
        let flushed = output.flush();
        outcome.is_ok() && flushed.is_ok()
    });
    let summary = read.map_err(|error| match error {
        CaptureError::Io(error) => Failure::failed(format!("failed to read {name}: {error}")),
        CaptureError::Format => Failure::failed(format!("{name}: {error}")),
    })?;
    let problem = outcome?;
    let ending = if args.format == Format::Json {
        format!("{:#}\n", summary.json(name, shown, keys.is_some()))
    } else {
        text(&summary, shown, keys.is_some())
    };
    written(output.write_all(ending.as_bytes()))?;
    Ok(summary.problem.map(|problem| format!("{name}: {problem}")).or(problem))
}

fn one(
    args: &InspectArgs,
    number: u64,
    call: &Call,
    is_first: bool,
    schema: &Schema,
    output: &mut dyn Write,
) -> Result<Option<String>, Failure> {
    let has_details = args.verbose || args.call.iter().any(|which| matches!(which, Selection::Numbers(_)));
    let is_text = args.format != Format::Json;
    if is_text && !has_details {
        let heading = if is_first { line::heading() } else { String::new() };
        written(write!(output, "{heading}{}", line::line(number, call)))?;
        return Ok(None);
    }
    if is_text && !is_first {
        written(writeln!(output))?;
    }
    show(args, &call.transcript(number, &line::ended(call), schema), schema, output)
}

/// Returns the summary of the capture.
fn text(summary: &Summary, shown: u64, has_keys: bool) -> String {
    let Summary { calls, http2, packets, .. } = *summary;
    let (connections, packets) = (counted(http2, "HTTP/2 connection"), counted(packets, "packet"));
    let mut text = if calls == 0 {
        format!("no gRPC calls on {connections}, {packets}\n")
    } else {
        let of = if shown < calls { format!("{shown} of ") } else { String::new() };
        format!("\n{of}{} on {connections}, {packets}\n", counted(calls, "call"))
    };
    for note in summary.notes(has_keys) {
        text.extend(["note: ", &note, "\n"]);
    }
    text
}
