//! `thalweg load` of any method, in a closed loop or by a schedule.

use std::fs;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use thalweg::channel::ChannelBuilder;
use thalweg_dynamic::{Catalogue, MethodName};
use thalweg_lab::drive::Announcement;
use thalweg_lab::study::Machine;
use thalweg_lab::{Established, descriptors};
use thalweg_load::{
    Ceiling, Gate, Label, LoadRun, Pace, Plan, Scenario, Schedule, Stop, UnderWay, drive, find_max,
};
use tokio::sync::Notify;

use super::arguments::{AnyArgs, DurationStop, Gates};
use super::connecting::Connecting;
use super::defaults::{
    DURATION_DEFAULT, IN_FLIGHT_DEFAULT, IN_FLIGHT_MAX_DEFAULT, SEARCH_RATE_DEFAULT, SEARCH_WINDOW_DEFAULT,
    WARM_UP_DEFAULT,
};
use super::export::Export;
use super::label::Tags;
use super::live::Live;
use super::notices::Notices;
use super::output::Output;
use super::progress::{self, Progress};
use super::scenario::{AskedScenario, scenario};
use super::watching::{Watcher, Watching};
use crate::failure::{Failure, INTERRUPTED};
use crate::results::read_result;
use crate::{runtime, signals};

/// A condition of `--expect` was not kept.
const BREACHED: u8 = 3;

/// What `load` is told that holds of all loads.
pub(super) struct Common<'a> {
    pub(super) target: &'a str,
    pub(super) in_flight: Option<u32>,
    pub(super) connections: u32,
    pub(super) is_adaptive: bool,
    pub(super) stop: Option<Stop>,
    /// Of a run that a number of calls ends.
    pub(super) max_duration: Option<Duration>,
    pub(super) warm_up: Option<Duration>,
    /// Of a call.
    pub(super) timeout: Duration,
    pub(super) connect_timeout: Duration,
    pub(super) threads: usize,
    pub(super) set_up: &'a dyn Fn(ChannelBuilder) -> ChannelBuilder,
    /// Told when measuring begins and has ended.
    pub(super) announce: &'a dyn Fn(Announcement),
}

impl AnyArgs {
    fn pace(&self) -> Result<Pace, Failure> {
        let Some(text) = &self.rps else { return Ok(Pace::Closed { workers: self.workers.clone() }) };
        let text = match text.strip_prefix('@') {
            Some(path) => fs::read_to_string(path)
                .map_err(|error| Failure::failed(format!("cannot read {path}: {error}")))?,
            None => text.clone(),
        };
        let schedule: Schedule =
            text.parse().map_err(|error| Failure::bad_arguments(format!("--rps: {error}")))?;
        Ok(Pace::Open { schedule, spacing: self.arrivals, seed: self.seed })
    }

    fn plan(&self, common: &Common<'_>) -> Result<Plan, Failure> {
        let pace = self.pace()?;
        let is_open = matches!(pace, Pace::Open { .. }) || self.find_max.is_some();
        let in_flight_default = match &self.workers {
            _ if is_open => IN_FLIGHT_MAX_DEFAULT,
            Some(workers) => workers.most().ceil() as u32,
            None => IN_FLIGHT_DEFAULT,
        };
        let in_flight = common.in_flight.unwrap_or(in_flight_default.max(common.connections));
        if common.connections > in_flight {
            return Err(Failure::bad_arguments(
                "more connections than calls in flight: some would stay idle",
            ));
        }
        if let Some(workers) = self.workers.as_ref().filter(|workers| workers.most() > f64::from(in_flight)) {
            return Err(Failure::bad_arguments(format!(
                "--workers {workers} has more calls in flight than -c {in_flight}"
            )));
        }
        let window = if self.find_max.is_some() { SEARCH_WINDOW_DEFAULT } else { DURATION_DEFAULT };
        let stop = common.stop.unwrap_or(Stop::After(window));
        // A schedule begins as it was written.
        let is_warm = !is_open && matches!(stop, Stop::After(_));
        let warm_up_default = if is_warm { WARM_UP_DEFAULT } else { Duration::ZERO };
        Ok(Plan {
            pace,
            in_flight,
            stop,
            max_duration: common.max_duration,
            under_way: self.under_way(stop, common.max_duration)?,
            warm_up: common.warm_up.unwrap_or(warm_up_default),
            interval: self.interval,
            share: self.share,
            start_at: self.start_at,
            label: self.label()?,
        })
    }

