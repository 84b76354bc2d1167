//! Stacks of a study of calls: availability and pairing.

use std::collections::{BTreeMap, BTreeSet};

use thalweg_measure::cpus::CpuAssignment;

use crate::load::StackInfo;
use crate::peers::{NO_PEERS, PeersDirectory};
use crate::process::{ProcessExecutor, Program};
use crate::stack::{OURS, Pair, Pairing, SOCKET, Stack};
use crate::study::LeftOut;

/// Error that prevents stacks from being measured.
#[derive(Debug, thiserror::Error)]
pub enum StacksError {
    /// The requested stacks or pairing make no sense.
    #[error("{0}")]
    Misuse(String),
    /// Stacks are not available.
    #[error("{0}")]
    Failed(String),
}

/// The stacks of a study of calls.
#[derive(Clone, Debug)]
pub struct Stacks {
    /// Named stacks, ours first. The partner is included only if named.
    named: Vec<Stack>,
    pairing: Pairing,
    /// Whether other stacks were named, so that ours is compared.
    compares: bool,
    /// Whether the bare socket takes part.
    with_socket: bool,
    /// Names of stacks without a server, whose clients call other stacks' servers.
    serverless: Vec<String>,
    left_out: Vec<LeftOut>,
    /// Called with a line when a stack is left out or built.
    say: fn(&str),
}

/// Reason for leaving a stack out, entirely or as a server.
const NO_SERVER: &str =
    "it has no server; use its client with another stack's server by --server STACK, --matrix or --ends";

impl Stacks {
    /// Creates our stack and `against`, which may include the [`SOCKET`]. Calls `say` with a line when a stack is
    /// built or left out.
    pub fn new(against: &[Stack], pairing: Pairing, say: fn(&str)) -> Self {
        let mut named = vec![Stack::ours()];
        for stack in against.iter().filter(|stack| stack.name() != SOCKET) {
            if !named.contains(stack) {
                named.push(stack.clone());
            }
        }
        let with_socket = against.iter().any(|stack| stack.name() == SOCKET);
        let compares = !against.is_empty();
        Self { named, pairing, compares, with_socket, serverless: Vec::new(), left_out: Vec::new(), say }
    }

    /// Returns whether other stacks were named, so that ours is compared.
    pub fn compares(&self) -> bool {
        self.compares
    }

    /// Returns whether the bare socket takes part.
    pub fn with_socket(&self) -> bool {
        self.with_socket
    }

    /// Returns the stacks if each client is paired with its own server.
    pub fn stacks_with_own_servers(&self) -> Option<&[Stack]> {
        (self.pairing == Pairing::Own).then_some(self.named.as_slice())
    }

    /// Returns the pairs of clients and servers.
    pub fn pairs(&self) -> Vec<Pair> {
        let mut pairs = self.pairing.pairs(&self.named);
        pairs.retain(|pair| !self.is_serverless(&pair.server));
        pairs
    }

    fn is_serverless(&self, stack: &Stack) -> bool {
        self.serverless.iter().any(|name| name == stack.name())
    }

    /// Returns stacks that should serve but have no server.
    fn missing_servers(&self) -> Vec<Stack> {
        let servers = self.pairing.pairs(&self.named).into_iter().map(|pair| pair.server);
        let missing: BTreeSet<Stack> = servers.filter(|server| self.is_serverless(server)).collect();
        missing.into_iter().collect()
    }

    /// Returns every stack that takes part.
    fn participants(&self) -> Vec<Stack> {
        let partner = self.pairing.partner().filter(|partner| !self.named.contains(partner));
        self.named.iter().chain(partner).cloned().collect()
    }

