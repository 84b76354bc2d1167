//! Conditions under which parts of a page are shown.

use std::collections::BTreeMap;

/// With which values of choices something is shown: all named choices must have one of the values, or be empty.
pub type When = BTreeMap<&'static str, Vec<String>>;

/// Returns a condition of one choice.
pub fn when(choice: &'static str, values: impl IntoIterator<Item = impl Into<String>>) -> When {
    When::from([(choice, values.into_iter().map(Into::into).collect())])
}

/// Returns a condition as the page's script reads it. `None` if it always holds.
pub(super) fn when_json(when: &When) -> Option<String> {
    (!when.is_empty()).then(|| serde_json::to_string(when).expect("a map of strings is JSON"))
}
