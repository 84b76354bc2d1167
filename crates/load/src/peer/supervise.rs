//! Starts the workers of a run, watches over them, and gathers what they recorded.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use thalweg::{Channel, Status};
use thalweg_measure::cpu_time::CpuTime;
use tokio::task::{AbortHandle, Id, JoinSet};
use tokio::time::{Instant, MissedTickBehavior};

use super::call::{Call, Progress, Worker};
use super::patience::{Announcement, Patience};
use super::run::Run;
use crate::record::{self, Connections, LaneRule, LanesAt, LoadResult, LoadSettings, Note};

/// How often workers are looked at, at the most.
const LOOK_EVERY_MAX: Duration = Duration::from_millis(250);
/// How often the lanes of an adaptive channel are counted.
const COUNT_LANES_EVERY: Duration = Duration::from_millis(20);
/// So many of their changes are kept.
const LANE_CHANGES_MAX: usize = 1000;
/// The state of a lane that is connected.
const READY: &str = "READY";
/// A client that used more of its processors than this was the limit of what it measured.
const BUSY_SHARE_MAX: f64 = 0.95;

/// Runs `settings.in_flight` workers until the run is over; `None` when it was interrupted before measuring began.
pub(super) async fn supervise(
    settings: &LoadSettings,
    call: Call,
    patience: Patience,
    interrupt: impl Future<Output = ()>,
    mut announce: impl FnMut(Announcement),
) -> Option<Supervised> {
    let threads = tokio::runtime::Handle::current().metrics().num_workers();
    let started = SystemTime::now() + Duration::from_nanos(settings.warmup_ns);
    let run = Arc::new(Run::begin(settings, threads));
    let mut lanes = Lanes { channel: call.channel.clone(), seen: Vec::new() };
    let mut crew = Crew::new(call, run.clone(), patience.call);
    for index in 0..settings.in_flight as usize {
        crew.start(index);
    }

    let (mut before, mut after, mut warm) = (Spent::now(), None, false);
    let mut warm_up = std::pin::pin!(tokio::time::sleep_until(run.measured_from().into()));
    let mut window = std::pin::pin!(ended(&run));
    let mut interrupt = std::pin::pin!(interrupt);
    let mut interrupted_at = None;
    let mut look = tokio::time::interval((patience.call / 4).clamp(Duration::from_millis(1), LOOK_EVERY_MAX));
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut count_lanes = tokio::time::interval(COUNT_LANES_EVERY);
    count_lanes.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let is_adaptive = settings.lanes == LaneRule::Adaptive;

    while !crew.is_gone() {
        tokio::select! {
            () = crew.next_gone() => {}
            () = &mut warm_up, if !warm => {
                warm = true;
                before = Spent::now();
                announce(Announcement::Measuring);
            }
            () = &mut window, if warm && after.is_none() && !run.waits_for_all() => {
                after = Some(Spent::now());
                announce(Announcement::Measured);
            }
            _ = look.tick() => crew.send_away_the_stuck(),
            _ = count_lanes.tick(), if is_adaptive => lanes.count(&run),
            () = &mut interrupt, if interrupted_at.is_none() => {
                interrupted_at = Some(Instant::now());
                run.stop();
                window.set(ended(&run));
            }
        }
        if interrupted_at.is_some_and(|at| at.elapsed() >= patience.interrupted) {
            break;
        }
    }

    if interrupted_at.is_some() && !run.was_measuring() {
        return None;
    }
    let drain = run.until().filter(|_| settings.total.is_none()).map(|until| until.elapsed());
    if !warm {
        // A run that ended before the timer had its turn; whoever waits for the line gets it.
        announce(Announcement::Measuring);
    }
    let after = after.unwrap_or_else(|| {
        announce(Announcement::Measured);
        Spent::now()
    });
    let mut result = finish(&run, settings, started, after.cpu - before.cpu);
    result.looked_in_vain_ns = after.looked.saturating_sub(before.looked).as_nanos() as u64;
    result.drain_ns = drain.unwrap_or_default().as_nanos() as u64;
    result.lanes = lanes.seen;
    note_saturation(&mut result, threads);
    if interrupted_at.is_some() {
        note(&mut result, "the run was interrupted before its end".to_owned(), false);
    }
    Some(Supervised { result, was_interrupted: interrupted_at.is_some() })
}

/// What this process has spent so far.
struct Spent {
    cpu: CpuTime,
    /// The part of it in which a connection of our stack looked for what was not there.
    looked: Duration,
}

impl Spent {
    fn now() -> Self {
        // Only a kernel without /proc or getrusage fails here; its processor time counts as zero.
        let cpu = CpuTime::of_this_process().unwrap_or_default();
        Self { cpu, looked: thalweg_engine::looked_in_vain() }
    }
}

/// What came of a run.
pub(super) struct Supervised {
    pub(super) result: LoadResult,
    pub(super) was_interrupted: bool,
}

/// Comes when the window ends; never, where a number ends it.
async fn ended(run: &Run) {
    match run.until() {
        Some(until) => tokio::time::sleep_until(until.into()).await,
        None => std::future::pending().await,
    }
}

