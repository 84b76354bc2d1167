//! Selection of stacks.

use clap::Args;
use thalweg_lab::stack::{Pairing, Stack};
use thalweg_lab::stacks::Stacks;

use super::common::PeersArgs;
use crate::terminal;

/// Other stacks to compare with.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("peers", |peers| peers.requires("against")))]
pub(super) struct AgainstArgs {
    /// Stacks to compare with: tonic, grpc-cpp, grpc-go, socket (a bare socket)
    #[arg(long, value_name = "STACKS", value_delimiter = ',', conflicts_with = "from")]
    against: Vec<Stack>,

    /// Measure this stack's client with every server
    #[arg(long, value_name = "STACK", requires = "against", conflicts_with_all = ["server", "matrix"])]
    client: Option<Stack>,

    /// Measure every client with this stack's server
    #[arg(long, value_name = "STACK", requires = "against", conflicts_with = "matrix")]
    server: Option<Stack>,

    /// Measure every client with every server
    #[arg(long, requires = "against")]
    matrix: bool,

    /// Also measure mixed pairs: our client with their server, and the reverse
    #[arg(long, requires = "against", conflicts_with_all = ["client", "server", "matrix"])]
    ends: bool,

    #[command(flatten)]
    pub(super) peers: PeersArgs,
}

impl AgainstArgs {
    /// Returns whether other stacks are selected.
    pub(super) fn compares(&self) -> bool {
        !self.against.is_empty()
    }

    /// Returns our stack and the selected ones.
    pub(super) fn stacks(&self) -> Stacks {
        let pairing = match (&self.client, &self.server) {
            (Some(client), _) => Pairing::Client(client.clone()),
            (None, Some(server)) => Pairing::Server(server.clone()),
            (None, None) if self.ends => Pairing::Ends,
            (None, None) if self.matrix => Pairing::Matrix,
            (None, None) => Pairing::Own,
        };
        Stacks::new(&self.against, pairing, terminal::say)
    }
}
