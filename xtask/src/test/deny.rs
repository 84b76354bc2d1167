//! `deny.toml`, held to without cargo-deny, which takes minutes to build: the licences of all packages, that none is
//! there twice, that none is asked for in any version, and that all come from crates.io.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

use crate::job::{Failure, Job, Log};
use crate::workspace;

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// What `deny.toml` says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Rules {
    targets: Vec<String>,
    allowed: Vec<String>,
    /// Versions that may be there beside another: `syn@2`.
    skipped: Vec<String>,
}

/// What is wrong, a line each.
pub(super) fn check(log: &Log) -> Result<(), Failure> {
    let rules = Rules::read(&fs::read_to_string(workspace::root().join("deny.toml"))?);
    if rules.targets.is_empty() || rules.allowed.is_empty() {
        return Err(Failure::failed("deny.toml names no targets or no licences"));
    }
    let mut job = Job::cargo("metadata --format-version 1").minutes(5);
    for target in &rules.targets {
        job = job.arg("--filter-platform").arg(target);
    }
    let value: Value = serde_json::from_str(&job.quiet_text(log)?)
        .map_err(|error| Failure::failed(format!("the output of `{job}` is not JSON: {error}")))?;
    let faults = rules.faults(&value);
    for fault in &faults {
        println!("DENY  {fault}");
        log.line(fault)?;
    }
    match faults.len() {
        0 => Ok(()),
        count => Err(Failure::failed(format!("{count} packages do not fit deny.toml"))),
    }
}

impl Rules {
    /// Strings of the three lists: no more of TOML is needed.
    fn read(text: &str) -> Self {
        let list = |key: &str| {
            let behind = text.split_once(&format!("\n{key} = [")).map_or("", |(_, behind)| behind);
            let list =
                behind.split_once("\n]").or_else(|| behind.split_once(']')).map_or("", |(list, _)| list);
            list.to_owned()
        };
        let one_line = |list: &str| list.lines().next().unwrap_or_default().contains('"');
        let strings = |list: &str| {
            let list = if one_line(list) { list.split(']').next().unwrap_or_default() } else { list };
            list.split('"').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()
        };
        let skipped = list("skip");
        let crates = skipped.lines().filter_map(|line| line.split_once("crate = \"")?.1.split('"').next());
        Self {
            targets: strings(&list("targets")),
            allowed: strings(&list("allow")),
            skipped: crates.map(str::to_owned).collect(),
        }
    }

    fn faults(&self, metadata: &Value) -> Vec<String> {
        let built: BTreeSet<&str> =
            list(&metadata["resolve"]["nodes"]).filter_map(|node| node["id"].as_str()).collect();
        let is_built = |package: &&Value| package["id"].as_str().is_some_and(|id| built.contains(id));
        let mut faults = Vec::new();
        let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for package in list(&metadata["packages"]).filter(is_built) {
            let text = |key: &str| package[key].as_str().unwrap_or_default();
            let (name, version) = (text("name"), text("version"));
            if !self.permits(text("license")) {
                faults.push(format!("{name} {version}: its licence `{}` is not allowed", text("license")));
            }
            let source = &package["source"];
            if !source.is_null() && source != REGISTRY {
                faults.push(format!("{name} {version}: it comes from {source}"));
            }
            for dependency in list(&package["dependencies"]) {
                if dependency["req"] == "*" && dependency["path"].is_null() {
                    faults.push(format!("{name} {version}: asks for any version of {}", dependency["name"]));
                }
            }
            if !self.skips(name, version) {
                versions.entry(name).or_default().push(version);
            }
        }
        let twice = versions.iter().filter(|(_, versions)| versions.len() > 1);
        faults.extend(
            twice.map(|(name, versions)| format!("{name} is there in versions {}", versions.join(", "))),
        );
        faults
    }

    /// `syn@2` means each 2.x.
    fn skips(&self, name: &str, version: &str) -> bool {
        self.skipped.iter().any(|skipped| {
            let (of, prefix) = skipped.split_once('@').unwrap_or((skipped, ""));
            of == name
                && (prefix.is_empty() || version == prefix || version.starts_with(&format!("{prefix}.")))
        })
    }

