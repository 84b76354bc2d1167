//! Name and tags of a run.

use std::collections::BTreeMap;

/// Name and tags the user gives a run, for readers of the result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// Name of the run.
    pub name: Option<String>,
    /// Tags by key.
    pub tags: BTreeMap<String, String>,
}

impl Label {
    /// Returns the name and tags common to all labels.
    pub(crate) fn common<'l>(
        mut labels: impl Iterator<Item = (&'l Option<String>, &'l BTreeMap<String, String>)>,
    ) -> Self {
        let Some((name, tags)) = labels.next() else { return Self::default() };
        let mut common = Self { name: name.clone(), tags: tags.clone() };
        for (name, tags) in labels {
            common.name = common.name.filter(|common| name.as_ref() == Some(common));
            common.tags.retain(|key, value| tags.get(key) == Some(value));
        }
        common
    }
}
