//! The output of `cargo metadata` for a workspace and its dependencies.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::failure::Result;
use crate::job::Job;

/// The packages of a workspace and their dependencies, resolved.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    /// Package ids of the workspace members.
    #[serde(rename = "workspace_members")]
    pub(crate) members: BTreeSet<String>,
    pub(crate) resolve: Resolve,
}

/// One package. Fields have cargo's names.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) manifest_path: PathBuf,
    /// The registry or repository that it is from; `None` for one in this repository.
    source: Option<String>,
    pub(crate) rust_version: Option<String>,
    /// `None`, or a list of registries.
    publish: Option<Vec<String>>,
    targets: Vec<Target>,
    /// The features, each with those that it enables.
    pub(crate) features: BTreeMap<String, Vec<String>>,
    /// All dependencies of the manifest, including optional ones.
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) license: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) authors: Vec<String>,
    pub(crate) repository: Option<String>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    src_path: PathBuf,
}

#[derive(Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Its name in the manifest, if that is another one.
    pub(crate) rename: Option<String>,
    pub(crate) features: Vec<String>,
    /// `dev` or `build`; `None` for normal dependencies.
    pub(crate) kind: Option<String>,
    /// The registry or repository that it is from; `None` for a package of this repository.
    pub(crate) source: Option<String>,
}

/// The packages built for the selected platform.
#[derive(Default, Deserialize)]
pub(crate) struct Resolve {
    pub(crate) nodes: Vec<Node>,
}

#[derive(Deserialize)]
pub(crate) struct Node {
    pub(crate) id: String,
    pub(crate) deps: Vec<Used>,
}

#[derive(Deserialize)]
pub(crate) struct Used {
    pub(crate) pkg: String,
    pub(crate) dep_kinds: Vec<UsedKind>,
}

#[derive(Deserialize)]
pub(crate) struct UsedKind {
    pub(crate) kind: Option<String>,
}

impl Metadata {
    /// Loads this workspace's metadata, without packages for other platforms such as windows-sys.
    pub(crate) fn load() -> Result<Self> {
        Self::of(&Job::cargo("metadata --format-version 1 --filter-platform x86_64-unknown-linux-gnu"))
    }

    /// Reads the output of this `cargo metadata` job.
    pub(crate) fn of(job: &Job) -> Result<Self> {
        let text = job.clone().minutes(5).quiet_text()?;
        serde_json::from_str(&text).map_err(|why| failed!("unexpected output of `{job}`: {why}"))
    }

    pub(crate) fn member_packages(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.members.contains(&package.id))
    }

    /// Returns the workspace's packages that are published to the registry.
    pub(crate) fn published(&self) -> impl Iterator<Item = &Package> {
        let is_published =
            |it: &&Package| it.publish.as_ref().is_none_or(|registries| !registries.is_empty());
        self.member_packages().filter(is_published)
    }

    /// Returns the packages built for this platform, without those only in the lock file.
    pub(crate) fn built_packages(&self) -> impl Iterator<Item = &Package> {
        let built: BTreeSet<&str> = self.resolve.nodes.iter().map(|node| node.id.as_str()).collect();
        self.packages.iter().filter(move |package| built.contains(package.id.as_str()))
    }

    /// Returns the package with this name; fails if there is none.
    pub(crate) fn package(&self, name: &str) -> Result<&Package> {
        let found = self.packages.iter().find(|package| package.name == name);
        found.ok_or_else(|| failed!("unknown package {name}"))
    }

    /// Returns the package of this name that is from a registry.
    pub(crate) fn registry_package(&self, name: &str) -> Result<&Package> {
        let found = self.packages.iter().find(|package| package.name == name && package.source.is_some());
        found.ok_or_else(|| failed!("unknown package {name} of the registry"))
    }

    /// Returns the workspace's package of this name.
    pub(crate) fn member(&self, name: &str) -> Result<&Package> {
        let found = self.member_packages().find(|package| package.name == name);
        found.ok_or_else(|| failed!("unknown package {name} of the workspace"))
    }
}

impl Package {
    /// Whether it has a library target.
    pub(crate) fn is_library(&self) -> bool {
        self.library_folder().is_some()
    }

    /// The folder of its library's sources, which may be outside of its own.
    pub(crate) fn library_folder(&self) -> Option<&Path> {
        let library = self.targets.iter().find(|target| target.kind.iter().any(|kind| kind == "lib"));
        library.and_then(|library| library.src_path.parent())
    }

    /// The folder of its manifest.
    pub(crate) fn folder(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(&self.manifest_path)
    }
}
