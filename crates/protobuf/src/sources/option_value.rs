//! Interpreted options.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::pool::{FieldId, Pool};

/// A message whose type is known to the [`Pool`]: fields by number.
#[derive(Clone, Debug, Default)]
pub(super) struct OptionMessage {
    pub(super) fields: BTreeMap<i32, OptionField>,
}

#[derive(Clone, Debug)]
pub(super) struct OptionField {
    pub(super) field: FieldId,
    /// One, unless the field is repeated.
    pub(super) values: Vec<OptionValue>,
}

#[derive(Clone, Debug)]
pub(super) enum OptionValue {
    Varint(u64),
    Fixed32(u32),
    Fixed64(u64),
    Bytes(Rc<[u8]>),
    Message(OptionMessage),
}

impl OptionMessage {
    pub(super) fn value(&self, number: i32) -> Option<&OptionValue> {
        self.fields.get(&number)?.values.last()
    }

    /// The value of a number, boolean or enum.
    pub(super) fn varint(&self, number: i32) -> Option<u64> {
        match self.value(number)? {
            OptionValue::Varint(value) => Some(*value),
            _ => None,
        }
    }

    pub(super) fn flag(&self, number: i32) -> bool {
        self.varint(number).is_some_and(|value| value != 0)
    }

    pub(super) fn text(&self, number: i32) -> Option<String> {
        match self.value(number)? {
            OptionValue::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            _ => None,
        }
    }

    pub(super) fn message(&self, number: i32) -> Option<&OptionMessage> {
        match self.value(number)? {
            OptionValue::Message(message) => Some(message),
            _ => None,
        }
    }

    pub(super) fn messages(&self, number: i32) -> impl Iterator<Item = &OptionMessage> {
        let values = self.fields.get(&number).into_iter().flat_map(|field| &field.values);
        values.filter_map(|value| match value {
            OptionValue::Message(message) => Some(message),
            _ => None,
        })
    }

    pub(super) fn varints(&self, number: i32) -> impl Iterator<Item = u64> {
        let values = self.fields.get(&number).into_iter().flat_map(|field| &field.values);
        values.filter_map(|value| match value {
            OptionValue::Varint(value) => Some(*value),
            _ => None,
        })
    }

    /// Adds a value of a field. A member of a oneof replaces the others.
    pub(super) fn add(&mut self, pool: &Pool, field: FieldId, value: OptionValue) {
        self.leave_oneof(pool, field);
        let number = pool[field].number;
        self.fields.entry(number).or_insert(OptionField { field, values: Vec::new() }).values.push(value);
    }

    /// The message in a singular field, made if it is not there.
    pub(super) fn enter(&mut self, pool: &Pool, field: FieldId) -> &mut OptionMessage {
        self.leave_oneof(pool, field);
        let entry = self.fields.entry(pool[field].number);
        let values = &mut entry.or_insert(OptionField { field, values: Vec::new() }).values;
        if !matches!(values.last(), Some(OptionValue::Message(_))) {
            values.push(OptionValue::Message(OptionMessage::default()));
        }
        match values.last_mut() {
            Some(OptionValue::Message(message)) => message,
            _ => unreachable!("a message was pushed above"),
        }
    }

    fn leave_oneof(&mut self, pool: &Pool, field: FieldId) {
        if let (Some(oneof), false) = (pool[field].oneof, pool[field].is_extension()) {
            self.fields.retain(|_, other| {
                other.field == field
                    || pool[other.field].is_extension()
                    || pool[other.field].oneof != Some(oneof)
            });
        }
    }
}
