//! Protobuf's own files, version 36.2, as shipped with protoc.

macro_rules! files {
    ($($name:literal)*) => {
        &[$(($name, include_str!($name))),*]
    };
}

const FILES: &[(&str, &str)] = files![
    "google/protobuf/any.proto"
    "google/protobuf/api.proto"
    "google/protobuf/c_sharp_features.proto"
    "google/protobuf/compiler/plugin.proto"
    "google/protobuf/cpp_features.proto"
    "google/protobuf/cpp_file_options.proto"
    "google/protobuf/cpp_options.proto"
    "google/protobuf/descriptor.proto"
    "google/protobuf/duration.proto"
    "google/protobuf/empty.proto"
    "google/protobuf/field_mask.proto"
    "google/protobuf/go_features.proto"
    "google/protobuf/java_features.proto"
    "google/protobuf/json_enumvalue_options.proto"
    "google/protobuf/json_options.proto"
    "google/protobuf/source_context.proto"
    "google/protobuf/struct.proto"
    "google/protobuf/timestamp.proto"
    "google/protobuf/type.proto"
    "google/protobuf/wrappers.proto"
];

/// The file that defines the options of all declarations.
pub(super) const DESCRIPTOR: &str = "google/protobuf/descriptor.proto";

/// Returns the text of a built-in file.
pub(super) fn source(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(known, _)| *known == name).map(|&(_, text)| text)
}
