//! Documents of OpenAPI that thalweg-openapi makes, asked of a public validator: PyPI's openapi-spec-validator.

use crate::failure::{Result, verdict};
use crate::job::Job;
use crate::test::rust;
use crate::{files, tools, workspace};

/// Folders where imports begin, and files with services. Between them they have all that annotations can say, and
/// services without any.
const SOURCES: &[(&str, &str)] = &[
    ("crates/openapi/tests/proto", "library.proto"),
    ("crates/services/proto", "grpc/health/v1/health.proto"),
    ("crates/services/proto", "grpc/reflection/v1/reflection.proto"),
    ("crates/services/proto", "grpc/channelz/v1/channelz.proto"),
    ("crates/load/proto", "grpc/testing/test.proto"),
    ("crates/services/tests/proto", "shop/orders.proto"),
    ("examples/proto", "routeguide.proto"),
    ("examples/chat/proto", "chat.proto"),
];
const OPTIONS: &[&str] = &["", "--schema-names --enum-numbers"];

pub(super) fn check() -> Result<String> {
    let python = tools::python()?;
    let program = rust::example("openapi")?;
    let folder = files::emptied(workspace::output().join("openapi"))?;
    let mut validate = Job::new(python).arg(workspace::suites().join("python/openapi.py"));
    for (index, (root, file)) in SOURCES.iter().enumerate() {
        for (option, words) in OPTIONS.iter().enumerate() {
            let document = folder.join(format!("{index}-{option}.json"));
            let print = Job::new(&program).arg(workspace::root().join(root)).arg(file).words(words);
            print.run_into(&document)?;
            validate = validate.arg(document);
        }
    }
    let said = validate.minutes(5).output()?;
    let (valid, all, found) = (said.count("valid "), SOURCES.len() * OPTIONS.len(), said.count("found: "));
    let account = format!("{valid} of {all} documents are valid; {found} kinds of damage found in another");
    verdict(said.status.success() && valid == all && found > 0, account)
}
