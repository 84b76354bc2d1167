//! Realistic and malicious sources. `tests/it/protoc.rs` compares hundreds of small files with protoc.

use std::io;
use std::path::{Path, PathBuf};

use super::{Compiler, Disk, FolderError, Folders, SourceError, compile};
use crate::Schema;

/// Compiles the first of `files`, which may import the others.
fn compile_files(files: &[(&str, &str)]) -> Result<Vec<u8>, SourceError> {
    let read = |name: &str| files.iter().find(|file| file.0 == name).map(|file| file.1.to_owned());
    compile(&[files[0].0], read)
}

/// Checks the errors: one line each, with position and message.
#[track_caller]
fn refused(files: &[(&str, &str)], expected: &[&str]) {
    let error = compile_files(files).expect_err("the sources are wrong");
    let lines: Vec<String> = error
        .diagnostics()
        .iter()
        .map(|it| match (it.line(), it.column()) {
            (Some(line), Some(column)) => format!("{}:{line}:{column}: {}", it.file(), it.message()),
            _ => format!("{}: {}", it.file(), it.message()),
        })
        .collect();
    assert_eq!(lines, expected);
}

#[test]
fn well_known_types_need_no_source() {
    let source =
        "syntax = 'proto3'; import 'google/protobuf/any.proto'; message A { google.protobuf.Any b = 1; }";
    let set =
        compile_files(&[("a.proto", source), ("google/protobuf/any.proto", "an old copy")]).expect("right");
    assert_eq!(Schema::from_descriptor_set(&set).expect("right").files().len(), 2);
}

#[test]
fn extension_ranges_keep_their_options() {
    let source = "syntax = 'proto2'; message M { extensions 100 [verification = UNVERIFIED]; \
                  extensions 4 to 5, 7 [declaration = { number: 4 full_name: '.x' type: 'int32' }, \
                  declaration = { number: 7 reserved: true }]; }";
    refused(
        &[("a.proto", source)],
        &[
            "a.proto:1:87: declared extension number 7 is not in the range",
            "a.proto:1:95: declared extension number 4 is not in the range",
            "a.proto:1:95: extension name \".x\" is declared twice",
        ],
    );
    let (alone, _) = source.split_once(" extensions 4").expect("present");
    compile_files(&[("a.proto", &format!("{alone} }}"))]).expect("protoc accepts it");
}

#[test]
fn names_resolve_to_imported_declarations() {
    let other = "syntax = 'proto3'; package env.clusters.common; message Other {}";
    let common = "syntax = 'proto3'; package env.common; message Cfg {}";
    let user =
        "syntax = 'proto3'; package env.clusters.fwd; import 'f2.proto'; message M { common.Cfg c = 1; }";
    let read = |name: &str| match name {
        "f1.proto" => Some(other.to_owned()),
        "f2.proto" => Some(common.to_owned()),
        "f3.proto" => Some(user.to_owned()),
        _ => None,
    };
    for files in [["f1.proto", "f3.proto"], ["f3.proto", "f1.proto"]] {
        let set = compile(&files, read).expect("no order of the files matters");
        let schema = Schema::from_descriptor_set(&set).expect("right");
        assert!(schema.message("env.clusters.fwd.M").is_some());
    }
    let forgotten = user.replace("import 'f2.proto';", "import 'f1.proto';");
    refused(
        &[("f3.proto", &forgotten), ("f1.proto", other)],
        &[
            "f3.proto:1:77: \"common.Cfg\" resolves to \"env.clusters.common.Cfg\" here, which is not defined: use \
             \".common.Cfg\" to start from the outermost scope",
        ],
    );
}

#[test]
fn unresolved_name_suggests_the_missing_import() {
    let a = "syntax = 'proto3'; import 'b.proto'; message A { C c = 1; }";
    let b = "syntax = 'proto3'; import 'c.proto'; message B { C c = 1; }";
    let c = "syntax = 'proto3'; message C {}";
    refused(
        &[("a.proto", a), ("b.proto", b), ("c.proto", c)],
        &["a.proto:1:50: \"C\" is declared in \"c.proto\", which is not imported: add the import"],
    );
    let public = b.replace("import", "import public");
    compile_files(&[("a.proto", a), ("b.proto", &public), ("c.proto", c)])
        .expect("b.proto imports it for others");
}

