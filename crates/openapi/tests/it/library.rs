//! The library of `tests/proto` and its document. The tests of `thalweg-web` include this file.

use std::fs;
use std::path::Path;

use serde_json::Value;
use thalweg_protobuf::sources;

/// The folder of these tests, from any crate.
pub(crate) const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../openapi/tests");

/// Checks that this is the document of the library.
pub(crate) fn assert_golden(found: &Value) {
    let expected = include_str!("../golden/library.json");
    let expected: Value = serde_json::from_str(expected).unwrap();
    for pointer in ["/info", "/tags", "/x-google-api-http"] {
        assert_eq!(found.pointer(pointer), expected.pointer(pointer), "{pointer}");
    }
    for part in ["/paths", "/components/schemas"] {
        let (found, expected) = (found.pointer(part).unwrap(), expected.pointer(part).unwrap());
        for (name, expected) in expected.as_object().unwrap() {
            assert_eq!(&found[name], expected, "{part} {name}");
        }
        assert_eq!(found.as_object().unwrap().len(), expected.as_object().unwrap().len(), "{part}");
    }
}

/// Returns the descriptors of the library.
pub(crate) fn descriptors() -> Vec<u8> {
    let read = |name: &str| fs::read_to_string(Path::new(FOLDER).join("proto").join(name)).ok();
    sources::compile(&["library.proto"], read).unwrap()
}
