//! Errors of a build script: each case is a `.proto` file and the printed text.

use std::fs;
use std::path::Path;

use thalweg_build::Error;

/// Compiles the first of `files`, which may import the others, and compares the printed text. A temporary folder
/// replaces `proto/`.
#[track_caller]
fn check(files: &[(&str, &str)], expected: &[&str]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("the folder can be written");
    }
    let error = compile(&folder.path().join(files[0].0), folder.path());
    assert_eq!(printed(&error, folder.path()), expected.join("\n"));
}

fn compile(file: &Path, include: &Path) -> Error {
    let out = tempfile::tempdir().expect("a temporary folder");
    thalweg_build::configure()
        .out_dir(out.path())
        .emit_rerun_if_changed(false)
        .compile_protos(&[file], &[include])
        .expect_err("the input is wrong")
}

/// Returns the output of a build script that returns the error from `main`.
fn printed(error: &Error, folder: &Path) -> String {
    format!("{error:?}").replace(&folder.display().to_string(), "proto")
}

#[test]
fn syntax() {
    check(
        &[("a.proto", "syntax = \"proto3\";\nmessage A {\n  string name = ;\n}\n")],
        &[
            "proto/a.proto:3:17: expected a field number, found \";\"",
            "  |",
            "3 |   string name = ;",
            "  |                 ^",
        ],
    );
}

#[test]
fn unclosed_message_is_reported_at_end_of_file() {
    check(
        &[("a.proto", "syntax = \"proto3\";\nmessage A {\n")],
        &[
            "proto/a.proto:3:1: expected \"}\" at the end of the message, found the end of the file",
            "  |",
            "3 | ",
            "  | ^",
        ],
    );
}

#[test]
fn columns_match_protoc_and_tabs_are_kept() {
    check(
        &[("a.proto", "syntax = \"proto3\";\nmessage A {\n\t/* größe */ string näme = 1;\n}\n")],
        &[
            "proto/a.proto:3:31: expected ASCII text outside of strings and comments",
            "  |",
            "3 | \t/* größe */ string näme = 1;",
            "  | \t                    ^^^",
            "proto/a.proto:3:31: expected \"=\" and a field number, found \"ä\"",
            "  |",
            "3 | \t/* größe */ string näme = 1;",
            "  | \t                    ^^^",
        ],
    );
}

#[test]
fn unknown_syntax() {
    check(
        &[("a.proto", "syntax = \"proto4\";\n")],
        &[
            "proto/a.proto:1:10: unknown syntax \"proto4\": expected \"proto2\" or \"proto3\"",
            "  |",
            "1 | syntax = \"proto4\";",
            "  |          ^^^^^^^^",
        ],
    );
}

#[test]
fn unknown_types_are_all_reported() {
    check(
        &[("a.proto", "syntax = \"proto3\";\nmessage A {\n  Nobody who = 1;\n\tNowhere place = 2;\n}\n")],
        &[
            "proto/a.proto:3:3: \"Nobody\" is not defined",
            "  |",
            "3 |   Nobody who = 1;",
            "  |   ^^^^^^",
            "proto/a.proto:4:9: \"Nowhere\" is not defined",
            "  |",
            "4 | \tNowhere place = 2;",
            "  | \t^^^^^^^",
        ],
    );
}

#[test]
fn unknown_type_of_a_method() {
    check(
        &[("a.proto", "syntax = \"proto3\";\nservice S {\n  rpc Get(A) returns (B);\n}\nmessage A {}\n")],
        &[
            "proto/a.proto:3:23: \"B\" is not defined",
            "  |",
            "3 |   rpc Get(A) returns (B);",
            "  |                       ^",
        ],
    );
}

#[test]
fn enum_as_message_type_is_rejected() {
    check(
        &[(
            "a.proto",
            "syntax = \"proto3\";\nservice S {\n  rpc Get(E) returns (stream A);\n}\n\
             message A {}\nenum E { ZERO = 0; }\n",
        )],
        &[
            "proto/a.proto:3:11: \"E\" is not a message",
            "  |",
            "3 |   rpc Get(E) returns (stream A);",
            "  |           ^",
        ],
    );
}

