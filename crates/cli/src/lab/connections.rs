//! `thalweg lab connections`.

use std::collections::BTreeMap;

use clap::Args;
use thalweg_lab::connections::{self, ConnectionsOptions, Many, Reach, Share};
use thalweg_lab::load::Window;
use thalweg_lab::process::{FreshExecutor, Program};
use thalweg_lab::stack::Stack;
use thalweg_lab::stacks::Stacks;
use thalweg_lab::study::{Plan, StudyKind};
use thalweg_measure::cpus::CpuAssignment;
use thalweg_measure::interrupt::Interrupt;
use thalweg_measure::size::ByteSize;

use super::calls::{CallsExecutor, CallsStudy, CommonArgs, ExternalTarget, MethodArgs, SidesArgs};
use super::common::rounds;
use crate::failure::Failure;

/// The cost of up to 10,000 connections (22 minutes; --quick: 4)
#[derive(Debug, Args)]
pub(super) struct ConnectionsArgs {
    #[command(flatten)]
    common: CommonArgs,

    /// Connection counts, such as 1,1000,max [default: 1,10,100,1000,10000]
    ///
    /// max is the most that file descriptors and ports allow.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', conflicts_with = "from")]
    connections: Option<Vec<Many>>,

    /// Concurrent calls per active connection [default: 1,4,16; --quick: 1,4]
    #[arg(
        short = 'c',
        long = "in-flight",
        value_name = "NUMBERS",
        value_delimiter = ',',
        conflicts_with = "from"
    )]
    in_flight: Option<Vec<u32>>,

    /// Shares of active connections [default: 1%,10%,100%; --quick: 10%,100%]
    #[arg(long, value_name = "SHARES", value_delimiter = ',', conflicts_with = "from")]
    active: Option<Vec<Share>>,

    /// Payload bytes of a message, up to 8 KiB
    #[arg(long, value_name = "SIZE", default_value = "0")]
    size: ByteSize,

    /// Windows per server and point [default: 6; --quick: 4]
    #[arg(long, value_name = "N", value_parser = rounds(), conflicts_with = "from")]
    rounds: Option<u32>,

    #[command(flatten)]
    sides: SidesArgs,

    /// Measure this server instead of starting one
    #[arg(
        long,
        value_name = "HOST:PORT",
        conflicts_with_all = ["from", "size", "server_cpus", "server_threads"],
        value_parser = thalweg_measure::target::parse
    )]
    target: Option<String>,

    #[command(flatten)]
    method: MethodArgs,
}

/// Maximum payload for which a message fits one frame of the bare client.
const SIZE_MAX: u64 = 8 << 10;

impl CallsStudy for ConnectionsArgs {
    const KIND: StudyKind = StudyKind::Connections;

    fn common(&self) -> &CommonArgs {
        &self.common
    }

    fn cpus(&self) -> Result<CpuAssignment, Failure> {
        self.sides.cpus(self.target.is_some())
    }

    fn plan(&self, stacks: &Stacks, programs: &BTreeMap<String, Program>) -> Result<Plan<Window>, Failure> {
        let Some(named) = stacks.stacks_with_own_servers() else {
            return Err(Failure::bad_arguments(
                "this study uses one client for all servers; leave out --client, --server, --matrix and --ends",
            ));
        };
        let mut options = if self.common.study.quick {
            ConnectionsOptions::quick(named.to_vec())
        } else {
            ConnectionsOptions::whole(named.to_vec())
        };
        options.tls = serving_tls(named, programs);
        self.planned(options)
    }

    fn external_target(&self) -> Result<Option<ExternalTarget>, Failure> {
        let Some(target) = self.target.clone() else { return Ok(None) };
        let plan = self.planned(ConnectionsOptions::aimed(self.common.study.quick))?;
        Ok(Some(ExternalTarget { target, method: self.method.call(), plan }))
    }

    fn cut(&self) -> Result<Option<String>, Failure> {
        Ok(self.reached()?.1)
    }

    fn executor(
        &self,
        programs: &BTreeMap<String, Program>,
        cpus: &CpuAssignment,
        interrupt: &Interrupt,
    ) -> Option<CallsExecutor> {
        Some(Box::new(FreshExecutor::new(programs.clone(), cpus.clone(), interrupt.clone())))
    }
}

impl ConnectionsArgs {
    /// Returns the connection counts that this machine allows and a note about the others. Raises limits.
    fn reached(&self) -> Result<(Vec<u32>, Option<String>), Failure> {
        let reach = Reach::raised().map_err(|error| {
            Failure::failed(format!("failed to read the limit of file descriptors: {error}"))
        })?;
        let asked = self.connections.as_deref().unwrap_or(&ConnectionsOptions::CONNECTIONS);
        Ok(reach.allowed(asked))
    }

    fn planned(&self, mut options: ConnectionsOptions) -> Result<Plan<Window>, Failure> {
        if self.size.0 > SIZE_MAX {
            return Err(Failure::bad_arguments("--size exceeds 8 KiB, the limit of this study"));
        }
        options.connections = self.reached()?.0;
        options.size = self.size;
        if let Some(in_flight) = &self.in_flight {
            options.in_flight.clone_from(in_flight);
        }
        if let Some(active) = &self.active {
            options.active.clone_from(active);
        }
        self.common.limit(self.rounds, &mut options.rounds, &mut options.budget);
        connections::plan(&options).map_err(Failure::bad_arguments)
    }
}

/// Returns the stacks whose servers start with a certificate. Empty without `programs`.
fn serving_tls(stacks: &[Stack], programs: &BTreeMap<String, Program>) -> Vec<Stack> {
    let mut executor = FreshExecutor::new(programs.clone(), CpuAssignment::default(), Interrupt::default());
    stacks.iter().filter(|stack| executor.serves_tls(stack)).cloned().collect()
}
