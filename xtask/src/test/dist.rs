//! What people get who have no sources: whether it is what it says, and runs where there is nothing else.

mod image;

use std::fs;
use std::path::{Path, PathBuf};

use crate::dist::{self, Dist, GLIBC, LICENCES, NOTICES, SBOM};
use crate::job::{Failure, Job, Log};
use crate::{files, tools, workspace};

/// The program has at most so many bytes.
const LEN_MAX: u64 = 15_000_000;

/// The bill of materials and the licences alone.
pub(super) fn papers(log: &Log) -> Result<String, Failure> {
    let folder = workspace::output().join("dist-papers");
    let parts = dist::papers(&folder, log)?;
    bill_of_materials(&folder.join(SBOM), log)?;
    licences(&folder, &parts)?;
    Ok(format!("{} packages with their licences", parts.len()))
}

/// Everything that `cargo xtask dist` makes.
pub(super) fn check(log: &Log) -> Result<String, Failure> {
    let dist = dist::make(log)?;
    Job::new("sha256sum").words("--check --strict SHA256SUMS").directory(&dist.folder).run(log)?;
    let folder = unpack(&dist, log)?;
    let program = folder.join("thalweg");
    let len = small(&program)?;
    image::runs(&Job::new(&program).arg("--version"), log)?;
    let library = old_library(&program, log)?;
    complete(&folder, &dist.parts)?;
    manual(&folder, log)?;
    bill_of_materials(&dist.sbom, log)?;
    package(&dist.package, &program, log)?;
    let image = image::check(&dist, log)?;
    Ok(format!(
        "{:.1} MB, needs glibc {library}; {} packages with their licences; {image}",
        len as f64 / 1e6,
        dist.parts.len()
    ))
}

fn unpack(dist: &Dist, log: &Log) -> Result<PathBuf, Failure> {
    let folder = workspace::output().join("dist");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let unpack = Job::new("tar").words("--extract --gzip --file").arg(&dist.tarball);
    unpack.arg("--directory").arg(&folder).run(log)?;
    Ok(folder.join(&dist.name))
}

fn small(program: &Path) -> Result<u64, Failure> {
    let len = fs::metadata(program)?.len();
    if len > LEN_MAX {
        return Err(Failure::failed(format!(
            "the command has {len} bytes, and at most {LEN_MAX} are promised"
        )));
    }
    Ok(len)
}

/// The newest version of the C library that the program asks for.
fn old_library(program: &Path, log: &Log) -> Result<String, Failure> {
    tools::debian("binutils", &["readelf"], log)?;
    let told = Job::new("readelf").words("--version-info --wide").arg(program).quiet_text(log)?;
    let newest = newest_glibc(&told).ok_or_else(|| Failure::failed("the command asks for no C library"))?;
    if newest > version(GLIBC) {
        return Err(Failure::failed(format!(
            "the command asks for glibc {}.{}, later than {GLIBC}",
            newest.0, newest.1
        )));
    }
    Ok(format!("{}.{}", newest.0, newest.1))
}

fn newest_glibc(versions: &str) -> Option<(u32, u32)> {
    let named = versions.split("GLIBC_").skip(1);
    named.map(|rest| version(rest.split_whitespace().next().unwrap_or_default())).max()
}

/// `2.2.5` counts as 2.2.
fn version(text: &str) -> (u32, u32) {
    let mut numbers = text.split('.').map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// The folder has what is for people, and a licence of each package.
fn complete(folder: &Path, parts: &[String]) -> Result<(), Failure> {
    for file in [
        "README.md",
        "CHANGELOG.md",
        "LICENSE-APACHE",
        "LICENSE-MIT",
        NOTICES,
        "completions/thalweg.bash",
        "completions/_thalweg",
        "completions/thalweg.fish",
        "man/thalweg.1",
        "man/thalweg-load.1",
    ] {
        if fs::metadata(folder.join(file)).map_or(0, |data| data.len()) == 0 {
            return Err(Failure::failed(format!("the tarball has no {file}")));
        }
    }
    licences(folder, parts)
}

/// Each package is named in a line, with its text below or what it says of itself.
fn licences(folder: &Path, parts: &[String]) -> Result<(), Failure> {
    let licences = fs::read_to_string(folder.join(LICENCES))?;
    let without: Vec<&str> =
        parts.iter().map(String::as_str).filter(|name| !licences.contains(&format!("\n{name} "))).collect();
    if parts.is_empty() || !without.is_empty() {
        let (count, without) = (parts.len(), without.join(", "));
        return Err(Failure::failed(format!("of {count} packages these have no licence: {without}")));
    }
    Ok(())
}

/// Each page of the manual is one as mandoc reads it.
fn manual(folder: &Path, log: &Log) -> Result<(), Failure> {
    tools::debian("mandoc", &["mandoc"], log)?;
    let pages = files::below(&folder.join("man"))?;
    pages.iter().fold(Job::new("mandoc").words("-T lint -W error"), Job::arg).run(log)
}

/// The document is valid CycloneDX, and everything in it has its own licence and sum.
fn bill_of_materials(path: &Path, log: &Log) -> Result<(), Failure> {
    let python = tools::python(log)?;
    Job::new(python).arg(workspace::suites().join("python/sbom.py")).arg(path).run(log)
}

/// Debian's own tools read the package, and the command in it is the tarball's.
fn package(package: &Path, program: &Path, log: &Log) -> Result<(), Failure> {
    let folder = workspace::output().join("dist/package");
    Job::new("dpkg-deb").arg("--info").arg(package).run(log)?;
    Job::new("dpkg-deb").arg("--extract").arg(package).arg(&folder).run(log)?;
    if fs::read(folder.join("usr/bin/thalweg"))? != fs::read(program)? {
        return Err(Failure::failed("the Debian package has another command than the tarball"));
    }
    for file in [
        "usr/share/man/man1/thalweg.1.gz",
        "usr/share/bash-completion/completions/thalweg",
        "usr/share/doc/thalweg/copyright",
    ] {
        if !folder.join(file).is_file() {
            return Err(Failure::failed(format!("the Debian package has no {file}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::newest_glibc;

    #[test]
    fn the_newest_library_is_found() {
        let told = "0x0010: Name: GLIBC_2.9  Flags: none\n 0x20: Name: GLIBC_2.2.5  Flags: none\n GCC_3.0";
        assert_eq!(newest_glibc(told), Some((2, 9)));
        assert_eq!(newest_glibc("GLIBC_2.17 GLIBC_2.4\n"), Some((2, 17)));
        assert_eq!(newest_glibc("GCC_3.0"), None);
    }
}
