//! Tests the release files: they are complete and correct, and run without anything else installed.

mod image;

use std::fs;
use std::path::{Path, PathBuf};

use crate::dist::{self, Dist, GLIBC, LICENCES, NOTICES, SBOM};
use crate::failure::Result;
use crate::job::Job;
use crate::{files, tools, workspace};

/// Size limit of the program in bytes.
const LEN_MAX: u64 = 16_000_000;

/// Checks only the bill of materials and the licences.
pub(super) fn sbom_and_licences() -> Result<String> {
    let folder = workspace::output().join("dist-papers");
    let parts = dist::write_sbom_and_licences(&folder)?;
    bill_of_materials(&folder.join(SBOM))?;
    licences(&folder, &parts)?;
    Ok(format!("{} packages with their licences", parts.len()))
}

/// Checks all files created by `cargo xtask dist`.
pub(super) fn check() -> Result<String> {
    let dist = dist::make()?;
    Job::new("sha256sum").words("--check --strict SHA256SUMS").directory(&dist.folder).run()?;
    let folder = unpack(&dist)?;
    let program = folder.join("thalweg");
    let len = small(&program)?;
    image::runs(&Job::new(&program).arg("--version"))?;
    let library = old_library(&program)?;
    complete(&folder, &dist.parts)?;
    manual(&folder)?;
    bill_of_materials(&dist.sbom)?;
    package(&dist.package, &program)?;
    let image = image::check(&dist)?;
    Ok(format!(
        "{:.1} MB, needs glibc {library}; {} packages with their licences; {image}",
        len as f64 / 1e6,
        dist.parts.len()
    ))
}

fn unpack(dist: &Dist) -> Result<PathBuf> {
    let folder = files::create_empty(workspace::output().join("dist"))?;
    let unpack = Job::new("tar").words("--extract --gzip --file").arg(&dist.tarball);
    unpack.arg("--directory").arg(&folder).run()?;
    Ok(folder.join(&dist.name))
}

fn small(program: &Path) -> Result<u64> {
    let len = fs::metadata(program)?.len();
    ensure!(len <= LEN_MAX, "the command has {len} bytes, more than the promised {LEN_MAX}");
    Ok(len)
}

/// Returns the newest version of the C library that the program needs.
fn old_library(program: &Path) -> Result<String> {
    tools::debian("binutils", &["readelf"])?;
    let output = Job::new("readelf").words("--version-info --wide").arg(program).quiet_text()?;
    let newest = newest_glibc(&output).ok_or_else(|| failed!("the command needs no C library"))?;
    ensure!(
        newest <= version(GLIBC),
        "the command needs glibc {}.{}, later than {GLIBC}",
        newest.0,
        newest.1
    );
    Ok(format!("{}.{}", newest.0, newest.1))
}

fn newest_glibc(versions: &str) -> Option<(u32, u32)> {
    let named = versions.split("GLIBC_").skip(1);
    named.map(|rest| version(rest.split_whitespace().next().unwrap_or_default())).max()
}

/// Parses a version; `2.2.5` counts as 2.2.
fn version(text: &str) -> (u32, u32) {
    let mut numbers = text.split('.').map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Checks that the folder has all files for users, and a licence of each package.
fn complete(folder: &Path, parts: &[String]) -> Result<()> {
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
        ensure!(
            fs::metadata(folder.join(file)).map_or(0, |data| data.len()) != 0,
            "the tarball has no {file}"
        );
    }
    licences(folder, parts)
}

/// Checks that each package is named on a line, with a licence text below or its own licence statement.
fn licences(folder: &Path, parts: &[String]) -> Result<()> {
    let licences = fs::read_to_string(folder.join(LICENCES))?;
    let without: Vec<&str> =
        parts.iter().map(String::as_str).filter(|name| !licences.contains(&format!("\n{name} "))).collect();
    if parts.is_empty() || !without.is_empty() {
        let (count, without) = (parts.len(), without.join(", "));
        bail!("of {count} packages these have no licence: {without}");
    }
    Ok(())
}

/// Checks all manual pages with mandoc.
fn manual(folder: &Path) -> Result<()> {
    tools::debian("mandoc", &["mandoc"])?;
    let pages = files::below(&folder.join("man"))?;
    Job::new("mandoc").words("-T lint -W error").args(pages).run()
}

/// Checks that the document is valid CycloneDX and that each component has a licence and a checksum.
fn bill_of_materials(path: &Path) -> Result<()> {
    let python = tools::python()?;
    Job::new(python).arg(workspace::suites().join("python/sbom.py")).arg(path).run()
}

/// Checks that Debian's tools read the package, and that its command equals the tarball's.
fn package(package: &Path, program: &Path) -> Result<()> {
    let folder = workspace::output().join("dist/package");
    Job::new("dpkg-deb").arg("--info").arg(package).run()?;
    Job::new("dpkg-deb").arg("--extract").arg(package).arg(&folder).run()?;
    ensure!(
        fs::read(folder.join("usr/bin/thalweg"))? == fs::read(program)?,
        "the commands of the Debian package and the tarball differ"
    );
    for file in [
        "usr/share/man/man1/thalweg.1.gz",
        "usr/share/bash-completion/completions/thalweg",
        "usr/share/doc/thalweg/copyright",
    ] {
        ensure!(folder.join(file).is_file(), "the Debian package has no {file}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::newest_glibc;

    #[test]
    fn newest_glibc_version_is_found() {
        let output = "0x0010: Name: GLIBC_2.9  Flags: none\n 0x20: Name: GLIBC_2.2.5  Flags: none\n GCC_3.0";
        assert_eq!(newest_glibc(output), Some((2, 9)));
        assert_eq!(newest_glibc("GLIBC_2.17 GLIBC_2.4\n"), Some((2, 17)));
        assert_eq!(newest_glibc("GCC_3.0"), None);
    }
}