    /// What becomes of calls under way when the time is up.
    fn under_way(&self, stop: Stop, max_duration: Option<Duration>) -> Result<UnderWay, Failure> {
        if self.duration_stop.is_some() && matches!(stop, Stop::Calls(_)) && max_duration.is_none() {
            return Err(Failure::bad_arguments(
                "--duration-stop is for a run that a time ends: -z, or with -n -x",
            ));
        }
        Ok(match self.duration_stop {
            None => UnderWay::ByLoop,
            Some(DurationStop::Close) => UnderWay::Close,
            Some(DurationStop::Wait) => UnderWay::Wait,
            Some(DurationStop::Ignore) => UnderWay::Ignore,
        })
    }

    fn label(&self) -> Result<Label, Failure> {
        let mut tags = Tags::new();
        for (key, value) in self.tags.iter().flatten() {
            if tags.insert(key.clone(), value.clone()).is_some_and(|other| other != *value) {
                return Err(Failure::bad_arguments(format!("--tags: `{key}` is there twice")));
            }
        }
        Ok(Label { name: self.name.clone(), tags })
    }

    /// The highest rate that is to be found.
    fn ceiling(&self, plan: &Plan) -> Option<Ceiling> {
        let Gates(conditions) = self.find_max.as_ref()?;
        let first = match &plan.pace {
            Pace::Open { schedule, .. } => schedule.rate_at(0.0),
            Pace::Closed { .. } => SEARCH_RATE_DEFAULT,
        };
        Some(Ceiling { conditions: conditions.clone(), first, spacing: self.arrivals, seed: self.seed })
    }
}

/// Drives the method, or the scenario.
pub(super) fn run(
    args: &AnyArgs,
    method: Option<&MethodName>,
    common: &Common<'_>,
    output: &Output<'_>,
) -> Result<ExitCode, Failure> {
    let plan = args.plan(common)?;
    let ceiling = args.ceiling(&plan);
    let asked = AskedScenario::read(args, method, common.timeout)?;
    let files = args.files.read()?;
    let baseline = args.baseline.as_deref().map(read_result).transpose()?;
    // With fewer there are fewer connections, which the result says.
    let _ = descriptors::raise();
    let (mut run, was_interrupted) = runtime::runtime(common.threads)?.block_on(async {
        let interrupt = signals::interrupt()?;
        let mut interrupt = std::pin::pin!(interrupt);
        let is_live = !args.no_tui && Live::has_a_terminal();
        // Before anything is connected to: the connection of reflection is gone when they are counted.
        let before = Established::now();
        let ready = prepare(args, &asked, common, files);
        let scenario = tokio::select! {
            ready = ready => Arc::new(ready?),
            () = &mut interrupt => return Err(Failure::interrupted("interrupted before the run began")),
        };
        let quit = Arc::new(Notify::new());
        let mut was_interrupted = false;
        let told = async {
            tokio::select! {
                () = interrupt => {}
                () = quit.notified() => {}
            }
            was_interrupted = true;
        };
        progress::wait(&plan);
        let mut watching = Watching::begin(watchers(args, &plan, output, is_live, &quit)?);
        let driven = if let Some(ceiling) = &ceiling {
            find_max(&plan, &scenario, ceiling, told, &mut watching).await
        } else {
            let driven = drive(&plan, &scenario, told, &mut watching);
            announced(driven, &plan, common.announce).await
        };
        watching.end();
        let mut run = driven.map_err(Failure::bad_arguments)?;
        run.machine = Some(Machine::this());
        run.connections_established = Established::now().since(before);
        Ok((run, was_interrupted))
    })?;
    let against = match &baseline {
        Some(baseline) => {
            Gate::against(baseline, &run, args.max_regression).map_err(Failure::bad_arguments)?
        }
        None => Vec::new(),
    };
    let gates = args.expect.iter().flat_map(|Gates(gates)| gates).chain(&against);
    run.gates = gates.map(|gate| gate.judge(&run)).collect();
    output.write_run(&run)?;
    verdict(&run, args.max_errors, was_interrupted)
}

