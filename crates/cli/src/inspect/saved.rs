//! An exchange that `thalweg call --save` has written.

use std::fmt::Write as _;
use std::io::{self, Write};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;
use thalweg_lab::figures::time;
use thalweg_protobuf::{MessageType, Schema};

use super::input::Input;
use crate::exchange::{Exchange, SavedMessage};
use crate::failure::Failure;

/// The messages of one direction, each with gRPC's prefix before it.
pub(super) struct Part<'a> {
    pub(super) input: &'a Input,
    pub(super) message_type: MessageType<'a>,
}

/// Writes the exchange, its messages by `take_apart`, which gives what is wrong with them.
pub(super) fn inspect(
    exchange: &Exchange,
    name: &str,
    output: &mut dyn Write,
    is_json: bool,
    mut take_apart: impl FnMut(&Part<'_>, &mut dyn Write) -> Result<Option<String>, Failure>,
) -> Result<Option<String>, Failure> {
    let failed = |why: String| Failure::failed(format!("{name}: {why}"));
    let written = |written: io::Result<()>| {
        written.map_err(|error| Failure::failed(format!("cannot write the result: {error}")))
    };
    let set = BASE64_STANDARD.decode(&exchange.descriptor_set);
    let set = set.map_err(|error| failed(format!("its descriptors are no Base64: {error}")))?;
    let schema = Schema::from_descriptor_set(&set).map_err(|error| failed(error.to_string()))?;
    if !is_json {
        written(output.write_all(heading(exchange).as_bytes()))?;
    }
    let mut problem = None;
    let mut parts = Vec::new();
    for (way, messages, type_name) in [
        ("requests", &exchange.requests, &exchange.request_type),
        ("responses", &exchange.responses, &exchange.response_type),
    ] {
        let message_type = schema
            .message(type_name)
            .ok_or_else(|| failed(format!("its descriptors do not have {type_name}")))?;
        let input = Input { name: format!("{name}, {way}"), bytes: framed(messages).map_err(failed)? };
        if input.bytes.is_empty() {
            continue;
        }
        let part = Part { input: &input, message_type };
        let mut text = Vec::new();
        problem = problem.or(take_apart(&part, &mut text)?);
        if is_json {
            let document: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
            parts.push((way, document));
        } else {
            written(output.write_all(&text).and_then(|()| output.write_all(b"\n")))?;
        }
    }
    if is_json {
        let mut document = json!({
            "schema": "thalweg.inspect-exchange/1",
            "method": exchange.method,
            "target": exchange.target,
            "started": exchange.started,
            "request_metadata": exchange.request_metadata,
            "response_metadata": exchange.response_metadata,
            "trailers": exchange.trailers,
            "status": exchange.status,
            "phases": exchange.phases,
        });
        for (way, part) in parts {
            document[way] = part;
        }
        written(writeln!(output, "{document:#}"))?;
    } else {
        written(output.write_all(ending(exchange).as_bytes()))?;
    }
    Ok(problem)
}

fn heading(exchange: &Exchange) -> String {
    let mut text = format!("{} at {}, {}\n", exchange.method, exchange.target, exchange.started);
    for (name, value) in &exchange.request_metadata {
        let _ = writeln!(text, "> {name}: {value}");
    }
    for (name, value) in &exchange.response_metadata {
        let _ = writeln!(text, "< {name}: {value}");
    }
    text + "\n"
}

fn ending(exchange: &Exchange) -> String {
    let mut text = String::new();
    for (name, value) in &exchange.trailers {
        let _ = writeln!(text, "< trailer {name}: {value}");
    }
    let status = &exchange.status;
    let colon = if status.message.is_empty() { "" } else { ": " };
    let _ = writeln!(text, "{} ({}){colon}{}", status.name, status.code, status.message);
    for phase in &exchange.phases {
        let line = format!("* {:<14} at {:>9}  {}", phase.name, time(phase.ended_ns as f64), phase.note);
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// The messages as gRPC has them on the wire, not compressed.
fn framed(messages: &[SavedMessage]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    for message in messages {
        let wire = message.bytes()?;
        let length = u32::try_from(wire.len()).map_err(|_| "a message has more than 4 GiB".to_owned())?;
        bytes.push(0);
        bytes.extend(length.to_be_bytes());
        bytes.extend(wire);
    }
    Ok(bytes)
}
