//! What its user calls a run.

use std::collections::BTreeMap;

/// What its user calls a run, for those who read the result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// Its name.
    pub name: Option<String>,
    /// Texts by what they are.
    pub tags: BTreeMap<String, String>,
}

impl Label {
    /// What all of these have.
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
