//! What we build on: that it compiles with our `rust-version`, that its licences are accepted, that no package is
//! there twice. `deny.toml` is the one source of what is accepted; cargo-deny reads the same file.
//!
//! cargo-deny itself is not run here: it takes longer to build than all else together, and its advisories come from a
//! database that has to be fetched from a network that a build machine need not have. Run `cargo deny check` by hand.

use std::collections::BTreeMap;
use std::fs;

use crate::job::{Failure, Log};
use crate::metadata::{Metadata, Package};
use crate::workspace;

pub(super) fn check(log: &Log) -> Result<String, Failure> {
    let metadata = Metadata::load(log)?;
    let policy = fs::read_to_string(workspace::root().join("deny.toml"))?;
    let accepted = strings(&policy, "licenses", "allow");
    let doubles_known = strings(&policy, "bans", "skip");
    let ours =
        metadata.member_packages().filter_map(|package| package.rust_version.as_deref()).map(release).max();
    let Some(ours) = ours else { return Err(Failure::failed("the workspace states no rust-version")) };

    let mut broken = Vec::new();
    broken.extend(metadata.built_packages().filter_map(|package| too_new(package, ours)));
    broken.extend(metadata.built_packages().filter_map(|package| refused_licence(package, &accepted)));
    broken.extend(doubles(metadata.built_packages(), &doubles_known));
    for line in &broken {
        log.line(line)?;
    }
    log.line("Advisories were not checked: their database is not reachable from every machine. Run `cargo deny check`.")?;
    let packages = metadata.built_packages().count();
    match broken.len() {
        0 => Ok(format!("{packages} packages fit Rust 1.{}; advisories NOT checked", ours.1)),
        count => Err(Failure::failed(format!("{count} of the packages we build on break a rule"))),
    }
}

fn too_new(package: &Package, ours: (u32, u32)) -> Option<String> {
    let theirs = package.rust_version.as_deref()?;
    let message =
        || format!("{} {} wants Rust {theirs}, we promise 1.{}", package.name, package.version, ours.1);
    (release(theirs) > ours).then(message)
}

/// `1.88.0` and `1.88` are the same release.
fn release(version: &str) -> (u32, u32) {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

fn refused_licence(package: &Package, accepted: &[String]) -> Option<String> {
    let Some(license) = &package.license else {
        return Some(format!("{} {} states no licence", package.name, package.version));
    };
    let message = || format!("{} {}: {license} is not accepted by deny.toml", package.name, package.version);
    (!is_accepted(license, accepted)).then(message)
}

/// Whether an SPDX expression can be met with the accepted licences. `AND` binds more closely than `OR`, and `/` is an
/// old way to write `OR`.
fn is_accepted(expression: &str, accepted: &[String]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let (met, rest) = any_of(&words, accepted);
    met && rest.is_empty()
}

fn any_of<'w>(words: &'w [&'w str], accepted: &[String]) -> (bool, &'w [&'w str]) {
    let (mut met, mut rest) = all_of(words, accepted);
    while let ["OR", after @ ..] = rest {
        let (other, after) = all_of(after, accepted);
        met |= other;
        rest = after;
    }
    (met, rest)
}

fn all_of<'w>(words: &'w [&'w str], accepted: &[String]) -> (bool, &'w [&'w str]) {
    let (mut met, mut rest) = one(words, accepted);
    while let ["AND", after @ ..] = rest {
        let (other, after) = one(after, accepted);
        met &= other;
        rest = after;
    }
    (met, rest)
}

fn one<'w>(words: &'w [&'w str], accepted: &[String]) -> (bool, &'w [&'w str]) {
    let holds = |name: &str| accepted.iter().any(|licence| licence == name);
    match words {
        ["(", inner @ ..] => match any_of(inner, accepted) {
            (met, [")", rest @ ..]) => (met, rest),
            (_, rest) => (false, rest),
        },
        [name, "WITH", exception, rest @ ..] => (holds(&format!("{name} WITH {exception}")), rest),
        [name, rest @ ..] => (holds(name), rest),
        [] => (false, words),
    }
}

/// Packages that are built in more than one version, those of `known` aside.
fn doubles<'p>(packages: impl Iterator<Item = &'p Package>, known: &[String]) -> Vec<String> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().push(&package.version);
    }
    let doubled = versions.into_iter().filter(|(_, versions)| versions.len() > 1);
    let unknown =
        doubled.filter(|(name, _)| !known.iter().any(|known| known.split('@').next() == Some(name)));
    unknown
        .map(|(name, versions)| format!("{name} is built in versions {}", versions.join(" and ")))
        .collect()
}

/// The strings of the array `key` in the table `[table]`: as much TOML as deny.toml needs. An entry that is a table
/// (`{ crate = "x", reason = "…" }`) counts with its first string.
fn strings(toml: &str, table: &str, key: &str) -> Vec<String> {
    let lines = toml.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let in_table = lines
        .skip_while(|line| *line != format!("[{table}]"))
        .skip(1)
        .take_while(|line| !line.starts_with('['));
    let from_key = in_table.skip_while(|line| !line.starts_with(&format!("{key} = ["))).skip(1);
    let entries = from_key.take_while(|line| !line.starts_with(']'));
    entries.filter_map(|line| line.split('"').nth(1)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::{is_accepted, release, strings};

    #[test]
    fn spdx_expressions_are_judged() {
        let accepted = ["MIT", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned);
        let check = |expression: &str, expected: bool| {
            assert_eq!(is_accepted(expression, &accepted), expected, "{expression}");
        };
        check("MIT", true);
        check("Apache-2.0", false);
        check("MIT OR Apache-2.0", true);
        check("Apache-2.0/MIT", true);
        check("Apache-2.0 AND MIT", false);
        check("(MIT OR Apache-2.0) AND Unicode-3.0", true);
        check("MIT OR Apache-2.0 AND GPL-3.0", true);
        check("(Apache-2.0 OR GPL-3.0) AND MIT", false);
        check("Apache-2.0 WITH LLVM-exception OR GPL-3.0", true);
        check("(MIT", false);
        check("", false);
    }

    #[test]
    fn releases_are_compared_without_the_patch() {
        assert_eq!(release("1.88"), release("1.88.3"));
        assert!(release("1.9") < release("1.88"));
    }

    #[test]
    fn arrays_of_the_policy_are_read() {
        let toml = "[a]\nallow = [\n  \"no\",\n]\n[b]\n# allow = [\nallow = [\n  \"x\", # why\n  { crate = \"y\", reason = \"z\" },\n]\n";
        assert_eq!(strings(toml, "b", "allow"), ["x", "y"]);
        assert!(strings(toml, "b", "deny").is_empty());
    }
}
