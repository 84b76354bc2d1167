//! The servers, and how each is started.

use std::path::PathBuf;

use serde_json::Value;

use crate::failure::Result;
use crate::files::{list, text};
use crate::job::Job;
use crate::server::{Server, free_port};
use crate::{etcd, tools, workspace};

/// The job that starts the server with this name in the cases, on `port`.
pub(super) fn job(cases: &Value, name: &str, port: &str) -> Result<Job> {
    let server = list(&cases["servers"]).iter().find(|server| server["name"] == name);
    let server = server.ok_or_else(|| failed!("unknown server `{name}`"))?;
    let words = text(&server["words"]);
    match text(&server["program"]) {
        "tonic" => {
            let certificates = tools::grpc_go_examples()?.join("data/x509");
            let job = Job::new(tonic_examples()?).arg(port).words(words);
            Ok(job.args((!words.is_empty()).then_some(certificates)))
        }
        "cpp" => Ok(Job::new(greeter()?).arg(port)),
        "etcd" => etcd::serve(port, "called-etcd"),
        example => {
            let package = format!("google.golang.org/grpc/examples/{example}");
            let program =
                tools::go_program(&format!("example-{}", example.replace('/', "-")), &package, "go")?;
            Ok(Job::new(program).words(&format!("{words} -port {port}")))
        }
    }
}

/// Starts all servers, each on its own port.
pub(super) fn start_all(cases: &Value) -> Result<Vec<(&str, Server)>> {
    let start = |name| {
        let port = free_port()?;
        Ok((name, Server::start_at(&job(cases, name, &port.to_string())?, port)?))
    };
    list(&cases["servers"]).iter().map(|server| text(&server["name"])).map(start).collect()
}

/// tonic with services like those of its examples, which are not published as a crate.
fn tonic_examples() -> Result<PathBuf> {
    let target = workspace::tools().join("tonic-examples");
    let build = Job::cargo("build --locked --quiet --target-dir").arg(&target);
    build.directory(workspace::suites().join("tonic")).builds(15).run()?;
    Ok(target.join("debug/tonic-examples"))
}

/// gRPC C++ with reflection.
fn greeter() -> Result<PathBuf> {
    const PACKAGES: &str =
        "g++ make pkg-config libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc";
    tools::debian(PACKAGES, &["g++", "make", "pkg-config", "protoc", "grpc_cpp_plugin"])?;
    let folder = workspace::tools().join("greeter");
    let make = Job::new("make").arg("--directory").arg(workspace::suites().join("cpp"));
    make.arg(format!("BUILD={}", folder.display())).builds(5).run()?;
    Ok(folder.join("greeter"))
}
