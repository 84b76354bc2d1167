//! Finds the message type to use.

use thalweg_protobuf::{MessageType, Schema};

use crate::resolved_method::LookUpError;
use crate::suggestions::{listed, suggest};

/// Looks up a message type by full name or unique suffix. Without a name, returns the only declared type.
///
/// # Errors
///
/// Returns an error for an unknown or ambiguous name.
pub fn message<'s>(schema: &'s Schema, name: Option<&str>) -> Result<MessageType<'s>, LookUpError> {
    let found = match name {
        Some(name) => named(schema, name.trim_start_matches('.')),
        None => only(schema),
    };
    found.map_err(LookUpError::Unknown)
}

fn named<'s>(schema: &'s Schema, name: &str) -> Result<MessageType<'s>, String> {
    if let Some(message) = schema.message(name) {
        return Ok(message);
    }
    let end = format!(".{name}");
    let candidates: Vec<MessageType> =
        declared(schema).filter(|message| message.full_name().ends_with(&end)).collect();
    match candidates[..] {
        [message] => Ok(message),
        [] => {
            let suggestion = suggest(declared(schema).map(MessageType::full_name), name);
            Err(format!("unknown message `{name}`{suggestion}"))
        }
        _ => {
            let names = listed(candidates.iter().map(|message| message.full_name()));
            Err(format!("`{name}` is ambiguous: {names}; use a longer --type"))
        }
    }
}

fn only(schema: &Schema) -> Result<MessageType<'_>, String> {
    let own = |message: &MessageType| {
        message.parent().is_none() && !message.file().name().starts_with("google/protobuf/")
    };
    let messages: Vec<MessageType> = declared(schema).filter(own).collect();
    match messages[..] {
        [message] => Ok(message),
        [] => Err("the schema declares no messages".to_owned()),
        _ => {
            let names = listed(messages.iter().map(|message| message.full_name()));
            Err(format!("the schema declares several messages; use --type with one of {names}"))
        }
    }
}

/// Returns all messages except generated map entries.
pub(crate) fn declared(schema: &Schema) -> impl Iterator<Item = MessageType<'_>> {
    schema.messages().filter(|message| !message.is_map_entry())
}
