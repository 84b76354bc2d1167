//! Compares generated code with the files under `golden/`.
//!
//! `BLESS=1 cargo test -p thalweg-build --test it golden` updates them. The tests of `examples/` include the same files
//! and show that they compile and that their calls work.

use std::fs;
use std::path::{Path, PathBuf};

use prost::Message;
use thalweg_build::Builder;

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// Compares the output of `builder` for `protos` with all files of `golden/{golden}`.
#[track_caller]
fn check(golden: &str, protos: &[&str], configure: impl FnOnce(Builder) -> Builder) {
    compare(golden, |builder| configure(builder).compile_protos(protos, &[tests().join("proto")]));
}

/// Compares the output of `compile` with all files of `golden/{golden}`.
#[track_caller]
fn compare(golden: &str, compile: impl FnOnce(Builder) -> Result<(), thalweg_build::Error>) {
    let out = tempfile::tempdir().expect("a temporary folder");
    let builder =
        thalweg_build::configure().out_dir(out.path()).include_file("mod.rs").emit_rerun_if_changed(false);
    compile(builder).expect("the files are right");

    let golden = tests().join("golden").join(golden);
    if std::env::var_os("BLESS").is_some() {
        let _ = fs::remove_dir_all(&golden);
        fs::create_dir_all(&golden).expect("the tree can be written");
        for name in file_names(out.path()) {
            fs::copy(out.path().join(&name), golden.join(&name)).expect("the tree can be written");
        }
    }
    assert_eq!(file_names(out.path()), file_names(&golden));
    for name in file_names(&golden) {
        let made = fs::read(out.path().join(&name)).expect("it was just made");
        let expected = fs::read(golden.join(&name)).expect("it was just listed");
        let text = String::from_utf8_lossy(&made);
        assert!(made == expected, "{name} differs from the golden file; see git diff after BLESS=1:\n{text}");
    }
}

pub(crate) fn file_names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn all_call_types_match_golden_files() {
    check("shapes", &["shapes.proto", "rootless.proto", "type.proto"], |builder| builder);
}

#[test]
fn options() {
    check("options", &["shapes.proto"], |builder| {
        builder
            .build_server(false)
            .extern_path(".google.protobuf.Timestamp", "::clock::Timestamp")
            .extern_path(".shapes.v1.common", "crate::common")
            .type_attribute(".shapes.v1.Question", "#[derive(Eq)]")
            .enum_attribute("Kind", "#[derive(strum::Display)]")
            .field_attribute("Answer.text", "#[doc(alias = \"words\")]")
            .bytes(".shapes.v1.Question.payload")
            .btree_map(".shapes.v1.Question.parts")
            .boxed("Answer.page")
            .disable_comments("Shapes.Unary")
            .client_mod_attribute("shapes.v1", "#[cfg(feature = \"client\")]")
            .client_attribute("Shapes", "#[derive(Debug)]")
            .prost_path("::prost")
    });
}

#[test]
fn servers_only_match_golden_files() {
    check("server", &["rootless.proto"], |builder| {
        builder
            .build_client(false)
            .embed_descriptors(true)
            .server_mod_attribute(".", "#[cfg(feature = \"server\")]")
            .server_attribute("Rootless", "#[doc(alias = \"server\")]")
            .trait_attribute("Rootless", "#[doc(alias = \"service\")]")
    });
}

#[test]
fn codec_path_wraps_messages() {
    check("codec", &["rootless.proto"], |builder| builder.codec_path("crate::Json"));
}

/// `editions.binpb` is the output of `protoc --include_imports --include_source_info -o` for `editions.proto`.
#[test]
fn editions() {
    let encoded = fs::read(tests().join("proto/editions.binpb")).expect("the descriptors");
    compare("editions", |builder| builder.compile_encoded_fds(&encoded));
}

#[test]
fn messages_only_match_golden_files() {
    check("messages", &["rootless.proto"], |builder| builder.build_client(false).build_server(false));
}

/// Returns the names of the files in a set.
fn names_in(set: &Path) -> Vec<String> {
    let wire = fs::read(set).expect("it was just made");
    let set = thalweg_build::FileDescriptorSet::decode(&*wire).expect("a descriptor set");
    set.file.iter().map(|file| file.name().to_owned()).collect()
}

