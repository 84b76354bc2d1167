//! The servers, and how each is started.

use std::path::PathBuf;

use crate::failure::Result;
use crate::job::Job;
use crate::server::{Server, free_port};
use crate::test::etcd;
use crate::{tools, workspace};

/// A server as the cases call it, and which program with which words it is.
pub(super) struct Kind {
    name: &'static str,
    program: Program,
    words: &'static str,
}

enum Program {
    /// An example of grpc-go's: its last name here, and its package.
    Go(&'static str),
    /// `xtask/suites/tonic`, with the folder of certificates behind its words if there are any.
    Tonic,
    /// `xtask/suites/cpp`.
    Cpp,
    Etcd,
}

use Program::{Cpp, Etcd, Go, Tonic};

const KINDS: [Kind; 11] = [
    kind("Reflection", Go("features/reflection/server"), ""),
    // It answers a name once.
    kind("ErrorDetails", Go("features/error_details/server"), ""),
    // It has no reflection.
    kind("Greeter", Go("helloworld/greeter_server"), ""),
    kind("Health", Go("features/health/server"), "-sleep 200ms"),
    kind("RouteGuide", Go("route_guide/server"), ""),
    kind("RouteGuideTls", Go("route_guide/server"), "-tls"),
    kind("Tonic", Tonic, ""),
    kind("TonicTls", Tonic, "tls"),
    // Of clients with certificates.
    kind("TonicMutualTls", Tonic, "mtls"),
    kind("Cpp", Cpp, ""),
    // It has no reflection.
    kind("Etcd", Etcd, ""),
];

const fn kind(name: &'static str, program: Program, words: &'static str) -> Kind {
    Kind { name, program, words }
}

/// The one that the cases call so.
pub(super) fn named(name: &str) -> Result<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| failed!("there is no server `{name}`"))
}

impl Kind {
    /// What starts it on `port`.
    pub(super) fn job(&self, port: &str) -> Result<Job> {
        match self.program {
            Go(example) => {
                let package = format!("google.golang.org/grpc/examples/{example}");
                let name = format!("example-{}", example.replace('/', "-"));
                let program = tools::go_program(&name, &package, "go")?;
                Ok(Job::new(program).words(&format!("{} -port {port}", self.words)))
            }
            Tonic => {
                let job = Job::new(tonic_examples()?).arg(port).words(self.words);
                let certificates = tools::grpc_go_examples()?.join("data/x509");
                Ok(if self.words.is_empty() { job } else { job.arg(certificates) })
            }
            Cpp => Ok(Job::new(greeter()?).arg(port)),
            Etcd => etcd::serve(port, "called-etcd"),
        }
    }
}

/// Starts all servers, each on a port of its own.
pub(super) fn start_all() -> Result<Vec<(&'static str, Server)>> {
    let start = |kind: &Kind| {
        let port = free_port()?;
        Ok((kind.name, Server::start_at(&kind.job(&port.to_string())?, port)?))
    };
    KINDS.iter().map(start).collect()
}

/// tonic with services in the shape of its examples, which are no crate.
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
