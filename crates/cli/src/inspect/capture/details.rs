//! All that a capture has of a call, as an exchange is shown that `thalweg call --save` wrote.

use std::fmt::Write;
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Value, json};
use thalweg::{Code, Status};
use thalweg_dynamic::Catalogue;
use thalweg_inspect::capture::{Call, Fields, Side};
use thalweg_measure::code::code_name;
use thalweg_measure::figures::time;
use thalweg_measure::wording::counted;
use thalweg_protobuf::Schema;

use super::line::ended;
use crate::failure::Failure;
use crate::inspect::shown::{Part, Shown};
use crate::{runtime, status};

/// What is shown of the call.
pub(super) fn shown<'s>(number: u64, call: &Call, schema: &'s Schema) -> Result<Shown<'s>, Failure> {
    let method = call.method();
    let described = method.as_deref().and_then(|method| schema.method(method));
    let types = described.map(|method| (method.input(), method.output()));
    let whose = format!("call {number}");
    let parts = vec![
        Part::new("requests", &whose, framed(&call.request), types.map(|(input, _)| input)),
        Part::new("responses", &whose, framed(&call.response), types.map(|(_, output)| output)),
    ];
    let status = said_status(call, schema)?;
    Ok(Shown {
        heading: heading(number, call),
        parts,
        ending: ending(call, &status),
        document: document(number, call),
    })
}

fn heading(number: u64, call: &Call) -> String {
    let method = call.method().unwrap_or_else(|| "(the head is not in the capture)".to_owned());
    let Call { client, server, stream, .. } = call;
    let mut text =
        format!("call {number}: {method} at {server}, from {client}, stream {stream}, {}\n", started(call));
    for (mark, side) in [('>', &call.request), ('<', &call.response)] {
        for (name, value) in side.head.iter().flat_map(metadata) {
            // Writing to a String does not fail.
            let _ = writeln!(text, "{mark} {name}: {value}");
        }
    }
    text + "\n"
}

fn ending(call: &Call, status: &str) -> String {
    let mut text = String::new();
    for (name, value) in call.trailers.iter().flat_map(metadata) {
        let _ = writeln!(text, "< trailer {name}: {value}");
    }
    text.push_str(status);
    text.push('\n');
    for (name, at, note) in phases(call) {
        let line = format!("* {name:<14} at {:>9}  {note}", time(at.as_nanos() as f64));
        text.push_str(line.trim_end());
        text.push('\n');
    }
    for (side, whose) in [(&call.request, "request"), (&call.response, "response")] {
        if side.cut_off > 0 {
            let _ = writeln!(
                text,
                "note: {} of a message of the {whose} that does not end",
                counted(side.cut_off, "byte")
            );
        }
        let kept = side.messages.len() as u64;
        if kept < side.message_count {
            let _ =
                writeln!(text, "note: {kept} of {} messages of the {whose} were kept", side.message_count);
        }
    }
    for note in &call.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

fn document(number: u64, call: &Call) -> Value {
    let phases: Vec<Value> = phases(call)
        .into_iter()
        .map(|(name, at, note)| json!({"name": name, "ended_ns": at.as_nanos() as u64, "note": note}))
        .collect();
    let status = call.status().map(|code| {
        json!({
            "code": code,
            "name": code_name(code),
            "message": call.status_message(),
            "details": field(call, "grpc-status-details-bin").unwrap_or_default(),
        })
    });
    let pairs = |fields: Option<&Fields>| fields.map(|fields| metadata(fields).collect::<Vec<_>>());
    let messages = |side: &Side| {
        json!({
            "messages": side.message_count,
            "bytes": side.message_bytes,
            "cut_off_bytes": side.cut_off,
            "at_ns": side.messages.iter().map(|message| since(call, message.at).as_nanos() as u64).collect::<Vec<_>>(),
        })
    };
    json!({
        "schema": "thalweg.inspect-call/1",
        "call": number,
        "method": call.method(),
        "target": call.server.to_string(),
        "client": call.client.to_string(),
        "stream": call.stream,
        "started": started(call),
        "request_metadata": pairs(call.request.head.as_ref()),
        "response_metadata": pairs(call.response.head.as_ref()),
        "trailers": pairs(call.trailers.as_ref()),
        "status": status,
        "ended": ended(call),
        "sent": messages(&call.request),
        "received": messages(&call.response),
        "phases": phases,
        "notes": call.notes,
    })
}

/// What was there when, since the call began.
fn phases(call: &Call) -> Vec<(&'static str, Duration, String)> {
    let described =
        |side: &Side| format!("{}, {} B", counted(side.message_count, "message"), side.message_bytes);
    let response_head = call.response.head.as_ref().and(call.response.began_at);
    let steps = [
        ("last request", call.request.last_message_at, described(&call.request)),
        ("head", response_head, String::new()),
        ("first message", call.response.first_message_at, String::new()),
        ("last message", call.response.last_message_at, described(&call.response)),
        ("end", Some(call.ended_at), ended(call)),
    ];
    let mut phases: Vec<_> =
        steps.into_iter().filter_map(|(name, at, note)| Some((name, since(call, at?), note))).collect();
    phases.sort_by_key(|(_, at, _)| *at);
    phases
}

fn since(call: &Call, at: Duration) -> Duration {
    at.saturating_sub(call.began_at())
}

fn started(call: &Call) -> String {
    match SystemTime::UNIX_EPOCH.checked_add(call.began_at()) {
        // Later years have five digits, and no form in RFC 3339.
        Some(at) if call.began_at().as_secs() < 253_402_300_800 => {
            humantime::format_rfc3339_micros(at).to_string()
        }
        _ => "at no time".to_owned(),
    }
}

/// Names and values that are the user's, or say what gRPC does.
fn metadata(fields: &Fields) -> impl Iterator<Item = (String, String)> {
    let is_told_otherwise = |name: &str| matches!(name, ":method" | ":scheme" | ":path" | ":status");
    fields
        .iter()
        .filter(move |(name, _)| !is_told_otherwise(name))
        .map(|(name, value)| (name.clone(), String::from_utf8_lossy(value).escape_debug().to_string()))
}

/// The messages as gRPC has them on the wire.
fn framed(side: &Side) -> Vec<u8> {
    let mut bytes = Vec::new();
    for message in &side.messages {
        bytes.push(message.flags);
        // It came with a length of 32 bits.
        bytes.extend((message.bytes.len() as u32).to_be_bytes());
        bytes.extend_from_slice(&message.bytes);
    }
    bytes
}

fn field(call: &Call, name: &str) -> Option<String> {
    let (_, value) = call.trailers.as_ref()?.iter().find(|(known, _)| known == name)?;
    Some(String::from_utf8_lossy(value).into_owned())
}

/// The status with its details, or what took its place.
fn said_status(call: &Call, schema: &Schema) -> Result<String, Failure> {
    let Some(code) = call.status() else { return Ok(ended(call)) };
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let details = field(call, "grpc-status-details-bin").unwrap_or_default();
    // What is no Base64 stands among the trailers all the same.
    let details = GeneralPurpose::new(&STANDARD, config).decode(details).unwrap_or_default();
    if code == 0 && details.is_empty() && call.status_message().is_empty() {
        return Ok("OK (0)".to_owned());
    }
    let status = Status::with_details(Code::from_i32(code), call.status_message(), details.into());
    let mut catalogue = Catalogue::Files { schema: schema.clone(), set: Vec::new() };
    Ok(runtime::runtime(1)?.block_on(status::described(&status, &mut catalogue)))
}
