//! Tests `thalweg man`.

use std::fs;

use crate::support::{outcome, thalweg};

#[test]
fn each_man_page_matches_help() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("share/man1");
    let (code, stdout, stderr) = outcome(thalweg(&["man", pages.to_str().unwrap()]).output().unwrap());
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (Some(0), "", ""));
    let page = |name: &str| fs::read_to_string(pages.join(name)).unwrap();
    assert!(page("thalweg.1").contains("thalweg\\-load(1)"));
    assert!(page("thalweg-load.1").contains("\\-\\-connections"));
    assert!(page("thalweg-lab-sizes.1").contains("\\-\\-against"));
    let names: Vec<String> = fs::read_dir(&pages)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    for hidden in ["thalweg-complete.1", "thalweg-help.1"] {
        assert!(!names.iter().any(|name| name == hidden), "{names:?}");
    }
}
