//! An exchange that `thalweg call --save` has written.

use std::fmt::Write as _;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;
use thalweg_measure::figures::time;
use thalweg_protobuf::{Schema, printable};

use super::shown::{Part, Shown};
use crate::exchange::{Exchange, SavedMessage};

/// The descriptors of the exchange.
pub(super) fn schema(exchange: &Exchange) -> Result<Schema, String> {
    let set = BASE64_STANDARD.decode(&exchange.descriptor_set);
    let set = set.map_err(|error| format!("invalid Base64 in descriptors: {error}"))?;
    Schema::from_descriptor_set(&set).map_err(|error| error.to_string())
}

/// What is shown of the exchange.
pub(super) fn shown<'s>(exchange: &Exchange, name: &str, schema: &'s Schema) -> Result<Shown<'s>, String> {
    let mut parts = Vec::new();
    for (way, messages, type_name) in [
        ("requests", &exchange.requests, &exchange.request_type),
        ("responses", &exchange.responses, &exchange.response_type),
    ] {
        let message_type =
            schema.message(type_name).ok_or_else(|| format!("its descriptors lack {type_name}"))?;
        parts.push(Part::new(way, name, framed(messages)?, Some(message_type)));
    }
    let document = json!({
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
    Ok(Shown { heading: heading(exchange), parts, ending: ending(exchange), document })
}

fn heading(exchange: &Exchange) -> String {
    let title = format!("{} at {}, {}", exchange.method, exchange.target, exchange.started);
    let mut text = format!("{}\n", printable::line(&title));
    for (name, value) in &exchange.request_metadata {
        let _ = writeln!(text, "> {}", printable::line(&format!("{name}: {value}")));
    }
    for (name, value) in &exchange.response_metadata {
        let _ = writeln!(text, "< {}", printable::line(&format!("{name}: {value}")));
    }
    text + "\n"
}

fn ending(exchange: &Exchange) -> String {
    let mut text = String::new();
    for (name, value) in &exchange.trailers {
        let _ = writeln!(text, "< trailer {}", printable::line(&format!("{name}: {value}")));
    }
    let status = &exchange.status;
    let colon = if status.message.is_empty() { "" } else { ": " };
    let status = format!("{} ({}){colon}{}", status.name, status.code, status.message);
    let _ = writeln!(text, "{}", printable::line(&status));
    for phase in &exchange.phases {
        let line = format!("* {:<14} at {:>9}  {}", phase.name, time(phase.ended_ns as f64), phase.note);
        text.push_str(&printable::line(line.trim_end()));
        text.push('\n');
    }
    text
}

/// The messages as gRPC has them on the wire, not compressed.
fn framed(messages: &[SavedMessage]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    for message in messages {
        let wire = message.bytes()?;
        let length = u32::try_from(wire.len()).map_err(|_| "a message is larger than 4 GiB".to_owned())?;
        bytes.push(0);
        bytes.extend(length.to_be_bytes());
        bytes.extend(wire);
    }
    Ok(bytes)
}
