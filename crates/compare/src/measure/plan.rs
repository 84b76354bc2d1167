//! What is measured, and how.

use std::path::PathBuf;
use std::time::Duration;

use thalweg_measure::cpus::CpuList;

use super::target::Target;
use crate::comparison::{Revision, Which};

/// Two servers, and the load on them.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The servers, A first.
    pub servers: Servers,
    /// Names in reports: of both servers, or empty for the default.
    pub names: Vec<String>,
    /// Addresses of A and of B [default: 127.0.0.1:{port}].
    pub targets: [Option<String>; 2],
    /// `thalweg`, whose `load` drives them.
    pub program: PathBuf,
    /// Arguments of `load` besides the target, the times and the format.
    pub load: Vec<String>,
    /// Windows of each side.
    pub rounds: u32,
    /// Measured time of a window.
    pub window: Duration,
    /// Warm-up of a window.
    pub warm_up: Duration,
    /// Time limit for a server to listen.
    pub start_within: Duration,
    /// CPUs of the servers.
    pub server_cpus: Option<CpuList>,
    /// CPUs of the client.
    pub client_cpus: Option<CpuList>,
}

/// How servers come about. A `{port}` in a command becomes a free port.
#[derive(Clone, Debug)]
pub enum Servers {
    /// By a command for each.
    Commands([String; 2]),
    /// By one command, in a work tree of each revision.
    Revisions {
        /// The revisions of this folder's git repository.
        revisions: [String; 2],
        /// Builds a revision.
        build: Option<String>,
        /// Starts a revision's server.
        command: String,
    },
}

/// A server.
#[derive(Clone, Debug)]
pub struct SidePlan {
    /// Name in reports.
    pub name: String,
    /// What starts it, for `sh`.
    pub command: String,
    /// Where the command runs; `None`: here.
    pub directory: Option<PathBuf>,
    /// Where it listens.
    pub target: Target,
    /// The revision that was checked out and built for it, if any.
    pub revision: Option<Revision>,
}

/// Both servers, ready to be started.
#[derive(Debug)]
pub(super) struct Sides {
    pub(super) a: SidePlan,
    pub(super) b: SidePlan,
}

impl Sides {
    pub(super) fn side(&self, which: Which) -> &SidePlan {
        match which {
            Which::A => &self.a,
            Which::B => &self.b,
        }
    }
}
