//! Encodes interpreted options, without those of source retention.

use super::writer::Writer;
use crate::sources::option_value::{OptionField, OptionMessage, OptionValue};
use crate::sources::pool::{FieldKind, Pool};

/// `RETENTION_SOURCE` of `FieldOptions.retention`.
const RETENTION_SOURCE: u64 = 2;
/// Number of `retention` in `FieldOptions`.
const RETENTION: i32 = 17;

/// Paths of stripped options, for source info.
pub(super) struct StrippedPaths {
    path: Vec<i32>,
    found: Vec<Vec<i32>>,
    strips: bool,
}

impl StrippedPaths {
    /// Strips no options.
    pub(super) fn none() -> Self {
        StrippedPaths { path: Vec::new(), found: Vec::new(), strips: false }
    }

    pub(super) fn new() -> Self {
        StrippedPaths { strips: true, ..StrippedPaths::none() }
    }

    pub(super) fn enter(&mut self, path: &[i32]) {
        self.path.extend(path);
    }

    pub(super) fn leave(&mut self, parts: usize) {
        self.path.truncate(self.path.len() - parts);
    }

    fn strip(&mut self) {
        self.found.push(self.path.clone());
    }

    pub(super) fn finish(self) -> Vec<Vec<i32>> {
        self.found
    }
}

/// Writes an options message, unless all its options were stripped.
pub(super) fn options(
    pool: &Pool,
    number: i32,
    value: &OptionMessage,
    writer: &mut Writer,
    stripped: &mut StrippedPaths,
) {
    stripped.enter(&[number]);
    let mut nested = Writer::default();
    message(pool, value, &mut nested, stripped);
    let nested = nested.finish();
    if nested.is_empty() && !value.fields.is_empty() {
        stripped.strip();
    } else {
        writer.bytes(number, &nested);
    }
    stripped.leave(1);
}

pub(super) fn message(
    pool: &Pool,
    message: &OptionMessage,
    writer: &mut Writer,
    stripped: &mut StrippedPaths,
) {
    for (&number, field) in &message.fields {
        stripped.enter(&[number]);
        if stripped.strips && is_for_source(pool, field) {
            stripped.strip();
        } else {
            self::field(pool, number, field, writer, stripped);
        }
        stripped.leave(1);
    }
}

fn is_for_source(pool: &Pool, field: &OptionField) -> bool {
    let options = pool[field.field].options.as_deref();
    options.and_then(|options| options.value.varint(RETENTION)) == Some(RETENTION_SOURCE)
}

fn field(pool: &Pool, number: i32, field: &OptionField, writer: &mut Writer, stripped: &mut StrippedPaths) {
    let declared = &pool[field.field];
    let is_repeated = declared.is_repeated();
    if is_repeated && declared.is_packable() && declared.features.is_packed() {
        if !field.values.is_empty() {
            writer.nested(number, |writer| field.values.iter().for_each(|value| scalar(value, writer)));
        }
        return;
    }
    for (index, value) in field.values.iter().enumerate() {
        let is_in_entry = declared.message.is_some_and(|message| pool[message].is_map_entry);
        let has_presence = is_repeated
            || is_in_entry
            || declared.is_extension()
            || declared.oneof.is_some()
            || !declared.features.is_implicit();
        if !has_presence && is_zero(value) {
            continue;
        }
        match value {
            OptionValue::Varint(value) => writer.varint(number, *value),
            OptionValue::Fixed32(value) => writer.fixed32(number, *value),
            OptionValue::Fixed64(value) => writer.fixed64(number, *value),
            OptionValue::Bytes(value) => writer.bytes(number, value),
            OptionValue::Message(value) => {
                let index = if is_repeated { vec![index as i32] } else { Vec::new() };
                stripped.enter(&index);
                if declared.kind == Some(FieldKind::Group) {
                    writer.tag(number, 3);
                    message(pool, value, writer, stripped);
                    writer.tag(number, 4);
                } else {
                    writer.nested(number, |writer| message(pool, value, writer, stripped));
                }
                stripped.leave(index.len());
            }
        }
    }
}

fn scalar(value: &OptionValue, writer: &mut Writer) {
    match value {
        OptionValue::Varint(value) => writer.raw_varint(*value),
        OptionValue::Fixed32(value) => writer.raw(&value.to_le_bytes()),
        OptionValue::Fixed64(value) => writer.raw(&value.to_le_bytes()),
        OptionValue::Bytes(_) | OptionValue::Message(_) => {}
    }
}

fn is_zero(value: &OptionValue) -> bool {
    match value {
        OptionValue::Varint(value) | OptionValue::Fixed64(value) => *value == 0,
        OptionValue::Fixed32(value) => *value == 0,
        OptionValue::Bytes(value) => value.is_empty(),
        OptionValue::Message(_) => false,
    }
}
