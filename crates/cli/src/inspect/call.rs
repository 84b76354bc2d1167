//! Text of a call around its messages: metadata before them; trailers, status and times after.

use std::fmt::Write;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use thalweg::{Code, Status};
use thalweg_dynamic::details_by;
use thalweg_inspect::transcript::Transcript;
use thalweg_measure::figures::time;
use thalweg_protobuf::{Schema, printable};

use crate::status;

/// Returns the method and metadata.
pub(super) fn heading(call: &Transcript<'_>) -> String {
    let Transcript { target, started, .. } = call;
    let method = call.method.as_deref().unwrap_or("(headers are not in the capture)");
    let title = match &call.captured {
        Some(it) => {
            format!(
                "call {}: {method} at {target}, from {}, stream {}, {started}",
                it.call, it.client, it.stream
            )
        }
        None => format!("{method} at {target}, {started}"),
    };
    let mut text = format!("{}\n", printable::line(&title));
    for (mark, metadata) in [("> ", &call.request_metadata), ("< ", &call.response_metadata)] {
        fields(&mut text, mark, metadata.as_deref());
    }
    text + "\n"
}

/// Returns trailers, status, times and notes. `schema` may declare types of status details.
pub(super) fn ending(call: &Transcript<'_>, schema: &Schema) -> String {
    let mut text = String::new();
    fields(&mut text, "< trailer ", call.trailers.as_deref());
    text.push_str(&outcome(call, schema));
    text.push('\n');
    for phase in &call.phases {
        let line = format!("* {:<14} at {:>9}  {}", phase.name, time(phase.ended_ns as f64), phase.note);
        text.push_str(&printable::line(line.trim_end()));
        text.push('\n');
    }
    for note in call.captured.iter().flat_map(|captured| &captured.notes) {
        // Writing to a String does not fail, here and below.
        let _ = writeln!(text, "note: {note}");
    }
    text
}

fn fields(text: &mut String, mark: &str, metadata: Option<&[(String, String)]>) {
    for (name, value) in metadata.unwrap_or_default() {
        let _ = writeln!(text, "{mark}{}", printable::line(&format!("{name}: {value}")));
    }
}

/// Returns the status with details, or why there is none.
fn outcome(call: &Transcript<'_>, schema: &Schema) -> String {
    let Some(status) = &call.status else {
        return call.captured.as_ref().map_or(String::new(), |captured| captured.ended.clone());
    };
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    // Invalid Base64 is visible among the trailers.
    let details = GeneralPurpose::new(&STANDARD, config).decode(&status.details).unwrap_or_default();
    let status = Status::with_details(Code::from_i32(status.code), status.message.clone(), details.into());
    status::described(&status, details_by(&status, schema))
}
