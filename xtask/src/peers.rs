//! Other stacks behind one small contract: `serve --listen ADDR` serves gRPC's BenchmarkService, and `load TARGET` with
//! the flags of `thalweg load` drives it and prints the keys of the schema `thalweg.load/1`.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::Value;

use crate::Ended;
use crate::arguments::{Arguments, Misuse};
use crate::job::{Failure, Job, Log};
use crate::server::{Server, free_port};
use crate::test::rust;
use crate::{tools, workspace};

/// One stack.
#[derive(Clone, Copy)]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    about: &'static str,
    build: fn(&Log) -> Result<PathBuf, Failure>,
}

/// Ours first.
pub(crate) const PEERS: &[Peer] = &[
    Peer { name: "thalweg", about: "this workspace", build: rust::thalweg },
    Peer { name: "tonic", about: "tonic 0.14.9 on its own transport", build: tonic },
    Peer { name: "grpc-cpp", about: "gRPC C++ as Debian ships it", build: grpc_cpp },
    Peer { name: "grpc-go", about: "grpc-go 1.85.0", build: grpc_go },
];

/// A stack whose program is built.
#[derive(Clone)]
pub(crate) struct BuiltPeer {
    pub(crate) name: &'static str,
    program: PathBuf,
}

impl Peer {
    pub(crate) fn build(self, log: &Log) -> Result<BuiltPeer, Failure> {
        Ok(BuiltPeer { name: self.name, program: (self.build)(log)? })
    }
}

impl BuiltPeer {
    /// The server on a port of the loopback address.
    pub(crate) fn serve(&self, port: u16) -> Job {
        Job::new(&self.program).words(&format!("serve --listen 127.0.0.1:{port}"))
    }

    /// The load generator against that port; `words` are its flags.
    pub(crate) fn load(&self, port: u16, words: &str) -> Job {
        Job::new(&self.program).words(&format!("load 127.0.0.1:{port} {words}"))
    }
}

/// What one run of a load generator found.
pub(crate) struct LoadResult {
    pub(crate) rate_per_s: f64,
    pub(crate) p50_ns: f64,
    pub(crate) calls: u64,
}

/// Runs `job`, a load generator, and reads its JSON. A call that failed spoils the run.
pub(crate) fn measure(job: Job, log: &Log) -> Result<LoadResult, Failure> {
    let job = job.words("-O json");
    let text = job.text(log)?;
    let value: Value = serde_json::from_str(&text)
        .map_err(|error| Failure::failed(format!("`{job}` printed no JSON: {error}")))?;
    let errors = value["errors"].as_object().is_none_or(|errors| !errors.is_empty());
    if errors {
        return Err(Failure::failed(format!("`{job}`: errors {}", value["errors"])));
    }
    let (rate, p50) = (value["rate_per_s"].as_f64(), value["latency_ns"]["p50"].as_f64());
    match (rate, p50, value["calls"].as_u64()) {
        (Some(rate_per_s), Some(p50_ns), Some(calls)) => Ok(LoadResult { rate_per_s, p50_ns, calls }),
        _ => Err(Failure::failed(format!("`{job}` left keys of thalweg.load/1 out"))),
    }
}

/// The peers that a list of names means; all of them for none.
pub(crate) fn named(names: &[&str]) -> Result<Vec<Peer>, Misuse> {
    if names.is_empty() {
        return Ok(PEERS.to_vec());
    }
    let find = |name: &&str| {
        let known = || PEERS.iter().map(|peer| peer.name).collect::<Vec<_>>().join(", ");
        let peer = PEERS.iter().find(|peer| peer.name == *name).copied();
        peer.ok_or_else(|| Misuse(format!("there is no peer `{name}`; the peers are {}", known())))
    };
    names.iter().map(find).collect()
}

/// `cargo xtask peers [NAME]…`: builds them and shows that each one's client and server understand each other.
pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Ended> {
    let names = arguments.rest();
    let peers = named(&names.iter().map(String::as_str).collect::<Vec<_>>())?;
    let log = Log::create("peers")?;
    let mut code = ExitCode::SUCCESS;
    for peer in peers {
        match try_out(peer, &log) {
            Ok((built, calls)) => {
                println!("ok    {:<9} {calls} calls  {}", peer.name, built.program.display());
            }
            Err(failure) => {
                println!("FAIL  {:<9} {}: {failure} (see {})", peer.name, peer.about, log.path().display());
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(code)
}

fn try_out(peer: Peer, log: &Log) -> Result<(BuiltPeer, u64), Failure> {
    let built = peer.build(log)?;
    let port = free_port()?;
    let server = Server::start(&built.serve(port), port, log)?;
    let result = measure(built.load(port, "-n 1000 -c 8 --connections 2 --size 100 --warmup 0s"), log)?;
    server.stop()?;
    Ok((built, result.calls))
}

/// Where peers are built: beside the workspace's own target folders, in one that goes with `cargo clean` too.
fn folder(name: &str) -> PathBuf {
    workspace::target().join("peers").join(name)
}

fn tonic(log: &Log) -> Result<PathBuf, Failure> {
    let build = Job::cargo("build --release --locked --target-dir").arg(folder("tonic"));
    build.directory(workspace::root().join("peers/tonic")).minutes(30).run(log)?;
    Ok(folder("tonic").join("release/peer-tonic"))
}

fn grpc_cpp(log: &Log) -> Result<PathBuf, Failure> {
    let packages =
        "g++ make pkg-config libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc";
    tools::debian(packages, &["g++", "make", "pkg-config", "protoc", "grpc_cpp_plugin"], log)?;
    let mut build_folder = std::ffi::OsString::from("BUILD=");
    build_folder.push(folder("grpc-cpp"));
    let build = Job::new("make").arg(build_folder);
    build.directory(workspace::root().join("peers/grpc-cpp")).minutes(10).run(log)?;
    Ok(folder("grpc-cpp").join("peer"))
}

fn grpc_go(log: &Log) -> Result<PathBuf, Failure> {
    let program = folder("grpc-go").join("peer-grpc-go");
    let build = Job::new("go").words("build -o").arg(&program).arg(".");
    build.directory(workspace::root().join("peers/grpc-go")).minutes(10).run(log)?;
    Ok(program)
}
