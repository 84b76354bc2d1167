//! Runs studies of calls, on servers started by the command or on a given target.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use thalweg_lab::load::{CallsSettings, LabResults, Window, WindowMeasurement};
use thalweg_lab::process::{ProcessExecutor, Program, TargetExecutor};
use thalweg_lab::stack::Stack;
use thalweg_lab::stacks::Stacks;
use thalweg_lab::study::{Execute, Plan, StudyKind};
use thalweg_load::record::MethodCall;
use thalweg_measure::cpus::{CpuAssignment, CpuList};
use thalweg_measure::interrupt::Interrupt;

use super::common::{StudyArgs, finish, halves, listen_for_signals, this_program};
use super::stacks::AgainstArgs;
use crate::failure::Failure;
use crate::request::{self, RequestBytes};

/// Arguments of all studies of calls.
#[derive(Debug, Args)]
pub(super) struct CommonArgs {
    #[command(flatten)]
    pub(super) study: StudyArgs,

    #[command(flatten)]
    pub(super) against: AgainstArgs,
}

impl CommonArgs {
    /// Sets rounds and time limit. Fewer rounds do not shorten the limit, because servers and channels still need time
    /// to settle.
    pub(super) fn limit(&self, asked: Option<u32>, rounds: &mut u32, budget: &mut Duration) {
        if let Some(asked) = asked {
            *budget = *budget * asked.max(*rounds) / *rounds;
            *rounds = asked;
        }
        *budget = self.study.budget.unwrap_or(*budget);
    }
}

/// CPUs and threads of clients and servers.
#[derive(Debug, Args)]
pub(super) struct SidesArgs {
    /// CPUs of clients, such as 0-3 [default: one half]
    #[arg(long, value_name = "LIST")]
    client_cpus: Option<CpuList>,

    /// CPUs of servers [default: the other half]
    #[arg(long, value_name = "LIST")]
    server_cpus: Option<CpuList>,

    /// Threads of each server [default: each stack's own]
    #[arg(long, value_name = "N")]
    server_threads: Option<NonZeroU32>,
}

impl SidesArgs {
    /// Returns the CPUs of both sides. With `is_external` the server is elsewhere and clients may use all CPUs.
    pub(super) fn cpus(&self, is_external: bool) -> Result<CpuAssignment, Failure> {
        if is_external {
            let client_cpus = self.client_cpus.clone().or(CpuList::available().ok());
            return Ok(CpuAssignment { client_cpus, ..CpuAssignment::default() });
        }
        let server_threads = self.server_threads.map(NonZeroU32::get);
        let halves = halves()?.chosen(self.client_cpus.clone(), self.server_cpus.clone());
        Ok(CpuAssignment { server_threads, ..halves })
    }
}

/// The method to call on a given target.
#[derive(Debug, Args)]
pub(super) struct MethodArgs {
    /// Unary method to call
    #[arg(
        long = "call",
        alias = "method",
        value_name = "SERVICE/METHOD",
        requires = "target",
        default_value = "grpc.health.v1.Health/Check"
    )]
    method: String,

    /// Request bytes in hex, or @FILE [default: empty message]
    #[arg(long, value_name = "HEX", requires = "target", value_parser = request::parse)]
    data: Option<RequestBytes>,
}

impl MethodArgs {
    pub(super) fn call(&self) -> MethodCall {
        request::call(&self.method, self.data.as_ref())
    }
}

/// Measures windows of calls.
pub(super) type CallsExecutor = Box<dyn Execute<Window = Window, Measurement = WindowMeasurement>>;

/// A study of calls with its arguments.
pub(super) trait CallsStudy {
    const KIND: StudyKind;

    fn common(&self) -> &CommonArgs;

    /// Returns the CPUs of clients and servers.
    fn cpus(&self) -> Result<CpuAssignment, Failure>;

    /// Plans the windows for these stacks. Without `programs` only the peers' names are known.
    fn plan(&self, stacks: &Stacks, programs: &BTreeMap<String, Program>) -> Result<Plan<Window>, Failure>;