    /// Returns the names of peers without duplicates.
    fn peer_names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for stack in self.participants().iter().filter(|stack| !stack.is_ours()) {
            if !names.iter().any(|name| name == stack.name()) {
                names.push(stack.name().to_owned());
            }
        }
        names
    }

    /// Returns the programs of all stacks, `ours` included. Missing ones are built if possible; unavailable ones are
    /// left out.
    pub fn programs(
        &mut self,
        peers: Option<&PeersDirectory>,
        ours: Program,
    ) -> Result<BTreeMap<String, Program>, StacksError> {
        let names = self.peer_names();
        check_names(&names, peers)?;
        let mut programs = BTreeMap::from([(OURS.to_owned(), ours)]);
        if let Some(peers) = peers {
            peers.build_missing(&names, self.say).map_err(StacksError::Failed)?;
            for name in &names {
                match peers.program(name) {
                    Ok(program) => {
                        programs.insert(name.clone(), program);
                    }
                    Err(reason) => self.leave_out(&reason, |stack| stack.name() == name),
                }
            }
        }
        self.serverless =
            programs.iter().filter(|(_, program)| !program.serves).map(|(name, _)| name.clone()).collect();
        self.leave_out_servers();
        self.check_variants(&programs)?;
        Ok(programs)
    }

    /// Leaves out stacks without a server, entirely if their client has no other server to call.
    fn leave_out_servers(&mut self) {
        for missing in self.missing_servers() {
            if self.pairs().iter().any(|pair| pair.client == missing) {
                (self.say)(&format!("{missing} is left out as a server: {NO_SERVER}"));
            } else {
                self.leave_out(NO_SERVER, |stack| *stack == missing);
            }
        }
    }

    fn check_variants(&self, programs: &BTreeMap<String, Program>) -> Result<(), StacksError> {
        let pairs = self.pairs();
        for stack in self.participants() {
            let serves = pairs.iter().any(|pair| pair.server == stack);
            let drives = pairs.iter().any(|pair| pair.client == stack);
            if let Some(program) = programs.get(stack.name()) {
                let checked = program.check_variant(&stack, serves, drives);
                checked.map_err(|error| StacksError::Misuse(error.to_string()))?;
            }
        }
        Ok(())
    }

    /// Starts all servers. Those that fail to start are left out, except ours, which must start.
    pub fn serve(&mut self, executor: &mut ProcessExecutor) -> Result<(), StacksError> {
        let mut servers: Vec<Stack> = self.pairs().into_iter().map(|pair| pair.server).collect();
        servers.sort_unstable();
        servers.dedup();
        for server in servers {
            match executor.serve(&server) {
                Ok(()) => {}
                Err(error) if server.is_ours() => return Err(StacksError::Failed(error.to_string())),
                Err(error) => self.leave_out(&error.to_string(), |stack| *stack == server),
            }
        }
        self.check_rest()
    }

    /// Checks that the remaining stacks can be compared.
    fn check_rest(&self) -> Result<(), StacksError> {
        let reasons = || {
            let reasons =
                self.left_out.iter().map(|left_out| format!("{}: {}", left_out.what, left_out.reason));
            reasons.collect::<Vec<_>>().join("; ")
        };
        let is_left_out =
            |stack: &Stack| self.left_out.iter().any(|left_out| left_out.what == stack.to_string());
        match self.pairing.partner() {
            Some(partner) if is_left_out(partner) => {
                Err(StacksError::Failed(format!("{partner} is not available: {}", reasons())))
            }
            _ if self.participants().iter().all(Stack::is_ours) && !self.left_out.is_empty() => {
                Err(StacksError::Failed(format!("no stack to compare with is available: {}", reasons())))
            }
            _ => Ok(()),
        }
    }

    fn leave_out(&mut self, reason: &str, is_left_out: impl Fn(&Stack) -> bool) {
        for stack in self.participants().into_iter().filter(&is_left_out) {
            (self.say)(&format!("{stack} is left out: {reason}"));
            self.left_out.push(LeftOut::new(stack, reason));
        }
        self.named.retain(|stack| !is_left_out(stack));
    }

    /// Returns the stacks and those left out, for the results.
    pub fn into_info(
        self,
        programs: &BTreeMap<String, Program>,
        cpus: &CpuAssignment,
    ) -> Result<(Vec<StackInfo>, Vec<LeftOut>), StacksError> {
        let info = |stack: Stack| Some(programs.get(stack.name())?.info(stack, cpus));
        let servers = self.missing_servers().into_iter();
        let servers = servers.map(|what| LeftOut::new(what, NO_SERVER));
        let left_out = self.left_out.iter().cloned().chain(servers).collect();
        let infos: Result<_, _> = self.participants().into_iter().filter_map(info).collect();
        Ok((infos.map_err(StacksError::Failed)?, left_out))
    }
}

fn check_names(names: &[String], peers: Option<&PeersDirectory>) -> Result<(), StacksError> {
    let known = peers.map(PeersDirectory::names).unwrap_or_default();
    let Some(unknown) = names.iter().find(|name| !known.contains(*name)) else { return Ok(()) };
    let Some(peers) = peers else {
        return Err(StacksError::Misuse(format!("unknown stack `{unknown}`: {NO_PEERS}")));
    };
    let all: Vec<&str> = [OURS, SOCKET].into_iter().chain(known.iter().map(String::as_str)).collect();
    Err(StacksError::Misuse(format!(
        "unknown stack `{unknown}` in {}; use one of {}",
        peers.path().display(),
        all.join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the pairs of ours, gRPC C++ and Qt, which has no server, and whether the omission is reported.
    fn check(pairing: Pairing, expected: &[&str], is_reported: bool) {
        let named = ["thalweg", "grpc-cpp", "qt"].map(|name| name.parse().unwrap()).to_vec();
        let serverless = vec!["qt".to_owned()];
        let mut stacks = Stacks { named, serverless, ..Stacks::new(&[], pairing, |_| ()) };
        stacks.leave_out_servers();
        let pairs: Vec<String> = stacks.pairs().iter().map(Pair::to_string).collect();
        assert_eq!(pairs, expected);
        let left_out = stacks.into_info(&BTreeMap::new(), &CpuAssignment::default()).unwrap().1;
        let left_out: Vec<_> = left_out.into_iter().map(|it| (it.what, it.reason)).collect();
        assert_eq!(
            left_out,
            if is_reported { vec![("qt".to_owned(), NO_SERVER.to_owned())] } else { vec![] }
        );
    }

    #[test]
    fn client_without_server_is_paired_with_other_servers() {
        let cpp: Stack = "grpc-cpp".parse().unwrap();
        check(Pairing::Own, &["thalweg", "grpc-cpp"], true);
        check(Pairing::Server(cpp), &["thalweg → grpc-cpp", "grpc-cpp", "qt → grpc-cpp"], false);
        check(Pairing::Client("qt".parse().unwrap()), &["qt → thalweg", "qt → grpc-cpp"], true);
        check(
            Pairing::Ends,
            &["thalweg", "grpc-cpp", "thalweg → grpc-cpp", "grpc-cpp → thalweg", "qt → thalweg"],
            true,
        );
        let ours = ["thalweg", "thalweg → grpc-cpp", "grpc-cpp → thalweg", "grpc-cpp"];
        check(Pairing::Matrix, &[&ours[..], &["qt → thalweg", "qt → grpc-cpp"]].concat(), true);
    }

    #[test]
    fn partner_without_server_is_an_error() {
        let pairing = Pairing::Server("qt".parse().unwrap());
        let serverless = vec!["qt".to_owned()];
        let mut stacks = Stacks { serverless, ..Stacks::new(&[], pairing, |_| ()) };
        stacks.leave_out_servers();
        assert!(stacks.pairs().is_empty());
        assert!(stacks.check_rest().is_err());
    }
}
