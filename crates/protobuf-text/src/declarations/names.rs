//! Full names, and how references are written.

use std::collections::BTreeSet;

use thalweg_protobuf::MessageRef;

use super::descriptor::{Declared, joined, list, text};

/// Full names of packages and declarations.
#[derive(Clone, Debug, Default)]
pub(super) struct Names(BTreeSet<String>);

impl Names {
    pub(super) fn of<'a>(files: impl Iterator<Item = MessageRef<'a>>) -> Self {
        let mut names = BTreeSet::new();
        for file in files {
            let package = text(file, "package");
            names.extend(package.match_indices('.').map(|(at, _)| package[..at].to_owned()));
            names.insert(package.to_owned());
            add(file, Declared::File, package, &mut names);
        }
        Self(names)
    }

    /// Returns `name` as a reference within `scope`, with a leading dot if its first part would resolve to something
    /// else.
    pub(super) fn reference(&self, scope: &str, name: &str) -> String {
        let name = name.trim_start_matches('.');
        let first = name.split('.').next().unwrap_or(name);
        let mut scope = scope;
        while !scope.is_empty() {
            if self.0.contains(&format!("{scope}.{first}")) {
                return format!(".{name}");
            }
            scope = scope.rsplit_once('.').map_or("", |(outer, _)| outer);
        }
        name.to_owned()
    }
}

fn add(of: MessageRef<'_>, declared: Declared, scope: &str, names: &mut BTreeSet<String>) {
    for &(field, _, part) in declared.parts() {
        for descriptor in list(of, field) {
            let full_name = joined(scope, text(descriptor, "name"));
            add(descriptor, part, &full_name, names);
            names.insert(full_name);
        }
    }
}
