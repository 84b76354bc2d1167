//! Conditions under which parts of a page are shown.

use std::collections::BTreeMap;

/// A condition: each named choice must have one of its values, or be empty.
pub type When = BTreeMap<&'static str, Vec<String>>;

/// Returns a condition of one choice.
pub fn when(choice: &'static str, values: impl IntoIterator<Item = impl Into<String>>) -> When {
    When::from([(choice, values.into_iter().map(Into::into).collect())])
}

/// Returns a condition in the script's format, or `None` if it always holds.
pub(super) fn when_json(when: &When) -> Option<String> {
    (!when.is_empty()).then(|| serde_json::to_string(when).expect("a map of strings is JSON"))
}
