//! What `cargo metadata` says about the workspace and everything that it is built from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::Value;

use crate::failure::Result;
use crate::job::Job;

/// The packages of the workspace and their dependencies, resolved.
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    /// Package ids of what the workspace itself holds.
    pub(crate) members: BTreeSet<String>,
    /// Package ids of what is built for this platform.
    built: BTreeSet<String>,
}

/// One package.
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) manifest_path: PathBuf,
    pub(crate) rust_version: Option<String>,
    /// It is for the registry.
    pub(crate) is_published: bool,
    /// It has a library, and not a program alone.
    pub(crate) is_library: bool,
    /// The features, each with what it switches on.
    pub(crate) features: BTreeMap<String, Vec<String>>,
    /// What its manifest asks for, by kind, whether or not a feature turns it on.
    pub(crate) dependencies: Vec<(Kind, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Normal,
    Build,
    Dev,
}

impl Metadata {
    pub(crate) fn load() -> Result<Self> {
        // The platform filter leaves out what is only built elsewhere: windows-sys and its like.
        let job =
            Job::cargo("metadata --format-version 1 --filter-platform x86_64-unknown-linux-gnu").minutes(5);
        let text = job.quiet_text()?;
        let value: Value = serde_json::from_str(&text)
            .map_err(|error| failed!("the output of `{job}` is not JSON: {error}"))?;
        Ok(Self::from_json(&value))
    }

    pub(crate) fn member_packages(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.members.contains(&package.id))
    }

    /// The packages that are built for this platform: what is only in the lock file is left out.
    pub(crate) fn built_packages(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.built.contains(&package.id))
    }

    fn from_json(value: &Value) -> Self {
        Self {
            packages: array(&value["packages"]).map(package).collect(),
            members: array(&value["workspace_members"]).map(text).collect(),
            built: array(&value["resolve"]["nodes"]).map(|value| text(&value["id"])).collect(),
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
        manifest_path: text(&value["manifest_path"]).into(),
        rust_version: value["rust_version"].as_str().map(str::to_owned),
        // Nothing, or a list of registries.
        is_published: value["publish"].as_array().is_none_or(|registries| !registries.is_empty()),
        is_library: array(&value["targets"]).any(|target| array(&target["kind"]).any(|kind| kind == "lib")),
        features: value["features"].as_object().into_iter().flatten().map(feature).collect(),
        dependencies: array(&value["dependencies"]).map(dependency).collect(),
    }
}

fn feature((name, switches_on): (&String, &Value)) -> (String, Vec<String>) {
    (name.clone(), array(switches_on).map(text).collect())
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