/// How many lanes a channel has had.
struct Lanes {
    channel: Channel,
    seen: Vec<LanesAt>,
}

impl Lanes {
    fn count(&mut self, run: &Run) {
        let connected = self.channel.lanes().iter().filter(|lane| lane.state == READY).count();
        let lanes = u32::try_from(connected).unwrap_or(u32::MAX);
        let is_new = self.seen.last().is_none_or(|last| last.lanes != lanes);
        if is_new && self.seen.len() < LANE_CHANGES_MAX {
            self.seen.push(LanesAt { at_ns: run.since_measuring_ns(), lanes });
        }
    }
}

/// The workers and their tasks.
struct Crew {
    call: Call,
    run: Arc<Run>,
    /// How long a worker may wait for the same thing.
    patience_ns: u64,
    tasks: JoinSet<()>,
    watched: HashMap<Id, Watched>,
}

struct Watched {
    index: usize,
    progress: Arc<Progress>,
    task: AbortHandle,
}

impl Crew {
    fn new(call: Call, run: Arc<Run>, patience: Duration) -> Self {
        let patience_ns = patience.as_nanos() as u64;
        Self { call, run, patience_ns, tasks: JoinSet::new(), watched: HashMap::new() }
    }

    fn start(&mut self, index: usize) {
        let progress = Arc::new(Progress::default());
        let worker = Worker { run: self.run.clone(), progress: progress.clone() };
        let task = self.tasks.spawn(self.call.of_worker(index).repeat(worker));
        self.watched.insert(task.id(), Watched { index, progress, task });
    }

    fn is_gone(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Waits for a worker to end. One that was sent away is replaced while the run lasts.
    async fn next_gone(&mut self) {
        match self.tasks.join_next_with_id().await {
            Some(Ok((id, ()))) => {
                self.watched.remove(&id);
            }
            Some(Err(error)) if error.is_cancelled() => {
                if let Some(watched) = self.watched.remove(&error.id())
                    && !self.run.is_over()
                {
                    self.start(watched.index);
                }
            }
            Some(Err(error)) => std::panic::resume_unwind(error.into_panic()),
            None => {}
        }
    }

    /// Aborts, and with that cancels the call of, every worker that has waited too long.
    fn send_away_the_stuck(&self) {
        let now_ns = self.run.now_ns();
        for watched in self.watched.values() {
            let since_ns = watched.progress.since_ns();
            if since_ns.is_some_and(|since_ns| now_ns.saturating_sub(since_ns) > self.patience_ns) {
                watched.progress.rests();
                watched.task.abort();
                let waited = Duration::from_nanos(self.patience_ns);
                self.run.fail(&Status::deadline_exceeded(format!("nothing came within {waited:?}")));
            }
        }
    }
}

fn finish(run: &Run, settings: &LoadSettings, started: SystemTime, client_cpu: CpuTime) -> LoadResult {
    let merged = run.merged();
    let messages = merged.recorder.operations();
    let (sent, received) = settings.call.payloads();
    let mut result = merged.recorder.finish(record::Run {
        settings: settings.clone(),
        started,
        duration: run.measured(merged.last_ns),
        closed_loop: true,
        bytes_sent: messages * sent * settings.size_bytes,
        bytes_received: messages * received * settings.size_bytes,
        client_cpu,
        connections: Connections { asked: settings.connections, established: None },
        notes: Vec::new(),
    });
    if let Some(status) = merged.first_failure {
        note(&mut result, format!("the first failed call ended with {status}"), false);
    }
    result
}

fn note_saturation(result: &mut LoadResult, threads: usize) {
    // A client that looks is always busy, and that says nothing.
    let looked_ns = result.looked_in_vain_ns as f64;
    let busy_ns = result.client_cpu.user_ns + result.client_cpu.system_ns - looked_ns;
    let processors = result.settings.cpus.as_ref().map_or(threads, |cpus| cpus.as_slice().len().min(threads));
    let share = busy_ns / (result.duration_ns as f64 * processors as f64);
    if share > BUSY_SHARE_MAX {
        let text = format!(
            "the client's processors were busy for {:.0} % of the time: the client was the limit, not the server",
            share.min(1.0) * 100.0
        );
        note(result, text, true);
    }
}

/// Says so when the kernel saw another number of connections than was asked for.
pub(super) fn note_connections(result: &mut LoadResult) {
    let Connections { asked, established } = result.connections;
    match established {
        Some(_) if result.settings.lanes != LaneRule::Fixed => {}
        Some(established) if established != asked => {
            note(result, format!("connections: {asked} requested, {established} established"), false);
        }
        Some(_) => {}
        None => note(result, "cannot read the number of connections from the kernel".to_owned(), false),
    }
}

/// What was measured until a server ended is no measure of it.
pub(super) fn note_server_gone(result: &mut LoadResult, reason: &str) {
    note(result, format!("the server was gone at the end: {reason}"), true);
}

fn note(result: &mut LoadResult, text: String, invalidates: bool) {
    result.notes.push(Note { text, invalidates });
}
