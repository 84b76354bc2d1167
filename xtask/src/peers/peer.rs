//! Description of a peer.

/// One stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    pub(super) about: &'static str,
    pub(super) recipe: Recipe,
    pub(crate) contract: Contract,
}

/// The part of `peers/README.md` that a peer implements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contract {
    /// A gRPC stack: `serve` and `load`.
    Calls,
    /// A gRPC stack without a server: only `load`. It is tried against `server`.
    Drives { server: &'static Peer },
    /// JSON in addition to gRPC: only `serve`.
    Json,
    /// Codecs, ours and others: `bench` or `convert`.
    Converts,
}

/// How to build a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recipe {
    /// The command `thalweg`, which is not a peer and stays in cargo's target folder.
    Workspace,
    /// A package of the workspace with a binary of the same name.
    Member { package: &'static str },
    /// A package with a lock file and a binary `peer`.
    Cargo,
    /// A module whose root package is the program.
    Go,
    /// A module with a Makefile that generates code with protoc and builds `$(BUILD)/peer`.
    GeneratedGo,
    /// A Makefile that builds `$(BUILD)/peer`. Debian's `packages` are installed if any of `programs` is missing.
    Make { packages: &'static str, programs: &'static [&'static str] },
    /// A CMakeLists.txt that builds `peer` in its build folder, and a script `peer.sh` that starts it there. It is
    /// built in a Debian 13 with these packages, which this machine's Debian lacks.
    Debian13 { packages: &'static str },
    /// A `pom.xml` that builds a jar with the peer's name and `lib/` in `out`, and a script `peer.sh` that starts them.
    Maven,
}