/// Says when the warm-up of what is driven is over, and when all has ended.
async fn announced<T>(driven: impl Future<Output = T>, plan: &Plan, announce: &dyn Fn(Announcement)) -> T {
    let agreed = plan.start_at.map(|at| at.duration_since(SystemTime::now()).unwrap_or_default());
    let warm = agreed.unwrap_or(plan.warm_up);
    let mut driven = std::pin::pin!(driven);
    let ended = tokio::select! {
        biased;
        ended = &mut driven => ended,
        () = tokio::time::sleep(warm) => {
            announce(Announcement::Measuring);
            driven.await
        }
    };
    announce(Announcement::Measured);
    ended
}

/// Connects, and looks the methods up.
async fn prepare(
    args: &AnyArgs,
    asked: &AskedScenario,
    common: &Common<'_>,
    files: Option<Catalogue>,
) -> Result<Scenario, Failure> {
    let targets: Vec<String> = std::iter::once(common.target)
        .chain(args.also.iter().map(String::as_str))
        .map(str::to_owned)
        .collect();
    let connecting = Connecting {
        targets: &targets,
        connections: common.connections,
        is_adaptive: common.is_adaptive,
        timeout: common.connect_timeout,
        authority: args.authority.as_deref(),
        set_up: common.set_up,
    };
    let flows = {
        let mut catalogue = connecting.catalogue(files, args.metadata_of_reflection()).await?;
        let flows = scenario(asked, args.seed, &mut catalogue).await?;
        args.files.write(&catalogue)?;
        flows
    };
    let connections = common.connections * targets.len() as u32;
    let channels = connecting.channels().await?;
    Ok(Scenario { name: asked.name.clone(), targets, connections, channels, flows, seed: args.seed })
}

/// Who is told how the run goes.
fn watchers(
    args: &AnyArgs,
    plan: &Plan,
    output: &Output<'_>,
    mut is_live: bool,
    quit: &Arc<Notify>,
) -> Result<Vec<Box<dyn Watcher>>, Failure> {
    let notices = Notices::new(is_live);
    let mut watchers: Vec<Box<dyn Watcher>> = Vec::new();
    watchers.extend(Export::begin(&args.export, &notices)?);
    watchers.extend(output.checkpoints());
    if is_live {
        match Live::begin(quit, &notices) {
            // The first one to go: what the others say at the end is said on the screen behind it.
            Ok(live) => watchers.insert(0, live),
            Err(_) => is_live = false,
        }
    }
    if !is_live {
        notices.release();
        watchers.extend(Progress::on_terminal(plan));
    }
    Ok(watchers)
}

/// The exit code, or what made the run a failure.
fn verdict(run: &LoadRun, max_errors: f64, was_interrupted: bool) -> Result<ExitCode, Failure> {
    if was_interrupted {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let breached: Vec<String> = run
        .gates
        .iter()
        .filter(|gate| !gate.is_kept)
        .map(|gate| format!("{} is {}", gate.gate, gate.figure))
        .collect();
    if !breached.is_empty() {
        return Err(Failure { message: format!("not kept: {}", breached.join(", ")), code: BREACHED });
    }
    if let Some(search) = run.search.as_ref().filter(|search| search.found_per_s.is_none()) {
        let conditions = search.conditions.join(", ");
        let message = format!("no rate was found that keeps to {conditions}");
        return Err(Failure { message, code: BREACHED });
    }
    if run.calls() == 0 {
        return Err(Failure::failed("no call ended within the measured time: let -z be longer"));
    }
    if run.failed_share() > max_errors {
        let note = run.notes.first().map(|note| note.text.as_str()).unwrap_or_default();
        return Err(Failure::failed(format!(
            "{} of {} calls failed, more than --max-errors has: {note}",
            run.failed,
            run.calls()
        )));
    }
    Ok(ExitCode::SUCCESS)
}
