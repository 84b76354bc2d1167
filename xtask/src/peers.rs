//! Other stacks behind the contract of `peers/README.md`: which there are, and the command that builds them.

mod build;
mod built;
mod json;
mod peer;

use std::process::ExitCode;

use crate::arguments::{Arguments, Misuse};
use crate::ended::Ended;
use crate::job::{Failure, Log};

pub(crate) use built::{BuiltPeer, measure};
pub(crate) use json::try_out as try_out_json;
pub(crate) use peer::Peer;
use peer::{Contract, Recipe};

/// This workspace, which benchmarks take as one of the stacks.
const OURS: Peer =
    Peer { name: built::OURS, about: "this workspace", recipe: Recipe::Workspace, contract: Contract::Calls };

const GRPC_CPP: Peer = Peer {
    name: "grpc-cpp",
    about: "gRPC C++ as Debian ships it",
    recipe: Recipe::Make {
        packages: "g++ make pkg-config libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc",
        programs: &["g++", "make", "pkg-config", "protoc", "grpc_cpp_plugin"],
    },
    contract: Contract::Calls,
};

/// A folder of `peers/` each, but for the codecs, which are a crate of the workspace.
pub(crate) const PEERS: &[Peer] = &[
    Peer {
        name: "tonic",
        about: "tonic on its own transport",
        recipe: Recipe::Cargo,
        contract: Contract::Calls,
    },
    Peer {
        name: "thalweg-tonic",
        about: "the peer `tonic`, on this workspace's transport",
        recipe: Recipe::Cargo,
        contract: Contract::Calls,
    },
    GRPC_CPP,
    Peer { name: "grpc-go", about: "grpc-go", recipe: Recipe::Go, contract: Contract::Calls },
    Peer {
        name: "qt",
        about: "Qt GRPC as Debian 13 ships it, a client alone",
        recipe: Recipe::Debian13 {
            packages: "qt6-grpc-dev qt6-grpc-tools qt6-base-dev g++ cmake ninja-build protobuf-compiler",
        },
        contract: Contract::Drives { server: &GRPC_CPP },
    },
    Peer {
        name: "axum",
        about: "JSON on axum and serde_json, beside tonic",
        recipe: Recipe::Cargo,
        contract: Contract::Json,
    },
    Peer {
        name: "grpc-gateway",
        about: "JSON by grpc-gateway before grpc-go",
        recipe: Recipe::GeneratedGo,
        contract: Contract::Json,
    },
    Peer {
        name: "connect-go",
        about: "JSON and gRPC by connect-go",
        recipe: Recipe::GeneratedGo,
        contract: Contract::Json,
    },
    Peer {
        name: "spring",
        about: "JSON by Spring MVC beside Spring gRPC",
        recipe: Recipe::Maven,
        contract: Contract::Json,
    },
    Peer {
        name: "lognet",
        about: "JSON by Spring MVC beside LogNet's starter for gRPC",
        recipe: Recipe::Maven,
        contract: Contract::Json,
    },
    Peer {
        name: "armeria",
        about: "JSON and gRPC by Armeria",
        recipe: Recipe::Maven,
        contract: Contract::Json,
    },
    Peer {
        name: "codec",
        about: "the codecs of the codec study, from crates/codec",
        recipe: Recipe::Member { package: "thalweg-codec" },
        contract: Contract::Converts,
    },
    Peer {
        name: "jvm-codec",
        about: "protobuf-java and Jackson, for the codec study",
        recipe: Recipe::Maven,
        contract: Contract::Converts,
    },
];

/// The stacks that a benchmark's list of names means: ours and all peers for none.
pub(crate) fn named(names: &[&str]) -> Result<Vec<Peer>, Misuse> {
    let stacks: Vec<Peer> = std::iter::once(OURS).chain(stacks()).collect();
    select(&stacks, names)
}

/// The peers that serve and make calls.
pub(crate) fn stacks() -> impl Iterator<Item = Peer> {
    PEERS.iter().copied().filter(|peer| peer.contract == Contract::Calls)
}

