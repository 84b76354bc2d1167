//! The names of fields that the reader knows: [`KnownNames`].

use std::cell::RefCell;
use std::collections::HashMap;

use serde_json::Value;

/// The names for which each object was read. Objects are identified by their addresses in one text's value.
#[derive(Default)]
pub(super) struct KnownNames(RefCell<HashMap<*const Value, Vec<String>>>);

impl KnownNames {
    /// Notes that an object may have a member of this name.
    pub(super) fn note(&self, object: &Value, name: &str) {
        self.0.borrow_mut().entry(object).or_default().push(name.to_owned());
    }

    /// Notes that an object has been read, and has no known members so far.
    pub(super) fn note_object(&self, object: &Value) {
        self.0.borrow_mut().entry(object).or_default();
    }

    /// Returns the names of an object's known members; `None` if nothing has read it.
    pub(super) fn of(&self, object: &Value) -> Option<Vec<String>> {
        self.0.borrow().get(&std::ptr::from_ref(object)).cloned()
    }
}
