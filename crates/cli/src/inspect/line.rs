//! One line per call, in columns.

use std::fmt::Write;
use std::time::Duration;

use thalweg_inspect::capture::{Call, CallDirection};
use thalweg_measure::code::code_name;
use thalweg_measure::figures::time;
use thalweg_measure::size::ByteSize;
use thalweg_protobuf::printable;

/// Returns the column headings.
pub(super) fn heading() -> String {
    format!(
        "{:>5}  {:<15}  {:>8}  {:<19}  {:<14}  {:<14}  method, client > server\n",
        "call", "began (UTC)", "took", "status", "requests", "responses"
    )
}

/// Returns the call's line and a line per note.
pub(super) fn line(number: u64, call: &Call) -> String {
    let method = call.method().unwrap_or_else(|| "(headers are not in the capture)".to_owned());
    let took = call.ended_at.saturating_sub(call.started_at());
    let mut text = format!(
        "{number:>5}  {}  {:>8}  {:<19}  {:<14}  {:<14}  {}, {} > {}\n",
        time_of_day(call.started_at()),
        time(took.as_nanos() as f64),
        ended(call),
        messages(&call.request),
        messages(&call.response),
        printable::line(&method),
        call.client,
        call.server,
    );
    for note in &call.notes {
        // Writing to a String does not fail.
        let _ = writeln!(text, "       {}", printable::line(note));
    }
    text
}

/// Returns the status name, or how the call ended without one.
pub(super) fn ended(call: &Call) -> String {
    call.status().map_or_else(|| call.end.to_string(), |code| code_name(code).to_owned())
}

/// Returns count and size: `2, 4.10 KB`.
fn messages(side: &CallDirection) -> String {
    format!("{}, {}", side.message_count, ByteSize(side.message_bytes))
}

/// Formats a time since 1970 as `13:04:05.000123`.
fn time_of_day(at: Duration) -> String {
    let seconds = at.as_secs() % 86_400;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}.{:06}", seconds % 60, at.subsec_micros())
}