#[test]
fn missing_import() {
    check(
        &[("a.proto", "syntax = \"proto3\";\nimport \"gone.proto\";\n")],
        &[
            "proto/a.proto:2:1: failed to import \"gone.proto\": file not found",
            "  |",
            "2 | import \"gone.proto\";",
            "  | ^^^^^^",
            "  = help: imports are searched in the include directories (proto)",
        ],
    );
}

#[test]
fn error_in_import_is_shown_in_that_file() {
    check(
        &[
            ("a.proto", "syntax = \"proto3\";\nimport \"b.proto\";\n"),
            ("b.proto", "syntax = \"proto3\";\nmessage B {\n  Nobody who = 1;\n}\n"),
        ],
        &["proto/b.proto:3:3: \"Nobody\" is not defined", "  |", "3 |   Nobody who = 1;", "  |   ^^^^^^"],
    );
}

#[test]
fn import_cycle() {
    check(
        &[
            ("a.proto", "syntax = \"proto3\";\nimport \"b.proto\";\n"),
            ("b.proto", "syntax = \"proto3\";\nimport \"a.proto\";\n"),
        ],
        &[
            "proto/a.proto:2:1: file imports itself: a.proto -> b.proto -> a.proto",
            "  |",
            "2 | import \"b.proto\";",
            "  | ^^^^^^",
        ],
    );
}

#[test]
fn duplicate_field_number_is_shown_at_the_second() {
    check(
        &[("a.proto", "syntax = \"proto3\";\nmessage A {\n  string a = 1;\n  string b = 1;\n}\n")],
        &[
            "proto/a.proto:4:14: field number 1 of \"A\" is already used by \"a\": the next free number is 2",
            "  |",
            "4 |   string b = 1;",
            "  |              ^",
        ],
    );
}

#[test]
fn reserved_field_number_is_shown_at_the_range() {
    check(
        &[("a.proto", "syntax = \"proto3\";\nmessage A {\n  reserved 5 to 7;\n  string a = 6;\n}\n")],
        &[
            "proto/a.proto:3:12: field \"a\" uses the reserved number 6",
            "  |",
            "3 |   reserved 5 to 7;",
            "  |            ^",
        ],
    );
}

#[test]
fn duplicate_method() {
    check(
        &[(
            "a.proto",
            "syntax = \"proto3\";\nservice S {\n  rpc Get(A) returns (A);\n  rpc Get(A) returns (A);\n}\n\
             message A {}\n",
        )],
        &[
            "proto/a.proto:4:7: \"Get\" is already defined in \"S\"",
            "  |",
            "4 |   rpc Get(A) returns (A);",
            "  |       ^^^",
        ],
    );
}

#[test]
fn position_is_available_without_text() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("a.proto");
    fs::write(&file, "syntax = \"proto3\";\nmessage A {\n  Nobody who = 1;\n}\n").expect("writable");
    let Error::Source(error) = compile(&file, folder.path()) else { panic!("an error in the source") };
    assert_eq!((error.file(), error.line(), error.column()), (&*file, Some(3), Some(3)));
    assert_eq!(error.message(), "\"Nobody\" is not defined");
}

#[test]
fn missing_file_is_reported() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (proto, elsewhere) = (folder.path().join("a.proto"), folder.path().join("elsewhere"));
    let error = compile(&proto, folder.path());
    assert_eq!(printed(&error, folder.path()), "proto/a.proto: no such file");

    fs::write(&proto, "syntax = \"proto3\";\n").expect("writable");
    let error = compile(&proto, &elsewhere);
    let expected =
        "proto/a.proto: not in any of the include directories (proto/elsewhere); add its folder to them";
    assert_eq!(printed(&error, folder.path()), expected);
}

#[test]
fn file_that_is_not_utf8_is_reported() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let proto = folder.path().join("a.proto");
    fs::write(&proto, [0xff, 0xfe, 0x00]).expect("writable");
    let error = compile(&proto, folder.path());
    assert_eq!(printed(&error, folder.path()), "a.proto: proto/a.proto is not UTF-8 text");

    fs::remove_file(&proto).expect("writable");
    fs::create_dir(&proto).expect("writable");
    let error = compile(&proto, folder.path());
    assert_eq!(
        printed(&error, folder.path()),
        "a.proto: failed to read proto/a.proto: Is a directory (os error 21)"
    );
}