#[test]
fn errors_of_imports_are_reported_first() {
    let a = "import 'gone.proto';\nimport 'b.proto';";
    let b = "syntax = 'proto3';\nimport 'gone.proto';";
    refused(
        &[("a.proto", a), ("b.proto", b)],
        &[
            "b.proto:2:1: failed to import \"gone.proto\": file not found",
            "a.proto:1:1: failed to import \"gone.proto\": file not found",
        ],
    );
    let cycle = "import 'a.proto';";
    refused(&[("a.proto", cycle)], &["a.proto:1:1: file imports itself: a.proto -> a.proto"]);
    refused(
        &[("a.proto", "import './b.proto';")],
        &[
            "a.proto:1:1: failed to import \"./b.proto\": a file name cannot have a backslash, \".\", \"..\" or an \
             empty \
             part",
        ],
    );
}

#[test]
fn parsing_continues_after_an_error() {
    let source =
        "syntax = 'proto3';\nmessage A {\n  int32 x = 1\n  int32 y = 2;\n  int32 z 3;\n}\nenum E { }";
    refused(
        &[("a.proto", source)],
        &[
            "a.proto:4:3: expected \";\", found \"int32\"",
            "a.proto:5:11: expected \"=\" and a field number, found \"3\"",
        ],
    );
}

