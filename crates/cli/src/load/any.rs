//! `thalweg load` with any method, in a closed or open loop.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

use thalweg::channel::ChannelBuilder;
use thalweg_compare::{compare_with_baseline, gates};
use thalweg_dynamic::Catalogue;
use thalweg_load::peer::Announcement;
use thalweg_load::spec::{Benchmark, Connecting, ScenarioSpec};
use thalweg_load::{
    Channels, ConditionResult, DriveError, LoadRun, Plan, RunNote, Scenario, drive, find_max,
};
use thalweg_measure::descriptors;
use thalweg_measure::kernel::Established;
use thalweg_measure::machine::Machine;
use tokio::sync::Notify;

use super::any_arguments::Conditions;
use super::arguments::{CallTarget, LoadArgs};
use super::export;
use super::live::Live;
use super::notices::Notices;
use super::output::Output;
use super::progress::Progress;
use super::verdict::verdict;
use super::watching::{Watcher, WatcherThread};
use crate::balancing::Balancing;
use crate::failure::Failure;
use crate::keepalive::keepalive;
use crate::{runtime, signals};

/// Runs a load of a method or scenario.
pub(super) fn run(args: &LoadArgs) -> Result<ExitCode, Failure> {
    let plan = args.plan()?;
    let balancing = args.any.balancing.read()?;
    let output = Output::open(args.output.as_deref(), args.format)?;
    let (run, was_interrupted) = run_to_output(args, &plan, &balancing, &output)?;
    verdict(&run, args.any.max_errors, was_interrupted)
}

/// Runs the load, judges and writes the result. Returns it and whether it was interrupted.
fn run_to_output(
    args: &LoadArgs,
    plan: &Plan,
    balancing: &Balancing,
    output: &Output<'_>,
) -> Result<(LoadRun, bool), Failure> {
    let any = &args.any;
    let asked = args.scenario()?;
    let mut files = any.files.read()?;
    if files.is_none() && asked.benchmark.is_some() {
        files = Some(Benchmark::catalogue());
    }
    let baseline = any.baseline.as_deref().map(LoadRun::read).transpose().map_err(Failure::failed)?;
    // If this fails, the result reports fewer connections.
    let _ = descriptors::raise();
    let threads = args.runtime.threads(|_| 1)?;
    let ready = prepare(args, &asked, balancing, files);
    let (mut run, was_interrupted) =
        runtime::runtime(threads)?.block_on(run_plan(args, plan, ready, output))?;
    let compared = baseline
        .as_ref()
        .map(|baseline| compare_with_baseline(baseline, &run, any.max_regression))
        .transpose();
    let expected = any.expect.iter().flat_map(|Conditions(conditions)| conditions);
    let mut results: Vec<ConditionResult> = expected.map(|condition| condition.check(&run)).collect();
    if let Ok(Some(report)) = &compared {
        results.extend(gates(report));
        run.notes.extend(report.warnings.iter().map(RunNote::new));
    }
    run.set_condition_results(results);
    // The result is written even if the comparison failed.
    output.write_run(&run)?;
    compared.map_err(Failure::bad_arguments)?;
    Ok((run, was_interrupted))
}

async fn run_plan(
    args: &LoadArgs,
    plan: &Plan,
    ready: impl Future<Output = Result<Scenario, Failure>>,
    output: &Output<'_>,
) -> Result<(LoadRun, bool), Failure> {
    let interrupt = signals::interrupt()?;
    let mut interrupt = std::pin::pin!(interrupt);
    let is_live = !args.any.no_tui && !args.any.quiet && Live::has_terminal();
    // Counted before connecting, because the reflection connection is closed by the second count.
    let before = Established::now();
    let scenario = tokio::select! {
        ready = ready => Arc::new(ready?),
        () = &mut interrupt => return Err(Failure::interrupted("interrupted before the run started")),
    };
    let quit = Arc::new(Notify::new());
    let mut was_interrupted = false;
    let interrupted = async {
        tokio::select! {
            () = interrupt => {}
            () = quit.notified() => {}
        }
        was_interrupted = true;
    };
    let mut watcher_thread = WatcherThread::begin(watchers(args, plan, output, is_live, &quit)?)?;
    let outcome = if let Some(search_options) = &args.search_options(plan) {
        find_max(plan, &scenario, search_options, interrupted, &mut watcher_thread).await
    } else {
        with_announcements(drive(plan, &scenario, interrupted, &mut watcher_thread), args, plan).await
    };
    watcher_thread.end();
    let mut run = outcome.map_err(failure)?;
    run.machine = Some(Machine::this());
    // Channels of single calls are already closed.
    let is_shared = matches!(scenario.channels, Channels::Shared(_));
    run.connections_established = Established::now().since(before).filter(|_| is_shared);
    Ok((run, was_interrupted))
}