#[test]
fn missing_output_folder_is_reported() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let proto = folder.path().join("a.proto");
    fs::write(&proto, "syntax = \"proto3\";\nmessage A {}\n").expect("writable");
    let error = thalweg_build::configure()
        .out_dir(folder.path().join("gone"))
        .emit_rerun_if_changed(false)
        .compile_protos(&[&proto], &[folder.path()])
        .expect_err("the folder is not there");
    let expected = "proto/gone: failed to write: No such file or directory (os error 2)";
    assert_eq!(printed(&error, folder.path()), expected);
}

#[test]
fn one_type_with_two_extern_paths() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let proto = folder.path().join("a.proto");
    fs::write(&proto, "syntax = \"proto3\";\nmessage A {}\n").expect("writable");
    let error = thalweg_build::configure()
        .out_dir(folder.path())
        .emit_rerun_if_changed(false)
        .extern_path(".a.A", "::one::A")
        .extern_path(".a.A", "::two::A")
        .compile_protos(&[&proto], &[folder.path()])
        .expect_err("a type cannot be at two places");
    assert_eq!(printed(&error, folder.path()), "duplicate extern Protobuf path: .a.A");
}

#[test]
fn editions_in_decoded_descriptors_are_unsupported() {
    let file = prost_types::FileDescriptorProto {
        name: Some("a.proto".to_owned()),
        syntax: Some("editions".to_owned()),
        ..Default::default()
    };
    let error = thalweg_build::configure()
        .compile_fds(thalweg_build::FileDescriptorSet { file: vec![file] })
        .expect_err("there is no code for editions");
    let expected = "a.proto: unsupported edition; 2023 and 2024 are supported, from sources and by \
                    `compile_encoded_fds`";
    assert_eq!(printed(&error, Path::new("/")), expected);
}

#[test]
fn rpcs_with_the_same_rust_name_collide() {
    check(
        &[(
            "a.proto",
            "syntax = \"proto3\";\npackage a;\nmessage M {}\nservice S {\n  rpc GetURL(M) returns (M);\n  \
             rpc GetUrl(M) returns (M);\n}\n",
        )],
        &[
            "proto/a.proto:6:3: rpc `GetUrl` becomes the function `a::s_client::get_url` in Rust, as does rpc \
             `GetURL` (line 5)",
            "  |",
            "6 |   rpc GetUrl(M) returns (M);",
            "  |   ^",
            "  = help: rename one of them",
            "proto/a.proto:6:3: rpc `GetUrl` becomes the function `a::s_server::get_url` in Rust, as does rpc \
             `GetURL` (line 5)",
            "  |",
            "6 |   rpc GetUrl(M) returns (M);",
            "  |   ^",
            "  = help: rename one of them",
        ],
    );
}

/// Compiles `text` as `a.proto` with its imports, and returns the first printed line.
fn first_line(files: &[(&str, &str)]) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in files {
        let syntax = if text.contains("optional") { "proto2" } else { "proto3" };
        let text = format!("syntax = \"{syntax}\";\n{text}");
        fs::write(folder.path().join(name), text).expect("the folder can be written");
    }
    let error = compile(&folder.path().join("a.proto"), folder.path());
    printed(&error, folder.path()).lines().next().unwrap_or_default().to_owned()
}