/// A disk with some files. Paths below `/link` are in `/real`, and `view/link.proto` is a link to `inc/b.proto`.
const DISK: Disk = Disk {
    read: |path| match path.to_str() {
        Some("inc/sub/a.proto" | "./inc/sub/a.proto" | "inc/./sub/a.proto" | "/link/sub/a.proto") => {
            Ok(b"\xef\xbb\xbfsyntax = 'proto3'; message A {}".to_vec())
        }
        Some("inc/b.proto") => {
            Ok(b"syntax = 'proto3'; import 'sub/a.proto'; import 'a.proto'; message B { A a = 1; }".to_vec())
        }
        Some("inc/utf16.proto") => Ok(vec![0xff, 0xfe, b's', 0]),
        Some("inc/folder.proto") => Err(io::ErrorKind::IsADirectory.into()),
        _ => Err(io::ErrorKind::NotFound.into()),
    },
    canonicalize: |path| {
        let path: PathBuf = path.components().filter(|part| *part != std::path::Component::CurDir).collect();
        let real = path.strip_prefix("/link").map_or(path.clone(), |below| Path::new("inc").join(below));
        match real.to_str() {
            Some("view/link.proto") => Ok(Path::new("/real/inc/b.proto").to_owned()),
            Some(
                "" | "view" | "inc" | "inc/sub" | "inc/sub/a.proto" | "inc/b.proto" | "inc/utf16.proto"
                | "inc/folder.proto",
            ) => Ok(Path::new("/real").join(real)),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    },
};

fn folders(paths: &[&str]) -> Folders {
    let mut folders = Folders::new(DISK);
    for path in paths {
        folders.push(path);
    }
    folders
}

#[test]
fn one_file_has_one_name_for_all_spellings_of_its_path() {
    let check = |include: &[&str], file: &str, expected: &str| {
        assert_eq!(folders(include).name(Path::new(file)).expect("present"), expected);
    };
    check(&["inc"], "inc/sub/a.proto", "sub/a.proto");
    check(&["./inc"], "inc/./sub/a.proto", "sub/a.proto");
    check(&["inc"], "/link/sub/a.proto", "sub/a.proto");
    check(&["inc/sub", "inc"], "inc/sub/a.proto", "a.proto");
    check(&["inc", "inc/sub"], "inc/sub/a.proto", "sub/a.proto");
    check(&[""], "inc/sub/a.proto", "inc/sub/a.proto");
    // A link is named by its own location.
    check(&["view"], "view/link.proto", "link.proto");
    check(&["inc"], "view/link.proto", "b.proto");
    // Not an existing path: looked up in the folders.
    check(&["inc"], "sub/a.proto", "sub/a.proto");
    check(&[], "google/protobuf/any.proto", "google/protobuf/any.proto");
    let outside = folders(&["inc/sub"]).name(Path::new("inc/b.proto"));
    assert!(matches!(outside, Err(FolderError::Outside)), "{outside:?}");
    let gone = folders(&["inc"]).name(Path::new("gone.proto"));
    assert!(matches!(gone, Err(FolderError::NotFound(_))), "{gone:?}");
}

#[test]
fn file_in_nested_folders_is_loaded_once() {
    let folders = folders(&["inc", "inc/sub", "/link"]);
    let compiled = Compiler::new(&folders).compile(&["a.proto", "b.proto", "sub/a.proto"]);
    let compiled = compiled.expect("no name is declared twice");
    assert_eq!(compiled.names, ["a.proto", "b.proto", "a.proto"]);
    assert_eq!(compiled.paths, ["inc/sub/a.proto", "inc/b.proto"]);
    let schema = Schema::from_descriptor_set(&compiled.set).expect("imports have the names of the files");
    assert_eq!(schema.files().len(), 2);
}

#[test]
fn non_utf8_source_is_reported() {
    let folders = folders(&["inc"]);
    let check = |file: &str, expected: &str| {
        let error = Compiler::new(&folders).compile(&[file]).expect_err("not a source");
        assert_eq!(error.to_string(), expected);
    };
    check("utf16.proto", "utf16.proto: inc/utf16.proto is not UTF-8 text");
    check("folder.proto", "folder.proto: failed to read inc/folder.proto: is a directory");
    check("gone.proto", "gone.proto: file not found");
}

/// None of these may panic or take long; with quadratic algorithms each would take minutes.
#[test]
fn hostile_sources_terminate() {
    let many = |count: usize, part: &dyn Fn(usize) -> String| (0..count).map(part).collect::<String>();
    let check = |source: String| drop(compile_files(&[("a.proto", &source)]));
    check("message M {".repeat(100_000));
    check("option (x) = {".repeat(100_000));
    check(format!("option (x) = {}", "{a".repeat(100_000)));
    check(format!("option {} = 1;", vec!["features"; 100_000].join(".")));
    check(format!("message M {{ reserved {}1; }}", "1,".repeat(100_000)));
    let ranges = many(100_000, &|index| format!("extensions {} [deprecated = true];", index * 2 + 1));
    check(format!("message M {{ {ranges} }}"));
    let numbers = vec!["1"; 50_000].join(",");
    let options = vec!["verification = UNVERIFIED"; 50_000].join(",");
    check(format!("message M {{ extensions {numbers} [{options}]; }}"));
    check(format!("enum E {{ {} }}", many(100_000, &|index| format!("A{index} = 0;"))));
    check(format!(
        "syntax = 'proto3'; message M {{ {} }}",
        many(50_000, &|index| format!("int32 a_{index} = 1;"))
    ));
    check(format!("package {};", vec!["a"; 100_000].join(".")));
    let long = "a".repeat(5_000);
    check(format!(
        "message {long} {{ {} }}",
        many(10_000, &|index| format!("optional {long} f{index} = {index};"))
    ));
    check("/*".repeat(100_000));
    check("\"\\".repeat(100_000));
    check("\u{fffd}".repeat(100_000));
}

#[test]
fn long_import_chains_do_not_overflow_the_stack() {
    let read = |name: &str| {
        let index: usize = name.strip_suffix(".proto")?.parse().ok()?;
        let import = if index < 20_000 { format!("import '{}.proto';", index + 1) } else { String::new() };
        Some(format!("syntax = 'proto3'; {import} message M{index} {{}}"))
    };
    let compiled = Compiler::new(&read).include_source_info(false).compile(&["0.proto"]).expect("right");
    assert_eq!(compiled.warnings.len(), 1, "only the given file is told of its unused import");
}
