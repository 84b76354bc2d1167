//! `cargo xtask dist`: release files for users without the sources. All of them go to `target/dist`:
//!
//! | file | content |
//! | --- | --- |
//! | `thalweg-VERSION-TARGET.tar.gz` | the command, its manual, its completions and all licences |
//! | `thalweg_VERSION-1_ARCH.deb` | the same for Debian and derivatives |
//! | `thalweg-VERSION-TARGET.cdx.json` | bill of materials of the command, in CycloneDX |
//! | `SHA256SUMS` | a checksum of each of them |

mod build;
mod licences;
mod parts;
mod sbom;
mod target;
mod toolchain;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::arguments::Arguments;
use crate::failure::Result;
use crate::job::Job;
use crate::{files, log, tools, workspace};
use parts::Parts;
pub(crate) use target::GLIBC;
use target::TARGET;
pub(crate) use toolchain::NOTICES;

/// File name of the third-party licences.
pub(crate) const LICENCES: &str = "THIRD-PARTY-LICENSES.txt";
/// File name of the standalone bill of materials.
pub(crate) const SBOM: &str = "thalweg.cdx.json";

/// The created files.
pub(crate) struct Dist {
    pub(crate) folder: PathBuf,
    pub(crate) tarball: PathBuf,
    /// The top folder in the tarball.
    pub(crate) name: String,
    pub(crate) package: PathBuf,
    pub(crate) sbom: PathBuf,
    /// Names of the third-party packages in it.
    pub(crate) parts: Vec<String>,
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode> {
    arguments.finish()?;
    log::start("dist")?;
    let dist = make()?;
    for path in dist.files() {
        let len = fs::metadata(&path).map_or(0, |data| data.len());
        println!("{:>9.3} MB  {}", len as f64 / 1e6, path.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the bill of materials and the package licences to `folder`, which needs no build. Returns the names of the
/// third-party packages.
pub(crate) fn write_sbom_and_licences(folder: &Path) -> Result<Vec<String>> {
    let parts = Parts::of("thalweg-cli")?;
    fs::create_dir_all(folder)?;
    fs::write(folder.join(SBOM), sbom::document(&parts))?;
    fs::write(folder.join(LICENCES), licences::text(&parts)?)?;
    Ok(names(&parts))
}

/// Names of the third-party packages.
fn names(parts: &Parts) -> Vec<String> {
    parts.others().map(|part| part.package.name.clone()).collect()
}

pub(crate) fn make() -> Result<Dist> {
    let parts = Parts::of("thalweg-cli")?;
    let version = &parts.root().package.version;
    let folder = files::create_empty(workspace::target().join("dist"))?;
    let name = format!("thalweg-{version}-{TARGET}");
    let sbom = folder.join(format!("{name}.cdx.json"));
    fs::write(&sbom, sbom::document(&parts))?;
    let program = build::command()?;
    // `package.metadata.deb` in the command's manifest refers to this folder.
    let staged = folder.join("staged");
    stage(&staged, &program, &parts)?;
    let tarball = folder.join(format!("{name}.tar.gz"));
    pack(&staged, &name, &tarball)?;
    let package = debian_package(&folder)?;
    fs::remove_dir_all(&staged)?;
    let dist = Dist { folder, tarball, name, package, sbom, parts: names(&parts) };
    dist.write_checksums()?;
    Ok(dist)
}

/// Copies all files of the release to `folder`.
fn stage(folder: &Path, program: &Path, parts: &Parts) -> Result<()> {
    let completions = folder.join("completions");
    fs::create_dir_all(&completions)?;
    fs::copy(program, folder.join("thalweg"))?;
    for file in ["CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        fs::copy(workspace::root().join(file), folder.join(file))?;
    }
    // The command's own README: the links of the workspace's README lead to folders that are not included.
    fs::copy(workspace::root().join("crates/cli/README.md"), folder.join("README.md"))?;
    fs::write(folder.join(LICENCES), licences::text(parts)? + &toolchain::licences()?)?;
    fs::copy(toolchain::notices()?, folder.join(NOTICES))?;
    Job::new(program).words("man").arg(folder.join("man")).run()?;
    for (shell, file) in [("bash", "thalweg.bash"), ("zsh", "_thalweg"), ("fish", "thalweg.fish")] {
        Job::new(program).words("completions").arg(shell).run_into(&completions.join(file))?;
    }
    Ok(())
}

/// Packs a reproducible tarball: all files have the time of the last commit.
fn pack(staged: &Path, name: &str, tarball: &Path) -> Result<()> {
    let time = Job::new("git").words("log -1 --format=%ct").text().unwrap_or_else(|_| "0".to_owned());
    let plain = tarball.with_extension("");
    Job::new("tar")
        .words("--create --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --directory")
        .arg(staged)
        .arg(format!("--mtime=@{}", time.trim()))
        .arg(format!("--transform=s,^[.],{name},"))
        .arg("--file")
        .arg(&plain)
        .arg(".")
        .run()?;
    Job::new("gzip").words("--no-name --best --force").arg(&plain).run()
}

fn debian_package(folder: &Path) -> Result<PathBuf> {
    let path = tools::cargo_deb()?;
    let cargo_deb = Job::new(path)
        .words("deb --no-build --no-strip --package thalweg-cli --profile small --target")
        .arg(TARGET)
        .arg("--output")
        .arg(folder)
        .minutes(5);
    cargo_deb.run()?;
    let found = files::below(folder)?.into_iter().find(|path| files::has_extension(path, "deb"));
    found.ok_or_else(|| failed!("`{cargo_deb}` made no package"))
}

impl Dist {
    const CHECKSUMS: &'static str = "SHA256SUMS";

    pub(crate) fn files(&self) -> [PathBuf; 4] {
        [self.tarball.clone(), self.package.clone(), self.sbom.clone(), self.folder.join(Self::CHECKSUMS)]
    }

    fn write_checksums(&self) -> Result<()> {
        let names =
            [&self.tarball, &self.package, &self.sbom].map(|path| path.file_name().unwrap_or_default());
        let sum = Job::new("sha256sum").directory(&self.folder);
        let sum = names.into_iter().fold(sum, Job::arg);
        sum.run_into(&self.folder.join(Self::CHECKSUMS))
    }
}