fn failure(error: DriveError) -> Failure {
    match error {
        DriveError::Plan(error) => Failure::bad_arguments(error),
        DriveError::Timer(_) => Failure::failed(error),
    }
}

/// Announces the end of the warm-up and of the load.
async fn with_announcements<T>(run: impl Future<Output = T>, args: &LoadArgs, plan: &Plan) -> T {
    let agreed = plan.start_at.map(|at| at.duration_since(SystemTime::now()).unwrap_or_default());
    let warm = agreed.unwrap_or(plan.warm_up);
    let mut run = std::pin::pin!(run);
    let ended = tokio::select! {
        biased;
        ended = &mut run => ended,
        () = tokio::time::sleep(warm) => {
            args.common.announce(Announcement::Measuring);
            run.await
        }
    };
    args.common.announce(Announcement::Measured);
    ended
}

/// Connects and looks up the methods.
async fn prepare(
    args: &LoadArgs,
    asked: &ScenarioSpec,
    balancing: &Balancing,
    files: Option<Catalogue>,
) -> Result<Scenario, Failure> {
    let targets: Vec<String> = std::iter::once(args.common.target.as_str())
        .chain(args.any.also.iter().map(String::as_str))
        .map(str::to_owned)
        .collect();
    let set_up = |channel: ChannelBuilder| {
        let channel = match args.keepalive_time {
            Some(time) => channel.keepalive(keepalive(time)),
            None => channel,
        };
        let channel = match args.runtime.busy_poll {
            Some(duration) => channel.busy_poll(duration),
            None => channel,
        };
        args.tls.applied(&args.common.target, balancing.applied(channel))
    };
    let connecting = Connecting {
        targets: &targets,
        connections: args.common.connections,
        lanes: args.common.lanes,
        timeout: args.common.connect_timeout(),
        authority: args.any.each.authority.as_deref(),
        set_up: &set_up,
    };
    let flows = {
        let mut catalogue = connecting.catalogue(files, args.any.with.of_reflection()).await?;
        let flows = asked.flows(args.any.seed, &mut catalogue).await?;
        args.any.files.write(&catalogue)?;
        flows
    };
    let connections = args.common.connections * targets.len() as u32;
    let channels = connecting.channels().await?;
    // The server may lack a service that is called by default.
    if let (Some(benchmark), CallTarget::Benchmark(_)) = (asked.benchmark, &args.call)
        && let Channels::Shared(channels) = &channels
    {
        for (target, channel) in targets.iter().zip(channels.iter().filter_map(|channels| channels.first())) {
            benchmark.try_out(target, channel, args.common.connect_timeout()).await?;
        }
    }
    let (name, lanes, seed) = (asked.name.clone(), args.common.lanes, args.any.seed);
    Ok(Scenario { name, targets, connections, lanes, channels, flows, seed })
}

/// Returns the watchers of the run.
fn watchers(
    args: &LoadArgs,
    plan: &Plan,
    output: &Output<'_>,
    mut is_live: bool,
    quit: &Arc<Notify>,
) -> Result<Vec<Box<dyn Watcher>>, Failure> {
    let notices = Notices::new(is_live);
    let mut watchers: Vec<Box<dyn Watcher>> = Vec::new();
    watchers.extend(export::begin(&args.any.export, &notices)?);
    watchers.extend(output.checkpoints());
    if is_live {
        match Live::begin(plan, quit, &notices) {
            // Live goes first: it leaves the screen before other watchers print at the end.
            Ok(live) => watchers.insert(0, live),
            Err(_) => is_live = false,
        }
    }
    if !is_live {
        notices.release();
        watchers.extend(Progress::begin(&args.any, plan));
    }
    Ok(watchers)
}
