//! The files and map entries named in the documents exist.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{files, workspace};

/// Folders without documents of ours.
const EXCLUDED_FOLDERS: &[&str] = &["target", ".git", "node_modules"];

/// All files of the tree, relative to its root.
fn tree() -> Vec<String> {
    let root = workspace::root();
    let enters = |folder: &Path| !EXCLUDED_FOLDERS.iter().any(|name| folder.ends_with(name));
    let found = files::below_if(root, enters).expect("the tree can be read");
    let relative = |path: &PathBuf| path.strip_prefix(root).map(|path| path.display().to_string());
    found.iter().filter_map(|path| relative(path).ok()).collect()
}

fn documents() -> Vec<String> {
    tree().into_iter().filter(|path| files::has_extension(Path::new(path), "md")).collect()
}

fn read(path: &str) -> String {
    fs::read_to_string(workspace::root().join(path)).unwrap_or_default()
}

/// The names of source files in backquotes.
fn source_files(text: &str) -> Vec<&str> {
    let is_path = |word: &&str| {
        files::has_extension(Path::new(word), "rs")
            && word.chars().all(|it| it.is_ascii_alphanumeric() || "/._-".contains(it))
    };
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2)).filter(is_path).collect()
}

#[test]
fn source_files_named_in_documents_exist() {
    let tree = tree();
    let exists = |name: &str| tree.iter().any(|path| path == name || path.ends_with(&format!("/{name}")));
    let mut missing = Vec::new();
    for document in documents().iter().filter(|document| !EXAMPLES_OF_OTHERS.contains(&document.as_str())) {
        let text = read(document);
        missing.extend(
            source_files(&text)
                .into_iter()
                .filter(|name| !exists(name))
                .map(|name| format!("{document}: {name}")),
        );
    }
    assert!(missing.is_empty(), "files that are not there:\n{}", missing.join("\n"));
}

/// Documents that name files of a user's own project.
const EXAMPLES_OF_OTHERS: &[&str] = &["docs/codegen.md", "CONTRIBUTING.md"];

#[test]
fn architecture_map_matches_the_tree() {
    let text = read("ARCHITECTURE.md");
    let map = text.split("## Map").nth(1).and_then(|after| after.split("```").nth(1)).unwrap_or_default();
    let mut missing = Vec::new();
    let mut parent = String::new();
    for line in map.lines().skip(1).filter(|line| !line.trim().is_empty()) {
        let Some(name) = line.split_whitespace().next() else { continue };
        let indent = line.len() - line.trim_start().len();
        let name = name.trim_end_matches('/');
        let found = match indent {
            0 => {
                parent = name.to_owned();
                workspace::root().join(name).exists()
            }
            2 => ["", ".rs"]
                .iter()
                .any(|end| workspace::root().join(format!("{parent}/src/{name}{end}")).exists()),
            // The rest of a description.
            _ => true,
        };
        if !found {
            missing.push(format!("{parent}: {name}"));
        }
    }
    assert!(!parent.is_empty(), "there is a map");
    assert!(missing.is_empty(), "ARCHITECTURE.md's map lists missing paths:\n{}", missing.join("\n"));
    for folder in fs::read_dir(workspace::root().join("crates")).expect("there are crates").flatten() {
        let name = format!("crates/{}", folder.file_name().to_string_lossy());
        assert!(map.contains(&name), "ARCHITECTURE.md's map has no {name}");
    }
}