    /// Returns a sentence about points that this machine does not allow, if any.
    fn cut(&self) -> Result<Option<String>, Failure> {
        Ok(None)
    }

    /// Returns an executor other than the one whose servers run for the whole study, if needed.
    fn executor(
        &self,
        _programs: &BTreeMap<String, Program>,
        _cpus: &CpuAssignment,
        _interrupt: &Interrupt,
    ) -> Option<CallsExecutor> {
        None
    }

    /// Returns the target to measure instead of own servers, if given.
    fn external_target(&self) -> Result<Option<ExternalTarget>, Failure> {
        Ok(None)
    }
}

pub(super) fn run<C: CallsStudy>(args: &C) -> Result<ExitCode, Failure> {
    let common = args.common();
    if let Some(report) = common.study.report_from_results() {
        return report;
    }

    let cpus = args.cpus()?;
    if let Some(external) = args.external_target()? {
        return run_on_target(args, external, cpus);
    }
    let mut stacks = common.against.stacks();
    // Reports planning errors before anything is built or started.
    args.plan(&stacks, &BTreeMap::new())?;
    let interrupt = listen_for_signals()?;
    let (programs, executor) = start(&common.against, &mut stacks, cpus.clone(), interrupt.clone())?;
    let executor = match args.executor(&programs, &cpus, &interrupt) {
        Some(own) => {
            // Starting these servers has shown that they work.
            drop(executor);
            own
        }
        None => Box::new(executor),
    };
    let plan = args.plan(&stacks, &programs)?;
    let directory = common.study.directory()?;
    let (stacks, left_out) = stacks.into_info(&programs, &cpus)?;
    let settings = CallsSettings {
        arguments: std::env::args().skip(1).collect(),
        client_cpus: cpus.client_cpus,
        server_cpus: cpus.server_cpus,
        client_threads: cpus.client_threads,
        server_threads: cpus.server_threads,
        target: None,
        cut: args.cut()?,
    };
    let results = LabResults::started(C::KIND, &plan, settings, stacks, left_out);
    finish(&plan, "", results, executor, &directory)
}

/// A given target with the method and windows.
pub(super) struct ExternalTarget {
    pub(super) target: String,
    pub(super) method: MethodCall,
    pub(super) plan: Plan<Window>,
}

/// Measures our client with a given target.
fn run_on_target<C: CallsStudy>(
    args: &C,
    external: ExternalTarget,
    cpus: CpuAssignment,
) -> Result<ExitCode, Failure> {
    if args.common().against.compares() {
        return Err(Failure::bad_arguments("--target works with our client only; leave out --against"));
    }
    let directory = args.common().study.directory()?;
    let settings = CallsSettings {
        arguments: std::env::args().skip(1).collect(),
        client_cpus: cpus.client_cpus.clone(),
        client_threads: cpus.client_threads,
        target: Some(external.target.clone()),
        cut: args.cut()?,
        ..CallsSettings::default()
    };
    let (ours, interrupt) = (this_program()?, listen_for_signals()?);
    let stacks = vec![ours.info(Stack::ours(), &cpus).map_err(Failure::failed)?];
    let executor = TargetExecutor::new(ours, external.target, external.method, cpus, interrupt);
    let results = LabResults::started(C::KIND, &external.plan, settings, stacks, Vec::new());
    finish(&external.plan, "", results, executor, &directory)
}

/// Returns the programs of all stacks and an executor with running servers.
fn start(
    args: &AgainstArgs,
    stacks: &mut Stacks,
    cpus: CpuAssignment,
    interrupt: Interrupt,
) -> Result<(BTreeMap<String, Program>, ProcessExecutor), Failure> {
    let programs = stacks.programs(args.peers.directory().as_ref(), this_program()?)?;
    let mut executor = ProcessExecutor::new(programs.clone(), cpus, interrupt);
    stacks.serve(&mut executor)?;
    Ok((programs, executor))
}