#[test]
fn package_embeds_its_services_and_their_imports() {
    let protos = ["shapes.proto", "rootless.proto", "type.proto"];
    let out = tempfile::tempdir().expect("a temporary folder");
    let compile = |builder: Builder| {
        let builder = builder.out_dir(out.path()).embed_descriptors(true).emit_rerun_if_changed(false);
        builder.compile_protos(&protos, &[tests().join("proto")]).expect("the files are right");
    };
    compile(thalweg_build::configure().build_server(false));
    assert!(
        !file_names(out.path()).iter().any(|name| name.ends_with(".descriptors.bin")),
        "without servers nobody has them"
    );

    compile(thalweg_build::configure());
    let sets: Vec<String> =
        file_names(out.path()).into_iter().filter(|name| name.ends_with(".descriptors.bin")).collect();
    assert_eq!(
        sets,
        ["_.descriptors.bin", "shapes.type.async.descriptors.bin", "shapes.v1.descriptors.bin"],
        "not for `shapes.v1.common`, which has no service"
    );
    assert_eq!(names_in(&out.path().join("_.descriptors.bin")), ["rootless.proto"]);
    let shapes = names_in(&out.path().join("shapes.v1.descriptors.bin"));
    assert_eq!((&*shapes[0], shapes.last().unwrap().as_str()), ("common/size.proto", "shapes.proto"));
    assert!(shapes.contains(&"google/protobuf/any.proto".to_owned()), "{shapes:?}");
    assert!(!shapes.contains(&"type.proto".to_owned()), "{shapes:?}");
    let last = names_in(&out.path().join("shapes.type.async.descriptors.bin"));
    assert_eq!(last[..], [&shapes[..], &["type.proto".to_owned()]].concat());
    // Once per package, independent of the number of services.
    let code = fs::read_to_string(out.path().join("shapes.v1.rs")).expect("code was made");
    assert_eq!(code.matches("include_bytes!").count(), 1);
    assert_eq!(code.matches("= super::FILE_DESCRIPTOR_SET;").count(), code.matches("impl<T").count() / 3);
}

#[test]
fn embedded_descriptors_have_custom_options() {
    let out = tempfile::tempdir().expect("a temporary folder");
    let proto = out.path().join("a.proto");
    let text = r#"
        syntax = "proto3";
        package a;
        import "google/protobuf/descriptor.proto";
        extend google.protobuf.MethodOptions { string path = 50000; }
        message M {}
        service S { rpc Get(M) returns (M) { option (path) = "/v1/all"; } }
    "#;
    fs::write(&proto, text).expect("the folder can be written");
    let builder = thalweg_build::configure().embed_descriptors(true).out_dir(out.path());
    builder.emit_rerun_if_changed(false).compile_protos(&[&proto], &[out.path()]).expect("the file is right");
    let wire = fs::read(out.path().join("a.descriptors.bin")).expect("it was just made");
    // Once as the option's value; the source text is not embedded.
    let value = b"/v1/all";
    assert_eq!(wire.windows(value.len()).filter(|bytes| bytes == value).count(), 1);
}

#[test]
fn descriptors_have_imports_and_comments() {
    let out = tempfile::tempdir().expect("a temporary folder");
    let path = out.path().join("descriptors.bin");
    thalweg_build::configure()
        .out_dir(out.path())
        .file_descriptor_set_path(&path)
        .emit_rerun_if_changed(false)
        .compile_protos(&["common/page.proto"], &[tests().join("proto")])
        .expect("the files are right");
    let wire = fs::read(&path).expect("it was just made");
    let set = thalweg_build::FileDescriptorSet::decode(&*wire).expect("a descriptor set");
    let names: Vec<&str> = set.file.iter().map(prost_types::FileDescriptorProto::name).collect();
    assert_eq!(names, ["common/size.proto", "common/page.proto"]);
    let locations = &set.file[1].source_code_info.as_ref().expect("the comments").location;
    let comments: Vec<&str> = locations.iter().filter_map(|at| at.leading_comments.as_deref()).collect();
    assert_eq!(comments, [" Part of a list.\n"]);

    // The same code comes from descriptors, for example written by protoc.
    let again = tempfile::tempdir().expect("a temporary folder");
    thalweg_build::configure().out_dir(again.path()).compile_fds(set).expect("the descriptors are right");
    let code = |folder: &Path| fs::read_to_string(folder.join("shapes.v1.common.rs")).expect("code was made");
    assert_eq!(code(again.path()), code(out.path()));
}
