//! Drives a plan.

use std::future::pending;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::runtime::Handle;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{MissedTickBehavior, interval_at, sleep_until};

use crate::observer::Observer;
use crate::pacing::{LAST_STROKE, paced};
use crate::plan::{Plan, PlanError, Stop, UnfinishedCalls};
use crate::run::LoadRun;
use crate::running::{RunEnd, Running};
use crate::scenario::{Flow, Scenario};
use crate::start_time;
use crate::starts::too_few;
use crate::worker::Shared;
use crate::workers::{Workers, propagate_panic};

/// Grace period for calls in flight after an interrupt.
const INTERRUPTED_PATIENCE: Duration = Duration::from_secs(1);

/// Reason why a run has no result.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The plan is invalid.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The kernel timer that starts the calls of an open loop failed.
    #[error("the run ended because the timer that starts its calls failed: {0}")]
    Timer(#[from] io::Error),
}

/// Drives `scenario` by `plan` until its end or `interrupt`. `observer` is notified of the start and of each completed
/// interval.
///
/// It runs on the caller's tokio runtime. Each call ends by its deadline (`options.timeout`): without one, a server
/// that never responds keeps the run from ending.
///
/// # Errors
///
/// If the plan is invalid, or the kernel's timer fails.
pub async fn drive(
    plan: &Plan,
    scenario: &Arc<Scenario>,
    interrupt: impl Future<Output = ()>,
    observer: &mut impl Observer,
) -> Result<LoadRun, DriveError> {
    let (running, end) = run_plan(plan, scenario, interrupt, observer).await?;
    observer.interval(&running.end_interval(), &running);
    Ok(running.result(end))
}

/// Like [`drive`], but returns the counters too.
pub(crate) async fn run_plan(
    plan: &Plan,
    scenario: &Arc<Scenario>,
    interrupt: impl Future<Output = ()>,
    observer: &mut impl Observer,
) -> Result<(Running, RunEnd), DriveError> {
    check(plan, scenario)?;
    let mut interrupt = pin!(interrupt);
    let mut base = Instant::now();
    let mut interrupted_at = None;
    if let Some(start_at) = plan.start_at {
        start_time::check(start_at, SystemTime::now())?;
        tokio::select! {
            begins = start_time::wait_for_warm_up(start_at, plan.warm_up) => base = begins,
            () = &mut interrupt => interrupted_at = Some(Instant::now()),
        }
    }
    let threads = Handle::current().metrics().num_workers();
    let shared = Arc::new(Shared::new(plan, scenario, base, threads));
    if interrupted_at.is_some() {
        shared.stop();
    }
    let running = Running::new(plan, &shared, threads);
    observer.begins(&running);
    let mut tasks = RunTasks::begin(plan, shared, interrupted_at);
    tasks.run_to_end(plan, &running, interrupt, observer).await;
    let end = tasks.end(plan)?;
    Ok((running, end))
}

fn check(plan: &Plan, scenario: &Scenario) -> Result<(), PlanError> {
    plan.check()?;
    let is_chosen = |flow: &Flow| flow.weight > 0;
    if !scenario.flows.iter().any(is_chosen) || scenario.flows.iter().any(|flow| flow.steps.is_empty()) {
        return Err(PlanError::NothingToCall);
    }
    Ok(())
}

/// The tasks of a run.
struct RunTasks {
    shared: Arc<Shared>,
    workers: Workers,
    pacing: JoinHandle<io::Result<()>>,
    /// Error of the pacing task.
    failure: Option<io::Error>,
    interrupted_at: Option<Instant>,
    is_cut: bool,
}

impl RunTasks {
    fn begin(plan: &Plan, shared: Arc<Shared>, interrupted_at: Option<Instant>) -> Self {
        let workers = Workers::begin(plan, &shared);
        let pacing = tokio::spawn(paced(shared.clone(), plan.clone()));
        Self { shared, workers, pacing, failure: None, interrupted_at, is_cut: false }
    }

