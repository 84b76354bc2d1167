//! The calls of a packet capture: a line for each, or all that is known of it.

mod details;
mod line;
mod selection;

use std::io::{Read, Write};

use serde_json::json;
use thalweg_inspect::capture::{Call, CaptureError, KeyLog, Limits, Summary};
use thalweg_measure::wording::counted;
use thalweg_protobuf::Schema;

use super::shown::{Part, show};
use crate::failure::Failure;
use crate::terminal::written;
pub(super) use selection::Selection;

/// Writes what messages are, and gives what is wrong with them.
type TakeApart<'a> = dyn FnMut(&Part<'_>, &mut dyn Write) -> Result<Option<String>, Failure> + 'a;

/// How a capture is shown.
pub(super) struct Options<'a> {
    pub(super) schema: Option<&'a Schema>,
    /// Secrets of TLS connections, if they are given.
    pub(super) keys: Option<KeyLog>,
    /// Calls that are shown; all if none are named.
    pub(super) selections: &'a [Selection],
    /// All that is known of each, not a line.
    pub(super) has_details: bool,
    pub(super) is_json: bool,
}

/// Writes calls as they end, and what else is to be said of the capture; gives what is wrong with it.
pub(super) fn inspect(
    name: &str,
    input: impl Read + Send,
    options: &Options<'_>,
    output: &mut dyn Write,
    take_apart: &mut TakeApart<'_>,
) -> Result<Option<String>, Failure> {
    let empty = Schema::from_descriptor_set(&[]).map_err(Failure::failed)?;
    let schema = options.schema.unwrap_or(&empty);
    let mut number = 0;
    let mut shown_count = 0_u64;
    let mut outcome = Ok(None);
    let no_keys = KeyLog::default();
    let keys = options.keys.as_ref().unwrap_or(&no_keys);
    let read = thalweg_inspect::capture::read_with_keys(input, &Limits::default(), keys, |call| {
        number += 1;
        if !selection::has(options.selections, number, &call) {
            return true;
        }
        shown_count += 1;
        let is_first = shown_count == 1;
        let shown = one(number, &call, is_first, schema, options, output, take_apart);
        let failed = shown.is_err();
        if let (Ok(known), Ok(found)) = (&mut outcome, &shown) {
            *known = known.take().or(found.clone());
        } else if failed {
            outcome = shown;
        }
        // Whoever looks at a capture that goes on wants to see what is there.
        let flushed = output.flush();
        !failed && flushed.is_ok()
    });
    let summary = read.map_err(|error| match error {
        CaptureError::Io(error) => Failure::failed(format!("cannot read {name}: {error}")),
        CaptureError::Format => Failure::failed(format!("{name}: {error}")),
    })?;
    let problem = outcome?;
    let ending = if options.is_json {
        format!("{:#}\n", document(name, &summary, shown_count, options))
    } else {
        text(&summary, shown_count, options)
    };
    written(output.write_all(ending.as_bytes()))?;
    Ok(summary.problem.map(|problem| format!("{name}: {problem}")).or(problem))
}

fn one(
    number: u64,
    call: &Call,
    is_first: bool,
    schema: &Schema,
    options: &Options<'_>,
    output: &mut dyn Write,
    take_apart: &mut TakeApart<'_>,
) -> Result<Option<String>, Failure> {
    if !options.is_json && !options.has_details {
        let heading = if is_first { line::heading() } else { String::new() };
        written(write!(output, "{heading}{}", line::line(number, call)))?;
        return Ok(None);
    }
    let shown = details::shown(number, call, schema)?;
    if !options.is_json && !is_first {
        written(writeln!(output))?;
    }
    show(shown, output, options.is_json, take_apart)
}

/// What else the capture has, and what it lacks.
fn text(summary: &Summary, shown_count: u64, options: &Options<'_>) -> String {
    let Summary { calls, http2, packets, .. } = *summary;
    let connections = counted(http2, "HTTP/2 connection");
    let mut text = match (shown_count, calls) {
        (_, 0) => format!("no gRPC calls on {connections}, {}\n", counted(packets, "packet")),
        (shown, all) => {
            let of = if shown < all { format!("{shown} of ") } else { String::new() };
            let (calls, packets) = (counted(all, "call"), counted(packets, "packet"));
            format!("\n{of}{calls} on {connections}, {packets}\n")
        }
    };
    for note in notes(summary, options) {
        text.push_str("note: ");
        text.push_str(&note);
        text.push('\n');
    }
    text
}

/// A sentence for each thing that was not shown.
fn notes(summary: &Summary, options: &Options<'_>) -> Vec<String> {
    let are = |count: u64| if count == 1 { "is" } else { "are" };
    let connections = |count| counted(count, "connection");
    let unknown_link = summary.unknown_link.unwrap_or_default();
    [
        (
            summary.tls,
            format!(
                "{} not decrypted: {}",
                counted(summary.tls, "TLS connection"),
                why_closed(summary, options)
            ),
        ),
        (
            summary.begun_before,
            format!(
                "{} started before the capture and cannot be decoded: its HPACK state is unknown",
                connections(summary.begun_before)
            ),
        ),
        (summary.other, format!("{} with other protocols", connections(summary.other))),
        (
            summary.other_requests,
            format!(
                "{} over HTTP/2 {} not gRPC",
                counted(summary.other_requests, "request"),
                are(summary.other_requests)
            ),
        ),
        (
            summary.gaps,
            format!(
                "{} missing from the capture, in {}",
                counted(summary.gap_bytes, "byte"),
                counted(summary.gaps, "place")
            ),
        ),
        (
            summary.cut_packets,
            format!(
                "{} {} cut off by the capture; use `tcpdump -s 0` to capture whole packets",
                counted(summary.cut_packets, "packet"),
                are(summary.cut_packets)
            ),
        ),
        (
            summary.fragments,
            format!("{} skipped: reassembly is not supported", counted(summary.fragments, "IP fragment")),
        ),
        (
            summary.unknown_links,
            format!(
                "{} skipped: unsupported link type {unknown_link}",
                counted(summary.unknown_links, "packet")
            ),
        ),
        (summary.given_up, format!("{} not followed: too many at once", connections(summary.given_up))),
        (
            summary.calls_beyond,
            format!("{} not followed: too many at once", counted(summary.calls_beyond, "call")),
        ),
    ]
    .into_iter()
    .filter_map(|(count, note)| (count > 0).then_some(note))
    .collect()
}

/// Why connections of TLS were not opened, or what to do about it.
fn why_closed<'s>(summary: &'s Summary, options: &Options<'_>) -> &'s str {
    match (&options.keys, &summary.tls_closed) {
        (None, _) => "use --keylog with the file that SSLKEYLOGFILE named",
        (Some(_), Some(why)) => why,
        (Some(_), None) => "their secrets are not in the key log",
    }
}

fn document(name: &str, summary: &Summary, shown_count: u64, options: &Options<'_>) -> serde_json::Value {
    json!({
        "schema": "thalweg.inspect-capture/1",
        "input": name,
        "packets": summary.packets,
        "calls": summary.calls,
        "shown": shown_count,
        "connections": {
            "all": summary.connections,
            "http2": summary.http2,
            "tls": summary.tls,
            "begun_before": summary.begun_before,
            "other": summary.other,
            "silent": summary.silent,
            "given_up": summary.given_up,
        },
        "cut_packets": summary.cut_packets,
        "gaps": summary.gaps,
        "gap_bytes": summary.gap_bytes,
        "notes": notes(summary, options),
        "problem": summary.problem,
    })
}
