//! Interpreted options.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::ids::FieldId;

/// Maximum nesting depth of option messages: descriptor decoders have a limit of 100.
pub(super) const OPTION_DEPTH_MAX: usize = 90;

/// A message whose type is in the pool: fields by number.
#[derive(Clone, Debug, Default)]
pub(super) struct OptionMessage {
    pub(super) fields: BTreeMap<i32, OptionField>,
}

#[derive(Clone, Debug)]
pub(super) struct OptionField {
    pub(super) field: FieldId,
    /// A single value, unless the field is repeated.
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

    /// Returns the value of a number, boolean or enum.
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
}
