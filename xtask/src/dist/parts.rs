//! The packages that are compiled into a program.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::target::TARGET;
use crate::failure::Result;
use crate::job::Job;
use crate::metadata::{Metadata, Package};
use crate::workspace;

/// A package and its dependencies on [`TARGET`], without build-only ones.
pub(super) struct Parts {
    /// Begins with the package itself.
    all: Vec<Part>,
}

pub(super) struct Part {
    pub(super) package: Package,
    /// SHA-256 of the package in the registry; `None` for our own packages.
    pub(super) checksum: Option<String>,
    /// Names and versions of the direct dependencies.
    pub(super) uses: Vec<Name>,
}

/// Name and version of a package.
pub(super) type Name = (String, String);

impl Part {
    /// Returns an SPDX expression.
    pub(super) fn licence(&self) -> String {
        // Old manifests separate alternatives by `/`.
        self.package.license.as_deref().unwrap_or_default().replace('/', " OR ")
    }
}

impl Parts {
    pub(super) fn of(package: &str) -> Result<Self> {
        let words = format!("--target {TARGET} --package {package}");
        let tree = Job::cargo("tree --locked --edges normal,no-proc-macro --prefix none --format {p}");
        let tree = tree.words(&words).quiet_text()?;
        let metadata = Job::cargo("metadata --locked --format-version 1 --filter-platform").arg(TARGET);
        let lock = fs::read_to_string(workspace::root().join("Cargo.lock"))?;
        Ok(Self { all: parts(&in_tree(&tree), Metadata::of(&metadata)?, &checksums(&lock)) })
    }

    pub(super) fn root(&self) -> &Part {
        &self.all[0]
    }

    /// Returns all packages, the program's own first.
    pub(super) fn all(&self) -> impl Iterator<Item = &Part> {
        self.all.iter()
    }

    /// Returns the third-party packages.
    pub(super) fn others(&self) -> impl Iterator<Item = &Part> {
        self.all.iter().filter(|part| part.checksum.is_some())
    }
}

/// Returns names and versions without duplicates, in the order of the tree. A line is `name v1.2.3` and optional
/// remarks.
fn in_tree(tree: &str) -> Vec<Name> {
    let mut seen = BTreeSet::new();
    let line = |line: &str| {
        let mut words = line.split(' ');
        Some((words.next()?.to_owned(), words.next()?.strip_prefix('v')?.to_owned()))
    };
    tree.lines().filter_map(line).filter(|package| seen.insert(package.clone())).collect()
}

/// Returns the checksums in a `Cargo.lock`.
fn checksums(lock: &str) -> BTreeMap<Name, String> {
    let value = |block: &str, key: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""));
        line.and_then(|line| line.strip_suffix('"')).map(str::to_owned)
    };
    let package =
        |block: &str| Some(((value(block, "name")?, value(block, "version")?), value(block, "checksum")?));
    lock.split("[[package]]").filter_map(package).collect()
}

fn parts(names: &[Name], metadata: Metadata, checksums: &BTreeMap<Name, String>) -> Vec<Part> {
    let name = |package: &Package| (package.name.clone(), package.version.clone());
    let of_id: BTreeMap<String, Name> =
        metadata.packages.iter().map(|package| (package.id.clone(), name(package))).collect();
    let mut uses: BTreeMap<Name, Vec<Name>> = BTreeMap::new();
    for node in &metadata.resolve.nodes {
        let normal = node.deps.iter().filter(|used| used.dep_kinds.iter().any(|kind| kind.kind.is_none()));
        let used = normal.filter_map(|used| of_id.get(&used.pkg));
        // Dependencies of disabled features are not in the tree.
        let used = used.filter(|used| names.contains(used)).cloned().collect();
        uses.extend(of_id.get(&node.id).map(|name| (name.clone(), used)));
    }
    let mut packages: BTreeMap<Name, Package> =
        metadata.packages.into_iter().map(|package| (name(&package), package)).collect();
    let part = |name: &Name| {
        let (checksum, uses) = (checksums.get(name).cloned(), uses.remove(name).unwrap_or_default());
        Some(Part { package: packages.remove(name)?, checksum, uses })
    };
    names.iter().filter_map(part).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn named(name: &str, version: &str) -> (String, String) {
        (name.to_owned(), version.to_owned())
    }

    #[test]
    fn each_package_is_listed_once() {
        let tree = "cli v0.1.0 (/w/cli)\na v1.0.0\nb v2.0.0 (*)\n\na v1.0.0\na v0.9.0\n";
        let expected = [named("cli", "0.1.0"), named("a", "1.0.0"), named("b", "2.0.0"), named("a", "0.9.0")];
        assert_eq!(in_tree(tree), expected);
    }

    #[test]
    fn part_has_manifest_and_lock_data() {
        let metadata = json!({
            "packages": [
                {"id": "1", "name": "cli", "version": "0.1.0", "license": "MIT", "manifest_path": "/w/cli/Cargo.toml"},
                {"id": "2", "name": "a", "version": "1.0.0", "license": "MIT/Apache-2.0", "authors": ["A"],
                 "repository": "r", "description": "d", "manifest_path": "/r/a/Cargo.toml"},
            ],
            "resolve": {"nodes": [
                {"id": "1", "deps": [
                    {"pkg": "2", "dep_kinds": [{"kind": null}]},
                    {"pkg": "3", "dep_kinds": [{"kind": "dev"}]},
                ]},
            ]},
        });
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"ff\"\n\n\
                    [[package]]\nname = \"cli\"\nversion = \"0.1.0\"\n";
        let names = [named("cli", "0.1.0"), named("a", "1.0.0")];
        let all = parts(&names, serde_json::from_value(metadata).unwrap(), &checksums(lock));
        assert_eq!(all[0].uses, [named("a", "1.0.0")]);
        assert_eq!(all[0].checksum, None);
        assert_eq!((&*all[1].licence(), all[1].checksum.as_deref()), ("MIT OR Apache-2.0", Some("ff")));
        assert_eq!(all[1].package.folder(), std::path::Path::new("/r/a"));
    }
}
