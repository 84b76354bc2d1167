//! Documents of OpenAPI that the web crate makes, asked of a public validator: PyPI's openapi-spec-validator.

use std::fs;

use crate::job::{Failure, Job, Log};
use crate::test::rust;
use crate::{tools, workspace};

/// Folders where imports begin, and files with services. Between them they have all that annotations can say, and
/// services without any.
const SOURCES: &[(&str, &str)] = &[
    ("crates/web/tests/proto", "library.proto"),
    ("crates/services/proto", "grpc/health/v1/health.proto"),
    ("crates/services/proto", "grpc/reflection/v1/reflection.proto"),
    ("crates/services/proto", "grpc/channelz/v1/channelz.proto"),
    ("crates/load/proto", "grpc/testing/test.proto"),
    ("crates/services/tests/proto", "shop/orders.proto"),
    ("examples/proto", "routeguide.proto"),
    ("examples/chat/proto", "chat.proto"),
];
const OPTIONS: &[&str] = &["", "--schema-names --enum-numbers"];

pub(super) fn check(log: &Log) -> Result<String, Failure> {
    let python = tools::python(log)?;
    let program = rust::example("openapi", log)?;
    let folder = workspace::output().join("openapi");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let mut validate = Job::new(python).arg(workspace::suites().join("python/openapi.py"));
    for (index, (root, file)) in SOURCES.iter().enumerate() {
        for (option, words) in OPTIONS.iter().enumerate() {
            let document = folder.join(format!("{index}-{option}.json"));
            let print = Job::new(&program).arg(workspace::root().join(root)).arg(file).words(words);
            fs::write(&document, print.text(log)?)?;
            validate = validate.arg(document);
        }
    }
    let output = validate.minutes(5).output(log)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let count = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
    let (valid, all, found) = (count("valid "), SOURCES.len() * OPTIONS.len(), count("found: "));
    let account = format!("{valid} of {all} documents are valid; {found} kinds of damage found in another");
    if output.status.success() && valid == all && found > 0 {
        Ok(account)
    } else {
        Err(Failure::failed(account))
    }
}