    async fn run_to_end(
        &mut self,
        plan: &Plan,
        running: &Running,
        mut interrupt: Pin<&mut impl Future<Output = ()>>,
        observer: &mut impl Observer,
    ) {
        let base = self.shared.base;
        // Calls that count as failed end on their own. A worker in its think time is not waited for.
        let patience =
            if plan.unfinished_calls == UnfinishedCalls::Close { LAST_STROKE } else { Duration::ZERO };
        let cut_at = plan.cut_at(base).map(|cut_at| cut_at + patience);
        let measured_from = base + plan.warm_up;
        let mut ticks = interval_at((measured_from + plan.interval).into(), plan.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let measured_until = running.measured_until();
        let (mut is_warm, mut is_measured, mut is_paced, mut is_abandoned) = (false, false, false, false);
        let mut check_ticks = self.workers.check_ticks();
        while !self.workers.is_empty() {
            let give_up_at = self.interrupted_at.map(|at| at + INTERRUPTED_PATIENCE);
            tokio::select! {
                () = self.workers.next_ended() => {}
                paced = &mut self.pacing, if !is_paced => {
                    is_paced = true;
                    self.on_pacing_end(paced);
                }
                () = at(Some(measured_from)), if !is_warm => {
                    is_warm = true;
                    running.measuring_begins();
                    observer.measuring();
                }
                () = at(measured_until), if is_warm && !is_measured => {
                    is_measured = true;
                    running.measuring_ends();
                    observer.measured();
                }
                _ = check_ticks.tick(), if plan.patience.is_some() => self.workers.abort_stuck(),
                _ = ticks.tick() => {
                    // The rest of the last interval, and the time of draining, are reported at the end.
                    if self.shared.now_ns() < self.shared.until_ns && self.interrupted_at.is_none() {
                        observer.interval(&running.end_interval(), running);
                    }
                }
                () = &mut interrupt, if self.interrupted_at.is_none() => {
                    self.interrupted_at = Some(Instant::now());
                    self.shared.stop();
                    self.pacing.abort();
                }
                () = at(cut_at), if !self.is_cut => {
                    self.is_cut = true;
                    self.shared.stop();
                    self.workers.abort_all();
                }
                () = at(give_up_at), if !is_abandoned => {
                    is_abandoned = true;
                    self.workers.abort_all();
                }
            }
        }
        self.pacing.abort();
        // A run may end before its timer fires; the observer is notified even so.
        if !is_warm && self.interrupted_at.is_none() {
            observer.measuring();
        }
        if !is_measured && (is_warm || self.interrupted_at.is_none()) {
            observer.measured();
        }
    }

    /// Handles the end of the pacing task: all starts are due, or no more will be.
    fn on_pacing_end(&mut self, paced: Result<io::Result<()>, JoinError>) {
        match paced {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                self.failure = Some(error);
                self.shared.stop();
                self.workers.abort_all();
            }
            Err(error) => propagate_panic(error),
        }
    }

    fn end(self, plan: &Plan) -> Result<RunEnd, io::Error> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let is_by_number = matches!(plan.stop, Stop::Calls(_));
        Ok(match self.interrupted_at {
            Some(_) => RunEnd::Interrupted,
            None if is_by_number && (self.is_cut || self.shared.has_remaining_starts()) => RunEnd::TimeUp,
            None => too_few(plan).map_or(RunEnd::AsPlanned, RunEnd::ScheduleOver),
        })
    }
}

