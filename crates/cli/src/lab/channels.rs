//! `thalweg lab channels`.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use clap::Args;
use thalweg_lab::channels::{self, ChannelsOptions, Contender, Grid, contenders};
use thalweg_lab::load::{Strategy, Window};
use thalweg_lab::process::Program;
use thalweg_lab::stack::Pair;
use thalweg_lab::stacks::Stacks;
use thalweg_lab::study::{Plan, StudyKind};
use thalweg_load::record::CallType;
use thalweg_measure::cpus::CpuAssignment;
use thalweg_measure::size::ByteSize;

use super::calls::{CallsStudy, CommonArgs, ExternalTarget, MethodArgs, SidesArgs};
use super::common::rounds;
use crate::failure::Failure;

/// One or several connections, by concurrency and delay (30 minutes; --quick: 5)
#[derive(Debug, Args)]
pub(super) struct ChannelsArgs {
    #[command(flatten)]
    common: CommonArgs,

    /// Call types: unary, ping-pong [default: both]
    #[arg(long, value_name = "TYPES", value_delimiter = ',', conflicts_with = "from")]
    calls: Option<Vec<CallType>>,

    /// Concurrent calls, such as 1,16,256 [default: 1 to 1024; --quick: to 256]
    #[arg(
        short = 'c',
        long = "in-flight",
        value_name = "NUMBERS",
        value_delimiter = ',',
        conflicts_with = "from"
    )]
    in_flight: Option<Vec<u32>>,

    /// Payload bytes of a message
    #[arg(long, value_name = "SIZE", default_value = "0")]
    size: ByteSize,

    /// Added round-trip times [default: 0s,200us,1ms,5ms; --quick: 0s, and 5ms once]
    #[arg(
        long,
        value_name = "DURATIONS",
        value_delimiter = ',',
        value_parser = humantime::parse_duration,
        conflicts_with = "from"
    )]
    round_trips: Option<Vec<Duration>>,

    /// Numbers of connections [default: adaptive,1,4,per-worker,per-call]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "from")]
    strategies: Option<Vec<Strategy>>,

    /// Windows per strategy and point [default: 6; --quick with others, or --target: 4]
    #[arg(long, value_name = "N", value_parser = rounds(), conflicts_with = "from")]
    rounds: Option<u32>,

    /// Connections of clients that have several
    #[arg(long, value_name = "N", default_value = "4")]
    connections: NonZeroU32,

    /// Threads of each client [default: its CPUs]
    #[arg(long = "threads", alias = "workers", value_name = "N")]
    workers: Option<NonZeroU32>,

    #[command(flatten)]
    sides: SidesArgs,

    /// Measure this server: would more connections carry more calls?
    #[arg(
        long,
        value_name = "HOST:PORT",
        conflicts_with_all = [
            "from", "calls", "round_trips", "strategies", "size", "server_cpus", "server_threads",
        ],
        value_parser = thalweg_measure::target::parse
    )]
    target: Option<String>,

    #[command(flatten)]
    method: MethodArgs,
}

/// Concurrent calls with `--target`.
const EXTERNAL_IN_FLIGHT: [u32; 5] = [1, 4, 16, 64, 256];
/// Concurrent calls with `--target` and `--quick`, in half the time.
const EXTERNAL_IN_FLIGHT_QUICK: [u32; 2] = [4, 64];

impl CallsStudy for ChannelsArgs {
    const KIND: StudyKind = StudyKind::Channels;

    fn common(&self) -> &CommonArgs {
        &self.common
    }

    fn cpus(&self) -> Result<CpuAssignment, Failure> {
        let client_threads = self.workers.map(NonZeroU32::get);
        Ok(CpuAssignment { client_threads, ..self.sides.cpus(self.target.is_some())? })
    }

    fn plan(&self, stacks: &Stacks, programs: &BTreeMap<String, Program>) -> Result<Plan<Window>, Failure> {
        if stacks.with_socket() {
            return Err(Failure::bad_arguments("a bare socket has no channels; leave out `socket`"));
        }
        channels::plan(&self.options(stacks, programs)?).map_err(Failure::bad_arguments)
    }

    fn external_target(&self) -> Result<Option<ExternalTarget>, Failure> {
        let Some(target) = self.target.clone() else { return Ok(None) };
        let mut options = ChannelsOptions::advice(match (&self.in_flight, self.common.study.quick) {
            (Some(in_flight), _) => in_flight.clone(),
            (None, true) => EXTERNAL_IN_FLIGHT_QUICK.to_vec(),
            (None, false) => EXTERNAL_IN_FLIGHT.to_vec(),
        });
        if self.common.study.quick && self.in_flight.is_none() {
            options.budget /= 2;
        }
        self.common.limit(self.rounds, &mut options.rounds, &mut options.budget);
        let plan = channels::plan(&options).map_err(Failure::bad_arguments)?;
        Ok(Some(ExternalTarget { target, method: self.method.call(), plan }))
    }
}

impl ChannelsArgs {
    fn options(
        &self,
        stacks: &Stacks,
        programs: &BTreeMap<String, Program>,
    ) -> Result<ChannelsOptions, Failure> {
        let contenders = self.contenders(stacks, programs);
        let mut options = if self.common.study.quick {
            ChannelsOptions::quick(contenders)
        } else {
            ChannelsOptions::whole(contenders)
        };
        if let Some(calls) = &self.calls {
            options.grids = grids_of(calls, &options.grids)?;
        }
        for grid in &mut options.grids {
            if let Some(in_flight) = &self.in_flight {
                grid.in_flight.clone_from(in_flight);
            }
            if let Some(round_trips) = &self.round_trips {
                grid.round_trips.clone_from(round_trips);
            }
        }
        options.size = self.size;
        self.common.limit(self.rounds, &mut options.rounds, &mut options.budget);
        Ok(options)
    }

    fn contenders(&self, stacks: &Stacks, programs: &BTreeMap<String, Program>) -> Vec<Contender> {
        let of_pair = |pair: &Pair| {
            if let (true, Some(strategies)) = (pair.client.is_ours(), &self.strategies) {
                let with = |&strategy| Contender { pair: pair.clone(), strategy };
                return strategies.iter().map(with).collect();
            }
            let program = programs.get(pair.client.name());
            let variants = program.map_or(&[][..], |program| &program.client_variants);
            contenders(pair, variants, self.connections.get())
        };
        stacks.pairs().iter().flat_map(of_pair).collect()
    }
}

/// Returns the grids of these call types. A type without a grid gets the unary one.
fn grids_of(calls: &[CallType], known: &[Grid]) -> Result<Vec<Grid>, Failure> {
    let mut grids = Vec::new();
    for &call in calls {
        if !matches!(call, CallType::Unary | CallType::PingPong) {
            return Err(Failure::bad_arguments(format!(
                "{call} is not supported here; use unary or ping-pong"
            )));
        }
        let before = grids.len();
        grids.extend(known.iter().filter(|grid| grid.call == call).cloned());
        if grids.len() == before {
            grids.extend(known.first().map(|grid| Grid { call, ..grid.clone() }));
        }
    }
    Ok(grids)
}
