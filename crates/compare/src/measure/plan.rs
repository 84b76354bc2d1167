//! Plan of a measurement.

use std::path::PathBuf;
use std::time::Duration;

use thalweg_measure::cpus::CpuList;

use super::target::Target;
use crate::comparison::{Revision, SideId};

/// Two servers and their load.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The servers, A first.
    pub servers: Servers,
    /// Names in reports: of both servers, or empty for the default.
    pub names: Vec<String>,
    /// Addresses of A and of B [default: 127.0.0.1:{port}].
    pub targets: [Option<String>; 2],
    /// The `thalweg` executable, whose `load` is the client.
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

/// Commands that start the servers. A `{port}` in a command becomes a free port.
#[derive(Clone, Debug)]
pub enum Servers {
    /// With one command each.
    Commands([String; 2]),
    /// With the same command, in a work tree of each revision.
    Revisions {
        /// Revisions of the git repository of the current folder.
        revisions: [String; 2],
        /// Command that builds a revision.
        build: Option<String>,
        /// Command that starts a revision's server.
        command: String,
    },
}

/// A server.
#[derive(Clone, Debug)]
pub struct SidePlan {
    /// Name in reports.
    pub name: String,
    /// Command that starts it, run by `sh`.
    pub command: String,
    /// Working directory of the command; `None` is the current one.
    pub directory: Option<PathBuf>,
    /// Address it listens on.
    pub target: Target,
    /// The revision that was checked out and built for it, if any.
    pub revision: Option<Revision>,
}

/// Both servers, ready to start.
#[derive(Debug)]
pub(super) struct SidePlans {
    pub(super) a: SidePlan,
    pub(super) b: SidePlan,
}

impl SidePlans {
    pub(super) fn side(&self, which: SideId) -> &SidePlan {
        match which {
            SideId::A => &self.a,
            SideId::B => &self.b,
        }
    }
}
