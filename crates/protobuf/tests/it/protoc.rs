//! Compares the `.proto` front end with protoc 36.2, whose results for the files in `tests/protos` are recorded by
//! `cargo xtask protos --record`.

use std::fs;
use std::path::{Path, PathBuf};

use thalweg_protobuf::sources::{Compiled, Compiler, SourceError};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/protos")
}

/// Compiles one file of the corpus, which may import others of it.
fn compile(name: &str) -> Result<Compiled, SourceError> {
    let folders = [corpus().join("refused"), corpus().join("accepted")];
    let read = |name: &str| folders.iter().find_map(|folder| fs::read_to_string(folder.join(name)).ok());
    Compiler::new(&read).include_imports(false).compile(&[name])
}

fn file_names(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(corpus().join(folder)).expect("the corpus");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn accepted_files_yield_the_descriptors_of_protoc() {
    let expected = fs::read(corpus().join("accepted.binpb")).expect("the recording");
    let mut rest = &*expected;
    for name in file_names("accepted") {
        let set = compile(&name).unwrap_or_else(|error| panic!("{name}: {error}")).set;
        let (start, after) = rest.split_at(set.len().min(rest.len()));
        assert!(start == set, "{name}: protoc {start:02x?}, ours {set:02x?}");
        rest = after;
    }
    assert!(rest.is_empty(), "the recording has more files: run `cargo xtask protos --record`");
}

#[test]
fn rejected_files_have_errors_at_the_position_of_protoc() {
    let recorded = fs::read_to_string(corpus().join("refused.txt")).expect("the recording");
    let mut wrong = Vec::new();
    for line in recorded.lines() {
        let (name, error) = line.split_once('\t').expect("a name and an error");
        let ours = match compile(name) {
            Ok(_) => "accepted".to_owned(),
            Err(error) => place(&error),
        };
        // If protoc reports no line, any position in the file is accepted, and also the position of an import that it
        // cannot read.
        let (place, _) = error.split_once(": ").expect("a place");
        let file = ours.split(':').next();
        let agrees =
            if place.contains(':') { ours == place } else { file == Some(place) || file == Some(name) };
        if !agrees {
            wrong.push(format!("{name}: protoc {error}, ours {ours}"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    let names: Vec<&str> = recorded.lines().filter_map(|line| line.split('\t').next()).collect();
    assert_eq!(names, file_names("refused"), "run `cargo xtask protos --record`");
}

/// Returns `file:line:column` of the first error.
fn place(error: &SourceError) -> String {
    let first = &error.diagnostics()[0];
    match (first.line(), first.column()) {
        (Some(line), Some(column)) => format!("{}:{line}:{column}", first.file()),
        _ => first.file().to_owned(),
    }
}
