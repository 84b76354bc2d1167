//! Tests the image of `deploy/Dockerfile`, built on our own Debian by Debian's buildah, which needs no daemon.

use std::fs;
use std::path::{Path, PathBuf};

use crate::debian::{Debian, TRIXIE};
use crate::dist::Dist;
use crate::failure::Result;
use crate::job::Job;
use crate::{files, tools, workspace};

/// The base image in the Dockerfile.
const BASE: &str = "docker.io/library/debian:13-slim";
/// Packages in our base image, so that the file's `apt-get install` finds them installed.
const PACKAGES: &str = "ca-certificates";
/// A study that takes seconds.
const STUDY: &str = "lab --quick --calls unary --sizes 0,1KiB --transports tcp --budget 40s";
/// Parts of the image's configuration that the containers' runs rely on.
const CONFIGURATION: &str = "{{.OCIv1.Config.User}} {{index .OCIv1.Config.Entrypoint 0}}";

pub(super) fn check(dist: &Dist) -> Result<String> {
    if !tools::is_root() {
        return Err(missing!("building an image needs root (chroot); run this as root"));
    }
    tools::debian("buildah", &["buildah"])?;
    let folder = workspace::output().join("image");
    let base = folder.join("base");
    Debian::get(&TRIXIE, &base, PACKAGES)?;
    fs::write(base.join("Dockerfile"), "FROM scratch\nADD root /\n")?;
    let storage = files::create_empty(folder.join("storage"))?;
    buildah(&storage, "build --isolation chroot --tag").arg(BASE).arg(&base).run()?;
    let build = buildah(&storage, "build --isolation chroot --pull-never --tag thalweg --file");
    build.arg(workspace::root().join("deploy/Dockerfile")).arg(&dist.folder).run()?;
    let name = buildah(&storage, "from --pull-never thalweg").text()?.trim().to_owned();
    let output = buildah(&storage, "inspect --format").arg(CONFIGURATION).arg(&name).text()?;
    let (user, entry) = output
        .trim()
        .split_once(' ')
        .ok_or_else(|| failed!("the image has no user or entry point: {output}"))?;
    let root = PathBuf::from(buildah(&storage, "mount").arg(&name).text()?.trim());
    let run = |words: &str| {
        let run = buildah(&storage, "run --isolation chroot").arg(&name).arg("--").arg(entry);
        run.words(words)
    };
    smoke_test(&root, run)?;
    Ok(format!(
        "deploy/Dockerfile made an image of {:.1} MB, in which {STUDY:?} ran as user {user}",
        size(&root)? as f64 / 1e6
    ))
}

/// buildah with plain folders as storage.
fn buildah(storage: &Path, words: &str) -> Job {
    let job = Job::new("buildah").arg("--root").arg(storage.join("root"));
    job.arg("--runroot").arg(storage.join("run")).words("--storage-driver vfs").words(words).builds(10)
}

/// Tries the image. `run` passes words to the entry point in a container, as the image's user and in its directory.
fn smoke_test(root: &Path, run: impl Fn(&str) -> Job) -> Result<()> {
    runs(&run("--version"))?;
    run(STUDY).words("--out study").run()?;
    let page = fs::metadata(root.join("work/study/report.html"));
    ensure!(page.map_or(0, |data| data.len()) >= 10_000, "the study in the image wrote no page");
    // The image has no sources to build peers from.
    for words in ["lab --quick --against grpc-cpp", "lab codec --quick"] {
        let refused = run(words).output()?;
        let captured = refused.err;
        if refused.status.success()
            || !captured.contains("cargo xtask peers")
            || !captured.contains("--peers")
        {
            bail!("`{words}` without sources does not print how to get them: {captured}");
        }
    }
    Ok(())
}

/// Checks that `thalweg --version` runs and reports the name.
pub(super) fn runs(version: &Job) -> Result<()> {
    let captured = version.text()?;
    ensure!(captured.starts_with("thalweg "), "expected `{version}`, the command prints {captured:?}");
    Ok(())
}

/// Total size of all files in the folder, in bytes.
fn size(folder: &Path) -> Result<u64> {
    let lens = files::below(folder)?.into_iter().map(|path| Ok(fs::symlink_metadata(path)?.len()));
    lens.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Manifests cannot read the user from the image, and Kubernetes needs a numeric one.
    #[test]
    fn manifests_name_user_and_version() {
        let deploy = |file: &str| fs::read_to_string(workspace::root().join("deploy").join(file)).unwrap();
        let dockerfile = deploy("Dockerfile");
        let user = dockerfile.lines().find_map(|line| line.strip_prefix("USER ")).unwrap();
        let (user, group) = user.split_once(':').unwrap();
        for file in ["kubernetes/base/load.yaml", "kubernetes/base/merge.yaml"] {
            let text = deploy(file);
            assert!(text.contains(&format!("runAsUser: {user}\n")), "{file}");
            assert!(text.contains(&format!("runAsGroup: {group}\n")), "{file}");
        }
        let version = env!("CARGO_PKG_VERSION");
        assert!(deploy("kubernetes/base/kustomization.yaml").contains(&format!("newTag: {version}\n")));
        assert!(dockerfile.contains(&format!("--tag thalweg:{version} ")));
    }
}
