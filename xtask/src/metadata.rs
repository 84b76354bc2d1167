//! What `cargo metadata` says about the workspace and everything that it is built from.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::job::{Failure, Job, Log};

/// The packages of the workspace and their dependencies, resolved.
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    /// Package ids of what the workspace itself holds.
    pub(crate) members: BTreeSet<String>,
    nodes: BTreeMap<String, Node>,
}

/// One package.
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) rust_version: Option<String>,
    /// What its manifest asks for, by kind, whether or not a feature turns it on.
    pub(crate) dependencies: Vec<(Kind, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Normal,
    Build,
    Dev,
}

/// What one package is built with after feature resolution.
struct Node {
    /// Package ids of normal dependencies.
    normal: Vec<String>,
}

impl Metadata {
    pub(crate) fn load(log: &Log) -> Result<Self, Failure> {
        // The platform filter leaves out what is only built elsewhere: windows-sys and its like.
        let job =
            Job::cargo("metadata --format-version 1 --filter-platform x86_64-unknown-linux-gnu").minutes(5);
        let text = job.quiet_text(log)?;
        let value: Value = serde_json::from_str(&text)
            .map_err(|error| Failure::failed(format!("the output of `{job}` is not JSON: {error}")))?;
        Ok(Self::from_json(&value))
    }

    pub(crate) fn member_packages(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.members.contains(&package.id))
    }

    /// The packages that are built for this platform: what is only in the lock file is left out.
    pub(crate) fn built_packages(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.nodes.contains_key(&package.id))
    }

    /// Names of everything that `name` is built with, without dev- and build-dependencies; itself left out.
    pub(crate) fn normal_tree(&self, name: &str) -> BTreeSet<&str> {
        let mut reached = BTreeSet::new();
        let start = self.packages.iter().find(|package| package.name == name);
        let mut waiting: Vec<&str> = start.iter().map(|package| package.id.as_str()).collect();
        while let Some(id) = waiting.pop() {
            let Some(node) = self.nodes.get(id) else { continue };
            for dependency in &node.normal {
                if reached.insert(dependency.as_str()) {
                    waiting.push(dependency);
                }
            }
        }
        self.packages
            .iter()
            .filter(|package| reached.contains(package.id.as_str()))
            .map(|p| p.name.as_str())
            .collect()
    }

    fn from_json(value: &Value) -> Self {
        Self {
            packages: array(&value["packages"]).map(package).collect(),
            members: array(&value["workspace_members"]).map(text).collect(),
            nodes: array(&value["resolve"]["nodes"]).map(|value| (text(&value["id"]), node(value))).collect(),
        }
    }
}

fn package(value: &Value) -> Package {
    let dependency = |value: &Value| {
        let kind = match value["kind"].as_str() {
            Some("build") => Kind::Build,
            Some("dev") => Kind::Dev,
            _ => Kind::Normal,
        };
        (kind, text(&value["name"]))
    };
    Package {
        id: text(&value["id"]),
        name: text(&value["name"]),
        version: text(&value["version"]),
        rust_version: value["rust_version"].as_str().map(str::to_owned),
        dependencies: array(&value["dependencies"]).map(dependency).collect(),
    }
}

fn node(value: &Value) -> Node {
    let is_normal = |dependency: &&Value| array(&dependency["dep_kinds"]).any(|kind| kind["kind"].is_null());
    Node {
        normal: array(&value["deps"]).filter(is_normal).map(|dependency| text(&dependency["pkg"])).collect(),
    }
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
