//! Sets fields of options messages.

use crate::sources::ids::FieldId;
use crate::sources::option_value::{OptionField, OptionMessage, OptionValue};
use crate::sources::pool::Pool;

impl OptionMessage {
    /// Adds a value of a field. A oneof member replaces the other members.
    pub(super) fn add(&mut self, pool: &Pool, field: FieldId, value: OptionValue) {
        self.leave_oneof(pool, field);
        let number = pool[field].number;
        self.fields.entry(number).or_insert(OptionField { field, values: Vec::new() }).values.push(value);
    }

    /// Returns the message in a singular field, creating it if absent.
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