/// The peers that make calls, and serve none.
pub(crate) fn clients() -> impl Iterator<Item = Peer> {
    PEERS.iter().copied().filter(|peer| matches!(peer.contract, Contract::Drives { .. }))
}

/// The peers that serve JSON beside gRPC, and make no calls.
pub(crate) fn json_servers() -> impl Iterator<Item = Peer> {
    PEERS.iter().copied().filter(|peer| peer.contract == Contract::Json)
}

/// The peers that convert messages.
pub(crate) fn converters() -> impl Iterator<Item = Peer> {
    PEERS.iter().copied().filter(|peer| peer.contract == Contract::Converts)
}

/// Those of `peers` that `names` means, in the order of the names; all of them for none.
fn select(peers: &[Peer], names: &[&str]) -> Result<Vec<Peer>, Misuse> {
    if names.is_empty() {
        return Ok(peers.to_vec());
    }
    let find = |name: &&str| {
        let peer = peers.iter().find(|peer| peer.name == *name).copied();
        peer.ok_or_else(|| {
            let known: Vec<&str> = peers.iter().map(|peer| peer.name).collect();
            Misuse(format!("there is no peer `{name}`; the peers are {}", known.join(", ")))
        })
    };
    names.iter().map(find).collect()
}

/// `cargo xtask peers [--list] [NAME]…`: builds them, and lets each one's client call its own server. One that cannot
/// be built does not keep the others from it.
pub(crate) fn run(mut arguments: Arguments) -> Result<ExitCode, Ended> {
    let only_list = arguments.flag("--list");
    let names = arguments.rest();
    let peers = select(PEERS, &names.iter().map(String::as_str).collect::<Vec<_>>())?;
    if only_list {
        for peer in peers {
            println!("{:<13} {}", peer.name, peer.about);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let log = Log::create("peers")?;
    let mut rows = Vec::new();
    for peer in peers {
        eprintln!("building {} …", peer.name);
        rows.push((peer.name, peer.build(&log)));
    }
    for (name, outcome) in &rows {
        println!("{}", row(name, outcome));
    }
    let all = rows.iter().all(|(_, outcome)| outcome.is_ok());
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// `tonic         built: tonic 0.14.9`
fn row(name: &str, outcome: &Result<BuiltPeer, Failure>) -> String {
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
            .map_err(|Misuse(message)| message);
        assert_eq!(names, expected.map(<[&str]>::to_vec).map_err(str::to_owned));
    }

    #[test]
    fn names_select_peers_in_their_order() {
        let all = PEERS.iter().map(|peer| peer.name).collect::<Vec<_>>();
        check(&[], Ok(&all));
        check(&["grpc-go", "tonic"], Ok(&["grpc-go", "tonic"]));
        let known = format!("the peers are {}", all.join(", "));
        check(&["dart"], Err(&format!("there is no peer `dart`; {known}")));
        check(&["thalweg"], Err(&format!("there is no peer `thalweg`; {known}")));
    }

    #[test]
    fn benchmarks_may_name_ours_too() {
        let names = |names: &[&str]| {
            let Ok(peers) = named(names) else { panic!("{names:?} are not known") };
            peers.iter().map(|peer| peer.name).collect::<Vec<_>>()
        };
        assert_eq!(names(&["grpc-go", "thalweg"]), ["grpc-go", "thalweg"]);
        assert_eq!(names(&[]), ["thalweg", "tonic", "thalweg-tonic", "grpc-cpp", "grpc-go"]);
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
    fn rows_say_what_was_built_and_why_not() {
        let built = BuiltPeer { name: "tonic", version: "tonic 0.14.9".to_owned(), program: "peer".into() };
        assert_eq!(row("tonic", &Ok(built)), "tonic         built: tonic 0.14.9");
        let failure = Failure::missing("there is no `go`:\ninstall it");
        let expected = "grpc-go       not built: cannot be had here: there is no `go`: install it";
        assert_eq!(row("grpc-go", &Err(failure)), expected);
    }
}
