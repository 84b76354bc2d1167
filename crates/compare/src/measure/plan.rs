//! What is measured, and how.

use std::path::PathBuf;
use std::time::Duration;

use thalweg_measure::cpus::CpuList;

use super::target::Target;
use crate::comparison::{Revision, Which};

/// Two servers, and the load on them.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The base.
    pub a: SidePlan,
    /// What is compared with it.
    pub b: SidePlan,
    /// `thalweg`, whose `load` drives them.
    pub program: PathBuf,
    /// What `load` is told besides the target, the times and the format.
    pub load: Vec<String>,
    /// Windows of each side.
    pub rounds: u32,
    /// How long each measures.
    pub window: Duration,
    /// Driven first in each, and not counted.
    pub warm_up: Duration,
    /// How long a server may take until it listens.
    pub start_within: Duration,
    /// Processors that servers are kept on.
    pub server_cpus: Option<CpuList>,
    /// Processors that the client is kept on.
    pub client_cpus: Option<CpuList>,
}

/// A server.
#[derive(Clone, Debug)]
pub struct SidePlan {
    /// What it is called in reports.
    pub name: String,
    /// What starts it, for `sh`.
    pub command: String,
    /// Where the command runs; `None`: here.
    pub directory: Option<PathBuf>,
    /// Where it listens.
    pub target: Target,
    /// What it was built from, where that was checked out for it.
    pub revision: Option<Revision>,
}

impl Plan {
    pub(super) fn side(&self, which: Which) -> &SidePlan {
        match which {
            Which::A => &self.a,
            Which::B => &self.b,
        }
    }
}
