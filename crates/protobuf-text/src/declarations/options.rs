//! Options as declarations have them.

use thalweg_protobuf::json::PrintOptions;
use thalweg_protobuf::{Field, Message, MessageRef, Value};

use super::descriptor::message;
use super::names::Names;
use crate::text_format;

/// A name and its value, which may have several lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OptionText {
    pub(super) name: String,
    pub(super) value: String,
}

impl OptionText {
    pub(super) fn new(name: &str, value: String) -> Self {
        Self { name: name.to_owned(), value }
    }
}

/// The options of a descriptor.
pub(super) fn options(names: &Names, scope: &str, of: MessageRef<'_>) -> Vec<OptionText> {
    let mut options = Vec::new();
    if let Some(set) = message(of, "options") {
        add(names, scope, "", set, &mut options);
    }
    options
}

fn add(names: &Names, scope: &str, prefix: &str, of: MessageRef<'_>, options: &mut Vec<OptionText>) {
    for (field, value) in of.fields() {
        let name = if field.is_extension() {
            format!("{prefix}({})", names.reference(scope, &field.full_name()))
        } else {
            format!("{prefix}{}", field.name())
        };
        match (field.name(), value) {
            // Made by the compiler, or not understood by it.
            ("map_entry" | "uninterpreted_option", _) if !field.is_extension() => {}
            // By convention features are written one by one.
            ("features", Value::Message(features)) if prefix.is_empty() && !is_empty(features) => {
                add(names, scope, "features.", features, options);
            }
            (_, Value::Message(inner)) if prefix == "features." && !is_empty(inner) => {
                add(names, scope, &format!("{name}."), inner, options);
            }
            _ => options
                .extend(values(of, field).into_iter().map(|value| OptionText { name: name.clone(), value })),
        }
    }
}

fn is_empty(message: MessageRef<'_>) -> bool {
    message.fields().next().is_none()
}

/// The values of an option, one of which may be a message in text format.
fn values(of: MessageRef<'_>, field: Field<'_>) -> Vec<String> {
    // Text format writes a message that has this field alone.
    let Ok(mut alone) = Message::decode(of.message_type(), of.encode_to_vec()) else { return Vec::new() };
    let others: Vec<u32> =
        of.fields().map(|(other, _)| other.number()).filter(|it| *it != field.number()).collect();
    for other in others {
        alone.as_mut().clear(other);
    }
    let options = PrintOptions { pretty: true, allow_partial: true, ..PrintOptions::default() };
    let mut text = String::new();
    if text_format::print(of.message_type(), &alone.as_ref().encode_to_vec(), &options, &mut text).is_err() {
        return Vec::new();
    }
    let mut values: Vec<String> = Vec::new();
    for line in text.lines() {
        let is_within = line.starts_with([' ', '}']);
        match values.last_mut() {
            Some(value) if is_within => {
                value.push('\n');
                value.push_str(line);
            }
            // Fields that nobody declares have numbers for names.
            _ if line.starts_with(|c: char| c.is_ascii_digit()) => break,
            _ => values.extend(value_of(line)),
        }
    }
    values
}

/// The text behind the name of a line.
fn value_of(line: &str) -> Option<String> {
    let behind = match line.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.1,
        None => line.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_'),
    };
    Some(behind.trim_start_matches([':', ' ']).to_owned())
}
