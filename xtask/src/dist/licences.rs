//! The third-party licences of a program, as they require.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use super::parts::{Part, Parts};
use crate::failure::Result;
use crate::files;

/// Prefixes of the names of licence and notice files.
const BEGINNINGS: [&str; 6] = ["licen", "copying", "copyright", "notice", "unlicense", "authors"];
/// No licence is longer: such a file is something else.
const LEN_MAX: u64 = 200_000;

/// Returns each text once, below the packages that have it.
pub(super) fn text(parts: &Parts) -> Result<String> {
    let mut packages_of: BTreeMap<String, Vec<&Part>> = BTreeMap::new();
    let mut without = Vec::new();
    for part in parts.others() {
        let texts = texts(part.package.folder())?;
        if texts.is_empty() {
            without.push(part);
        }
        for text in texts {
            packages_of.entry(text).or_default().push(part);
        }
    }
    let root = parts.root();
    let count = parts.others().count();
    let mut all = format!(
        "Thalweg {} is under {}; see LICENSE-MIT and LICENSE-APACHE. It is built with {count} packages of others, \
         whose licences follow. Each text appears once, below the packages that carry it.\n",
        root.package.version,
        root.licence()
    );
    let mut groups: Vec<(String, Vec<&Part>)> = packages_of.into_iter().collect();
    groups.sort_by_key(|(_, packages)| packages[0].package.name.clone());
    for (text, packages) in groups {
        all.push_str(&rule());
        for part in packages {
            let _ = writeln!(all, "{} ({})", named(part), part.licence());
        }
        let _ = writeln!(all, "\n{}", text.trim_end());
    }
    if !without.is_empty() {
        all.push_str(&rule());
        all.push_str("These packages contain no licence text; their manifests state:\n\n");
        for part in without {
            let authors = part.package.authors.join(", ");
            let by = if authors.is_empty() { String::new() } else { format!(", by {authors}") };
            let repository = part.package.repository.as_deref().unwrap_or_default();
            let _ = writeln!(all, "{}: {}{by}, {repository}", named(part), part.licence());
        }
    }
    Ok(all)
}

/// `bytes 1.12.0`.
fn named(part: &Part) -> String {
    format!("{} {}", part.package.name, part.package.version)
}

/// Separator between two texts.
pub(super) fn rule() -> String {
    format!("\n{}\n", "-".repeat(80))
}

/// Returns the licences and notices in a package's folder, sorted by file name, including those of bundled code.
fn texts(folder: &Path) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for path in files(folder)? {
        // Some files are in Latin-1.
        let text = String::from_utf8_lossy(&fs::read(&path)?).replace("\r\n", "\n");
        if !texts.contains(&text) && !text.trim().is_empty() {
            texts.push(text);
        }
    }
    Ok(texts)
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    /// Bundled code is one or two folders down.
    const DEPTH: usize = 3;
    let depth = folder.components().count() + DEPTH;
    let mut found = files::below_if(folder, |folder| folder.components().count() <= depth)?;
    found.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        is_licence(&name) && fs::metadata(path).is_ok_and(|data| data.is_file() && data.len() <= LEN_MAX)
    });
    Ok(found)
}

/// Decides by a lower-case name; source files do not count.
fn is_licence(name: &str) -> bool {
    let is_text =
        !name.contains('.') || [".md", ".txt", ".mit", ".apache"].iter().any(|end| name.ends_with(end));
    let is_variant = name.contains("-mit") || name.contains("-apache") || name.contains("apache-2.0");
    BEGINNINGS.iter().any(|beginning| name.starts_with(beginning)) && (is_text || is_variant)
}

#[cfg(test)]
mod tests {
    use super::is_licence;

    #[test]
    fn licence_names_are_recognized() {
        for name in ["license", "license-mit", "licence.md", "copying", "license.apache-2.0", "notice.txt"] {
            assert!(is_licence(name), "{name}");
        }
        for name in ["license.rs", "readme.md", "licensing.c", "cargo.toml"] {
            assert!(!is_licence(name), "{name}");
        }
    }
}