    /// Whether an SPDX expression can be fulfilled with what is allowed.
    fn permits(&self, expression: &str) -> bool {
        let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
        let words: Vec<&str> = spaced.split_whitespace().collect();
        let mut position = 0;
        let permitted = self.any(&words, &mut position);
        permitted && position == words.len()
    }

    fn any(&self, words: &[&str], position: &mut usize) -> bool {
        let mut permitted = self.all(words, position);
        while words.get(*position) == Some(&"OR") {
            *position += 1;
            permitted |= self.all(words, position);
        }
        permitted
    }

    fn all(&self, words: &[&str], position: &mut usize) -> bool {
        let mut permitted = self.one(words, position);
        while words.get(*position) == Some(&"AND") {
            *position += 1;
            permitted &= self.one(words, position);
        }
        permitted
    }

    fn one(&self, words: &[&str], position: &mut usize) -> bool {
        let Some(word) = words.get(*position) else { return false };
        *position += 1;
        if *word == "(" {
            let permitted = self.any(words, position);
            *position += 1;
            return permitted;
        }
        let mut licence = (*word).to_owned();
        if words.get(*position) == Some(&"WITH") {
            licence = words[*position - 1..].iter().take(3).copied().collect::<Vec<_>>().join(" ");
            *position += 2;
        }
        self.allowed.contains(&licence)
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Rules;

    fn rules() -> Rules {
        Rules::read(
            "[graph]\ntargets = [\"x86_64\", \"aarch64\"]\n\n[licenses]\nunused = \"allow\"\nallow = [\n  \"MIT\",\n  \
             \"Apache-2.0\",\n  \"Apache-2.0 WITH LLVM-exception\",\n]\n\n[bans]\nskip = [\n  \
             { crate = \"syn@2\", reason = \"old [x]\" },\n]\n",
        )
    }

    #[test]
    fn the_lists_are_read() {
        let Rules { targets, allowed, skipped } = rules();
        assert_eq!(targets, ["x86_64", "aarch64"]);
        assert_eq!(allowed, ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"]);
        assert_eq!(skipped, ["syn@2"]);
    }

    #[test]
    fn licences_are_expressions() {
        let check =
            |expression, permitted| assert_eq!(rules().permits(expression), permitted, "{expression}");
        check("MIT", true);
        check("MIT/Apache-2.0", true);
        check("GPL-3.0", false);
        check("GPL-3.0 OR MIT", true);
        check("MIT AND Unicode-3.0", false);
        check("(MIT OR GPL-3.0) AND Apache-2.0", true);
        check("(MIT OR Apache-2.0) AND Unicode-3.0", false);
        check("Apache-2.0 WITH LLVM-exception OR GPL-3.0", true);
        check("GPL-2.0 WITH Classpath-exception-2.0", false);
        check("", false);
        check("MIT Apache-2.0", false);
    }

    #[test]
    fn packages_are_held_to_the_rules() {
        let package = |name: &str, version: &str, source: &str| {
            let dependencies = json!([{"name": "x", "req": if name == "loose" { "*" } else { "^1" }}]);
            let id = format!("{name}{version}");
            json!({
                "id": id, "name": name, "version": version, "license": "MIT", "source": source,
                "dependencies": dependencies,
            })
        };
        let here = super::REGISTRY;
        let packages = [
            package("syn", "2.0.1", here),
            package("syn", "3.0.0", here),
            package("a", "1.0.0", here),
            package("a", "2.0.0", here),
            package("b", "1.0.0", "git+https://example.org"),
            package("loose", "1.0.0", here),
        ];
        let nodes: Vec<_> = packages.iter().map(|package| json!({"id": package["id"]})).collect();
        let faults = rules().faults(&json!({"packages": packages, "resolve": {"nodes": nodes}}));
        assert_eq!(
            faults,
            [
                "b 1.0.0: it comes from \"git+https://example.org\"",
                "loose 1.0.0: asks for any version of \"x\"",
                "a is there in versions 1.0.0, 2.0.0",
            ]
        );
    }
}
