//! The servers, and how each is started.

use std::path::PathBuf;

use crate::job::{Failure, Job, Log};
use crate::server::{Server, free_port};
use crate::test::etcd;
use crate::{tools, workspace};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// grpc-go's `features/reflection`.
    Reflection,
    /// grpc-go's `features/error_details`, which answers a name once.
    ErrorDetails,
    /// grpc-go's `helloworld`, which has no reflection.
    Greeter,
    /// grpc-go's `features/health`, whose health changes every 200 ms.
    Health,
    /// grpc-go's `route_guide`.
    RouteGuide,
    /// The same over TLS.
    RouteGuideTls,
    /// `xtask/suites/tonic`.
    Tonic,
    /// The same over TLS.
    TonicTls,
    /// The same, of clients with certificates.
    TonicMutualTls,
    /// `xtask/suites/cpp`.
    Cpp,
    /// An etcd, which has no reflection.
    Etcd,
}

pub(super) const KINDS: [Kind; 11] = [
    Kind::Reflection,
    Kind::ErrorDetails,
    Kind::Greeter,
    Kind::Health,
    Kind::RouteGuide,
    Kind::RouteGuideTls,
    Kind::Tonic,
    Kind::TonicTls,
    Kind::TonicMutualTls,
    Kind::Cpp,
    Kind::Etcd,
];

impl Kind {
    /// The one that the cases call so.
    pub(super) fn named(name: &str) -> Result<Self, Failure> {
        let found = KINDS.into_iter().find(|kind| format!("{kind:?}") == name);
        found.ok_or_else(|| Failure::failed(format!("there is no server `{name}`")))
    }

    /// What starts it on `port`.
    pub(super) fn job(self, port: &str, log: &Log) -> Result<Job, Failure> {
        let go = |tool: &tools::GoTool, words: &str| {
            Ok(Job::new(tool.get(log)?).words(&format!("{words} -port {port}")))
        };
        let tonic = |words: &str| Ok::<_, Failure>(Job::new(tonic_examples(log)?).arg(port).words(words));
        let certificates = || Ok::<_, Failure>(tools::grpc_go_examples(log)?.join("data/x509"));
        match self {
            Self::Reflection => go(&tools::EXAMPLE_REFLECTION, ""),
            Self::ErrorDetails => go(&tools::EXAMPLE_DETAILS, ""),
            Self::Greeter => go(&tools::EXAMPLE_GREETER, ""),
            Self::Health => go(&tools::EXAMPLE_HEALTH, "-sleep 200ms"),
            Self::RouteGuide => go(&tools::EXAMPLE_ROUTES, ""),
            Self::RouteGuideTls => go(&tools::EXAMPLE_ROUTES, "-tls"),
            Self::Tonic => tonic(""),
            Self::TonicTls => Ok(tonic("tls")?.arg(certificates()?)),
            Self::TonicMutualTls => Ok(tonic("mtls")?.arg(certificates()?)),
            Self::Cpp => Ok(Job::new(greeter(log)?).arg(port)),
            Self::Etcd => etcd::serve(port, "called-etcd", log),
        }
    }
}

/// All servers, each on a port of its own.
pub(super) struct Servers {
    /// The folder of grpc-go's examples.
    pub(super) examples: PathBuf,
    /// The folder of etcd's protos.
    pub(super) etcd: PathBuf,
    running: Vec<(Kind, u16, Server)>,
}

impl Servers {
    pub(super) fn start(log: &Log) -> Result<Self, Failure> {
        let mut running = Vec::new();
        for kind in KINDS {
            let port = free_port()?;
            running.push((kind, port, Server::start(&kind.job(&port.to_string(), log)?, port, log)?));
        }
        Ok(Self { examples: tools::grpc_go_examples(log)?, etcd: etcd::protos(log)?, running })
    }

    /// `localhost:50051`.
    pub(super) fn target(&self, name: &str) -> Result<String, Failure> {
        let kind = Kind::named(name)?;
        let port = self.running.iter().find(|(of, ..)| *of == kind).map_or(0, |(_, port, _)| *port);
        Ok(format!("localhost:{port}"))
    }
}

/// tonic with services in the shape of its examples, which are no crate.
fn tonic_examples(log: &Log) -> Result<PathBuf, Failure> {
    let target = workspace::tools().join("tonic-examples");
    let build = Job::cargo("build --locked --quiet --target-dir").arg(&target);
    build.directory(workspace::suites().join("tonic")).builds().minutes(15).run(log)?;
    Ok(target.join("debug/tonic-examples"))
}

/// gRPC C++ with reflection.
fn greeter(log: &Log) -> Result<PathBuf, Failure> {
    const PACKAGES: &str =
        "g++ make pkg-config libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc";
    tools::debian(PACKAGES, &["g++", "make", "pkg-config", "protoc", "grpc_cpp_plugin"], log)?;
    let folder = workspace::tools().join("greeter");
    let make = Job::new("make").arg("--directory").arg(workspace::suites().join("cpp"));
    make.arg(format!("BUILD={}", folder.display())).builds().minutes(5).run(log)?;
    Ok(folder.join("greeter"))
}
