//! Items of a library that others re-export.

use std::collections::{HashMap, HashSet};

use rustdoc_types::{Crate, Id, ItemEnum};

/// The items of `library` that one of `others` re-exports.
pub(crate) fn ids(library: &Crate, others: &[Crate]) -> HashSet<Id> {
    let ours = library.paths.iter().filter(|(_, summary)| summary.crate_id == 0);
    let ours: HashMap<&[String], Id> = ours.map(|(id, summary)| (&summary.path[..], *id)).collect();
    let uses = others.iter().flat_map(|other| {
        other.index.values().filter_map(|item| match &item.inner {
            ItemEnum::Use(used) => other.paths.get(&used.id?),
            _ => None,
        })
    });
    uses.filter_map(|summary| ours.get(&summary.path[..]).copied()).collect()
}