#[test]
fn elements_with_the_same_rust_name_collide() {
    let check = |text: &str, expected: &str| assert_eq!(first_line(&[("a.proto", text)]), expected, "{text}");
    check(
        "message M {}\nservice S {\n rpc New(M) returns (M);\n rpc New_(M) returns (M); }",
        "proto/a.proto:5:2: rpc `New_` becomes the function `s_client::new_` in Rust, as does rpc `New` (line 4)",
    );
    check(
        "message M {}\nservice S {\n rpc A_B(M) returns (stream M);\n rpc AB(M) returns (stream M); }",
        "proto/a.proto:5:2: rpc `AB` becomes the type `s_server::ABStream` in Rust, as does rpc `A_B` (line 4)",
    );
    check(
        "message M {}\nservice GetURL {}\nservice GetUrl {}",
        "proto/a.proto:4:1: service `GetUrl` becomes the module `get_url_client` in Rust, as does service `GetURL` \
         (line 3)",
    );
    check(
        "message FooClient { message Inner {} }\nservice Foo {}",
        "proto/a.proto:3:1: service `Foo` becomes the module `foo_client` in Rust, as does message `FooClient` \
         (line 2)",
    );
    check(
        "enum Kind {\n KIND_A_B = 0;\n A_B = 1;\n}",
        "proto/a.proto:4:2: enum values \"A_B\" and \"KIND_A_B\" have the same name, ignoring case and the enum's \
         name as a prefix",
    );
    check(
        "enum Kind {\n _ = 0;\n}",
        "proto/a.proto:3:2: value `_` has no letter or digit, so it has no name in Rust",
    );
    check(
        "message HTTPCall {}\nmessage HttpCall {}",
        "proto/a.proto:3:1: message `HttpCall` becomes the type `HttpCall` in Rust, as does message `HTTPCall` \
         (line 2)",
    );
    check(
        "message M { message X {}\n enum x { A = 0; } }",
        "proto/a.proto:3:2: enum `x` becomes the type `m::X` in Rust, as does message `X` (line 2)",
    );
    check(
        "message M {\n optional int32 a1 = 1;\n optional int32 A1 = 2;\n}",
        "proto/a.proto:4:2: field `A1` becomes the field `M::a1` in Rust, as does field `a1` (line 3)",
    );
    check(
        "message M {\n int32 kind = 1;\n oneof Kind { int32 a = 2; }\n}",
        "proto/a.proto:4:2: oneof `Kind` becomes the field `M::kind` in Rust, as does field `kind` (line 3)",
    );
    check(
        "message M {\n oneof kind {\n  int32 a = 1;\n  int32 A = 2;\n }\n optional int32 b = 3;\n}",
        "proto/a.proto:5:3: field `A` becomes the variant `m::Kind::A` in Rust, as does field `a` (line 4)",
    );
}

#[test]
fn message_collides_with_package_of_its_name() {
    let files = [
        (
            "a.proto",
            "package v2;\nimport \"b.proto\";\nmessage Cluster {\n message Inner {}\n cluster.Outlier outlier = 1;\n}",
        ),
        ("b.proto", "package v2.cluster;\nmessage Outlier {}"),
    ];
    assert_eq!(
        first_line(&files),
        "proto/a.proto:4:1: message `Cluster` becomes the module `v2::cluster` in Rust, as does package `v2.cluster` \
         (proto/b.proto:2)"
    );
    // The fix that the error suggests.
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in files {
        fs::write(folder.path().join(name), format!("syntax = \"proto3\";\n{text}"))
            .expect("it can be written");
    }
    let builder = thalweg_build::configure().out_dir(folder.path()).emit_rerun_if_changed(false);
    let builder = builder.extern_path(".v2.cluster", "crate::v2_cluster");
    builder
        .compile_protos(&[folder.path().join("a.proto")], &[folder.path()])
        .expect("the package is elsewhere");
}

#[test]
fn enum_values_with_kept_prefixes_do_not_collide() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let proto = folder.path().join("a.proto");
    // Without the option, protoc rejects the file.
    let text = "syntax = \"proto2\";\n\
        enum Kind { option deprecated_legacy_json_field_conflicts = true; KIND_A_B = 0; A_B = 1; }";
    fs::write(&proto, text).expect("it can be written");
    let builder = thalweg_build::configure().out_dir(folder.path()).emit_rerun_if_changed(false);
    let builder = builder.prost_config(|config| {
        config.retain_enum_prefix();
    });
    builder.compile_protos(&[proto], &[folder.path()]).expect("the names differ");
}

#[test]
fn default_naming_an_alias_uses_the_first_value() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let proto = folder.path().join("a.proto");
    let text = "syntax = \"proto2\"; package p;\n\
        message M { enum Kind { option allow_alias = true; FIRST = 1; OTHER = 2; ALIAS = 1; }\n\
        optional Kind kind = 1 [default = ALIAS]; optional Kind other = 2 [default = OTHER]; }";
    fs::write(&proto, text).expect("it can be written");
    let builder = thalweg_build::configure().out_dir(folder.path()).emit_rerun_if_changed(false);
    builder.compile_protos(&[proto], &[folder.path()]).expect("it is valid");
    let code = fs::read_to_string(folder.path().join("p.rs")).expect("present");
    assert!(code.contains("default = \"First\"") && code.contains("default = \"Other\""), "{code}");
    assert!(!code.contains("Alias"), "{code}");
}