/// Waits until `time`, or forever if it is `None`.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time.into()).await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::fs::File;
    use std::os::fd::AsRawFd;
    use std::process::Command;

    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    use thalweg::metadata::MetadataMap;
    use thalweg::{CallOptions, Channel, Method};
    use tokio::runtime::{Builder, Runtime};

    use super::*;
    use crate::arrivals::Spacing;
    use crate::call::{Call, CallKind, CallMetadata, Calls, Expected, StreamPlan};
    use crate::label::Label;
    use crate::plan::Pace;
    use crate::record::LaneRule;
    use crate::requests::{Order, Requests};
    use crate::scenario::{Channels, Step};
    use crate::schedule::Schedule;

    const ALONE: &str = "THALWEG_TEST_ALONE";

    fn runtime() -> Runtime {
        Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
    }

    /// An open loop of one hour.
    fn plan() -> Plan {
        Plan {
            pace: Pace::Open { schedule: Schedule::constant(10.0), spacing: Spacing::Constant, seed: 0 },
            in_flight: 2,
            stop: Stop::After(Duration::from_secs(3600)),
            max_duration: None,
            unfinished_calls: UnfinishedCalls::ByLoop,
            patience: None,
            warm_up: Duration::ZERO,
            interval: Duration::from_secs(1),
            share: None,
            start_at: None,
            label: Label::default(),
        }
    }

    /// Calls to an address without a server.
    fn scenario() -> Arc<Scenario> {
        let call = Call {
            method: Method::new("/a.B/C"),
            kind: CallKind::Unary,
            metadata: CallMetadata::Constant(MetadataMap::default()),
            options: CallOptions::default(),
            calls: Calls::Bytes(Requests::new(Vec::new(), Order::InTurn, None)),
            stream: StreamPlan::default(),
            expects: Expected::default(),
        };
        let step = Step { name: "C".to_owned(), call, think: None };
        Arc::new(Scenario {
            name: "a.B/C".to_owned(),
            targets: Vec::new(),
            connections: 1,
            lanes: LaneRule::PerCall,
            channels: Channels::PerCall(vec![Channel::builder("http://127.0.0.1:1")]),
            flows: vec![Flow { name: "C".to_owned(), weight: 1, steps: vec![step] }],
            seed: 0,
        })
    }

    /// Runs in its own process, which cannot open any file afterwards.
    #[test]
    fn timer_failure_ends_run_with_error() {
        if env::var_os(ALONE).is_some() {
            let driven = runtime().block_on(async {
                let scenario = scenario();
                // The lowest free descriptor.
                let next = File::open("/dev/null").unwrap().as_raw_fd();
                let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
                setrlimit(Resource::RLIMIT_NOFILE, next.try_into().unwrap(), most).unwrap();
                drive(&plan(), &scenario, pending(), &mut ()).await
            });
            let error = driven.unwrap_err();
            assert!(matches!(error, DriveError::Timer(_)), "{error}");
            assert!(error.to_string().contains("the timer that starts its calls failed"), "{error}");
            return;
        }
        let name = "drive::tests::timer_failure_ends_run_with_error";
        let test = env::current_exe().unwrap();
        let output =
            Command::new(test).args(["--exact", name, "--nocapture"]).env(ALONE, "1").output().unwrap();
        let [stdout, stderr] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}{stderr}");
    }

    /// Each failed stream counts as some of the messages left.
    #[test]
    fn message_limit_ends_run_when_all_streams_fail() {
        let mut scenario = Arc::into_inner(scenario()).unwrap();
        let call = &mut scenario.flows[0].steps[0].call;
        call.kind = CallKind::BidiStream;
        call.stream.lasts_to_end = true;
        call.metadata = CallMetadata::Made(Box::new(|_| Err("no such value".to_owned())));
        let pace = Pace::Closed { workers: None };
        let plan = Plan { pace, in_flight: 1, stop: Stop::Messages(40), ..plan() };
        let run = runtime().block_on(drive(&plan, &Arc::new(scenario), pending(), &mut ())).unwrap();
        assert_eq!((run.failed, run.errors["INVALID_ARGUMENT"]), (3, 3), "{:?}", run.errors);
    }

    /// Without the panic, workers would wait for starts forever.
    #[test]
    #[should_panic(expected = "no start comes of this")]
    fn pacing_panic_propagates_to_run() {
        let plan = plan();
        runtime().block_on(async {
            let shared = Arc::new(Shared::new(&plan, &scenario(), Instant::now(), 1));
            let running = Running::new(&plan, &shared, 1);
            let mut tasks = RunTasks::begin(&plan, shared, None);
            tasks.pacing.abort();
            tasks.pacing = tokio::spawn(async { panic!("no start comes of this") });
            tasks.run_to_end(&plan, &running, pin!(pending()), &mut ()).await;
        });
    }
}
