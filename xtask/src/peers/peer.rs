//! What a peer is.

/// One stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    pub(super) about: &'static str,
    pub(super) recipe: Recipe,
    pub(crate) contract: Contract,
}

/// Which half of `peers/README.md` a peer keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contract {
    /// A gRPC stack: `serve` and `load`.
    Calls,
    /// A gRPC stack without a server: `load` alone. It is tried at this peer's.
    Drives { server: &'static Peer },
    /// JSON beside gRPC: `serve` alone.
    Json,
    /// Codecs, ours and others': `bench` or `convert`.
    Converts,
}

/// What builds a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recipe {
    /// The command `thalweg`, which is no peer and stays where cargo puts it.
    Workspace,
    /// A package of the workspace whose binary bears its name.
    Member { package: &'static str },
    /// A package with a lock file and a binary `peer`.
    Cargo,
    /// A module whose root is the program.
    Go,
    /// A module and a Makefile that generates what else it needs by protoc, and leaves `$(BUILD)/peer`.
    GeneratedGo,
    /// A Makefile that leaves `$(BUILD)/peer`. Debian's `packages` are installed unless each of `programs` is there.
    Make { packages: &'static str, programs: &'static [&'static str] },
    /// A CMakeLists.txt that leaves `peer` in its build folder, and a script `peer.sh` that starts it from there. It is
    /// built in a Debian 13 with these packages, as this machine's Debian has none like them.
    Debian13 { packages: &'static str },
    /// A `pom.xml` that leaves a jar of the peer's name and `lib/` in `out`, and a script `peer.sh` that starts them.
    Maven,
}
