//! prost-reflect's messages as text: maps sorted, and floats as bits, so that NaN is equal to itself.

use std::fmt::Write as _;

use prost_reflect::{DynamicMessage, MapKey, Value};

pub(super) fn text(message: &DynamicMessage) -> String {
    let mut out = String::new();
    write_message(&mut out, message);
    out
}

fn write_message(out: &mut String, message: &DynamicMessage) {
    out.push('{');
    for (field, value) in message.fields() {
        let _ = write!(out, "{}:", field.number());
        write_value(out, value);
    }
    for (extension, value) in message.extensions() {
        let _ = write!(out, "[{}]:", extension.number());
        write_value(out, value);
    }
    for unknown in message.unknown_fields() {
        let _ = write!(out, "?{unknown:?}");
    }
    out.push('}');
}

fn write_value(out: &mut String, value: &Value) {
    let _ = match value {
        Value::F32(value) => write!(out, "f{:x},", value.to_bits()),
        Value::F64(value) => write!(out, "d{:x},", value.to_bits()),
        Value::Message(message) => {
            write_message(out, message);
            Ok(())
        }
        Value::List(values) => {
            out.push('[');
            for value in values {
                write_value(out, value);
            }
            out.push(']');
            Ok(())
        }
        Value::Map(map) => {
            let mut entries: Vec<(&MapKey, &Value)> = map.iter().collect();
            entries.sort_by_cached_key(|(key, _)| format!("{key:?}"));
            for (key, value) in entries {
                let _ = write!(out, "({key:?}=");
                write_value(out, value);
                out.push(')');
            }
            Ok(())
        }
        other => write!(out, "{other:?},"),
    };
}
