//! Other stacks that implement the contract of `peers/README.md`: the list, and the command that builds them.

mod build;
mod built;
mod json;
mod peer;

use std::process::ExitCode;

use crate::arguments::{Arguments, are_known};
use crate::failure::Result;
use crate::log;

pub(crate) use built::{BuiltPeer, LoadResult, measure};
pub(crate) use json::smoke_test as check_json_peer;
use peer::Recipe;
pub(crate) use peer::{Contract, Peer};

use Contract::{Calls, Converts, Json};
use Recipe::{Cargo, GeneratedGo, Go, Maven};

/// This workspace, one of the stacks in benchmarks.
const OURS: Peer = peer(built::OURS, "this workspace", Recipe::Workspace, Calls);

const GRPC_CPP: Peer = peer(
    "grpc-cpp",
    "gRPC C++ as Debian ships it",
    Recipe::Make {
        packages: "g++ make pkg-config libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc",
        programs: &["g++", "make", "pkg-config", "protoc", "grpc_cpp_plugin"],
    },
    Calls,
);

const QT: Recipe = Recipe::Debian13 {
    packages: "qt6-grpc-dev qt6-grpc-tools qt6-base-dev g++ cmake ninja-build protobuf-compiler",
};
const CODEC: Recipe = Recipe::Member { package: "thalweg-codec" };

/// Each is a folder of `peers/`, except the codecs, which are a crate of the workspace.
pub(crate) const PEERS: &[Peer] = &[
    peer("tonic", "tonic on its own transport", Cargo, Calls),
    peer("thalweg-tonic", "the peer `tonic`, on this workspace's transport", Cargo, Calls),
    peer("tonic-patched", "the peer `tonic`, with the whole of tonic replaced", Cargo, Calls),
    GRPC_CPP,
    peer("grpc-go", "grpc-go", Go, Calls),
    peer("qt", "Qt GRPC as Debian 13 ships it, client only", QT, Contract::Drives { server: &GRPC_CPP }),
    peer("axum", "JSON on axum and serde_json, next to tonic", Cargo, Json),
    peer("grpc-gateway", "JSON by grpc-gateway before grpc-go", GeneratedGo, Json),
    peer("connect-go", "JSON and gRPC by connect-go", GeneratedGo, Json),
    peer("spring", "JSON by Spring MVC next to Spring gRPC", Maven, Json),
    peer("lognet", "JSON by Spring MVC next to LogNet's starter for gRPC", Maven, Json),
    peer("armeria", "JSON and gRPC by Armeria", Maven, Json),
    peer("codec", "the codecs of the codec study, from crates/codec", CODEC, Converts),
    peer("jvm-codec", "protobuf-java and Jackson, for the codec study", Maven, Converts),
];

const fn peer(name: &'static str, about: &'static str, recipe: Recipe, contract: Contract) -> Peer {
    Peer { name, about, recipe, contract }
}

/// Selects the stacks of a benchmark by name; ours and all peers if `names` is empty.
pub(crate) fn named(names: &[&str]) -> Result<Vec<Peer>> {
    let stacks = PEERS.iter().filter(|peer| peer.contract == Calls).copied();
    select(&std::iter::once(OURS).chain(stacks).collect::<Vec<_>>(), names)
}

/// Returns the `peers` with these names, in the order of the names; all if there are no names.
fn select(peers: &[Peer], names: &[&str]) -> Result<Vec<Peer>> {
    if names.is_empty() {
        return Ok(peers.to_vec());
    }
    are_known("peer", names, &peers.iter().map(|peer| peer.name).collect::<Vec<_>>())?;
    Ok(names.iter().filter_map(|name| peers.iter().find(|peer| peer.name == *name).copied()).collect())
}

/// `cargo xtask peers [--list] [NAME]…`: builds the peers and has each client call its own server. A failed build does
/// not stop the others.
pub(crate) fn run(mut arguments: Arguments) -> Result<ExitCode> {
    let only_list = arguments.flag("--list");
    let names = arguments.rest();
    let peers = select(PEERS, &names.iter().map(String::as_str).collect::<Vec<_>>())?;
    if only_list {
        for peer in peers {
            println!("{:<13} {}", peer.name, peer.about);
        }
        return Ok(ExitCode::SUCCESS);
    }
    log::start("peers")?;
    let mut rows = Vec::new();
    for peer in peers {
        eprintln!("building {} …", peer.name);
        rows.push((peer.name, peer.build()));
    }
    for (name, outcome) in &rows {
        println!("{}", row(name, outcome));
    }
    let all = rows.iter().all(|(_, outcome)| outcome.is_ok());
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Formats a line like `tonic         built: tonic 0.14.9`.
fn row(name: &str, outcome: &Result<BuiltPeer>) -> String {
    match outcome {
        Ok(built) => format!("{name:<13} built: {}", built.version),
        Err(failure) => format!("{name:<13} not built: {}", build::reason(failure)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::*;
    use crate::workspace;

    fn check(names: &[&str], expected: Result<&[&str], &str>) {
        let selected = select(PEERS, names);
        let names: Result<Vec<&str>, String> = selected
            .map(|peers| peers.iter().map(|peer| peer.name).collect())
            .map_err(|misuse| misuse.to_string());
        assert_eq!(names, expected.map(<[&str]>::to_vec).map_err(str::to_owned));
    }

    #[test]
    fn names_select_peers_in_order() {
        let all = PEERS.iter().map(|peer| peer.name).collect::<Vec<_>>();
        check(&[], Ok(&all));
        check(&["grpc-go", "tonic"], Ok(&["grpc-go", "tonic"]));
        let known = format!("use one of {}", all.join(", "));
        check(&["dart"], Err(&format!("unknown peer `dart`; {known}")));
        check(&["thalweg"], Err(&format!("unknown peer `thalweg`; {known}")));
    }

    #[test]
    fn benchmarks_accept_our_stack() {
        let names = |names: &[&str]| {
            let Ok(peers) = named(names) else { panic!("{names:?} are not known") };
            peers.iter().map(|peer| peer.name).collect::<Vec<_>>()
        };
        assert_eq!(names(&["grpc-go", "thalweg"]), ["grpc-go", "thalweg"]);
        assert_eq!(names(&[]), ["thalweg", "tonic", "thalweg-tonic", "tonic-patched", "grpc-cpp", "grpc-go"]);
    }

    #[test]
    fn every_folder_of_peers_is_listed() {
        let entries = fs::read_dir(workspace::root().join("peers")).unwrap().map(Result::unwrap);
        let folders: BTreeSet<String> = entries
            .filter(|entry| entry.path().is_dir())
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        let has_folder = |peer: &&Peer| !matches!(peer.recipe, Recipe::Member { .. });
        assert_eq!(folders, PEERS.iter().filter(has_folder).map(|peer| peer.name.to_owned()).collect());
    }

    #[test]
    fn rows_show_versions_and_failures() {
        let built = BuiltPeer { name: "tonic", version: "tonic 0.14.9".to_owned(), program: "peer".into() };
        assert_eq!(row("tonic", &Ok(built)), "tonic         built: tonic 0.14.9");
        let failure = missing!("there is no `go`:\ninstall it");
        let expected = "grpc-go       not built: not available here: there is no `go`: install it";
        assert_eq!(row("grpc-go", &Err(failure)), expected);
    }
}
