//! Schemas declared by tests. The tests of `thalweg-web` include this file.

use std::fmt::Write;

use thalweg_openapi::rules::{Rules, RulesError};
use thalweg_protobuf::{Schema, sources};

/// Returns the `.proto` files of `tests/proto/google/api`, by name.
pub(crate) fn google_api(name: &str) -> Option<String> {
    let text = match name {
        "google/api/annotations.proto" => include_str!("../proto/google/api/annotations.proto"),
        "google/api/resources.proto" => include_str!("../proto/google/api/resources.proto"),
        _ => return None,
    };
    Some(text.to_owned())
}

/// Compiles a test's declarations, in the package `t`.
pub(crate) fn schema(declarations: &str) -> Schema {
    Schema::from_descriptor_set(&descriptors(declarations)).unwrap()
}

/// Compiles them to a `FileDescriptorSet`.
pub(crate) fn descriptors(declarations: &str) -> Vec<u8> {
    let text = format!(
        r#"syntax = "proto3"; package t;
        import "google/api/annotations.proto";
        import "google/api/resources.proto";
        import "google/protobuf/duration.proto";
        import "google/protobuf/empty.proto";
        import "google/protobuf/field_mask.proto";
        import "google/protobuf/struct.proto";
        import "google/protobuf/timestamp.proto";
        import "google/protobuf/wrappers.proto";
        {declarations}"#
    );
    let read = move |name: &str| if name == "t.proto" { Some(text.clone()) } else { google_api(name) };
    sources::compile(&["t.proto"], read).unwrap()
}

/// Returns the rules of the service `t.S`.
pub(crate) fn rules(declarations: &str) -> Result<Rules, RulesError> {
    Rules::new(&schema(declarations), ["t.S"])
}

/// Declares a method for each rule (the content of its annotation), and the messages they use.
pub(crate) fn service(messages: &str, input: &str, output: &str, rules: &[&str]) -> String {
    let mut methods = String::new();
    for (index, rule) in rules.iter().enumerate() {
        let option = format!("option (google.api.http) = {{ {rule} }};");
        writeln!(methods, "rpc M{index}({input}) returns ({output}) {{ {option} }}").unwrap();
    }
    format!("{messages} service S {{ {methods} }}")
}
