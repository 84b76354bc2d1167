//! Starts and supervises the workers of a run, and merges their records.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::task::{AbortHandle, Id, JoinSet};
use tokio::time::MissedTickBehavior;

use super::channel::Client;
use super::result::{CpuTime, LoadResult};
use super::run::{Merged, Run};
use super::worker::{Call, Progress, Worker, repeat};
use super::{Settings, timed_out};

/// Maximum interval between checks of the workers.
const CHECK_INTERVAL_MAX: Duration = Duration::from_millis(250);
/// A client that used a larger share of its CPUs was itself the bottleneck.
const BUSY_SHARE_MAX: f64 = 0.95;

/// Warms up and measures, in one run or in two.
pub async fn supervise(settings: &Settings, call: Call, clients: &[Client]) -> LoadResult {
    if !settings.ends_with_responses() || settings.warmup_ns == 0 {
        return drive(settings, call, clients).await;
    }
    let measured = Settings { warmup_ns: 0, ..settings.clone() };
    let warm_up = Settings { duration_ns: Some(settings.warmup_ns), announce: false, ..measured.clone() };
    drive(&warm_up, call, clients).await;
    let mut result = drive(&measured, call, clients).await;
    result.settings.warmup_ns = settings.warmup_ns;
    result
}

/// Runs `settings.in_flight` workers, spread over `clients`, until the run is over.
async fn drive(settings: &Settings, call: Call, clients: &[Client]) -> LoadResult {
    let threads = tokio::runtime::Handle::current().metrics().num_workers();
    let started = SystemTime::now() + Duration::from_nanos(settings.warmup_ns);
    let run = Arc::new(Run::begin(settings, threads));
    let mut measurement = Measuring { announced: settings.announce, cpu_before: None, cpu: None };
    if settings.warmup_ns == 0 {
        measurement.begin();
    }
    let mut workers = Workers {
        call,
        clients,
        run: run.clone(),
        timeout: settings.timeout,
        tasks: JoinSet::new(),
        slots: HashMap::new(),
    };
    for index in 0..settings.in_flight as usize {
        workers.start(index);
    }

    let mut warm_up = std::pin::pin!(tokio::time::sleep_until(run.measured_from().into()));
    let until = run.measured_until();
    let mut window = std::pin::pin!(tokio::time::sleep_until(until.unwrap_or_else(Instant::now).into()));
    let mut check_interval =
        tokio::time::interval((settings.timeout / 4).clamp(Duration::from_millis(1), CHECK_INTERVAL_MAX));
    check_interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !workers.tasks.is_empty() {
        tokio::select! {
            biased;
            () = &mut warm_up, if measurement.cpu_before.is_none() => measurement.begin(),
            () = &mut window, if until.is_some() && measurement.cpu.is_none() => measurement.end(),
            () = workers.next_ended() => {}
            _ = check_interval.tick() => workers.abort_stuck_workers(),
        }
    }

    let client_cpu = measurement.ended();
    let Merged { shard, duration, drain } = run.merge();
    let mut result = LoadResult::new(settings, shard.recorder, started, (duration, drain), client_cpu);
    if let Some(failure) = shard.first_failure {
        result.note(format!("the first failed call ended with {failure}"), false);
    }
    let busy_ns = client_cpu.user_ns + client_cpu.system_ns;
    if busy_ns > BUSY_SHARE_MAX * duration.as_nanos() as f64 * threads as f64 {
        result.note(
            "the client's processors were busy all the time: the client was the limit".to_owned(),
            true,
        );
    }
    result
}

/// The measured time. Announces its start and end to observers of the processes.
struct Measuring {
    announced: bool,
    /// `None` until it has started.
    cpu_before: Option<CpuTime>,
    /// CPU time from its start to its end; `None` until it has ended.
    cpu: Option<CpuTime>,
}

impl Measuring {
    fn begin(&mut self) {
        self.announce("measuring");
        self.cpu_before = Some(CpuTime::current());
    }

    fn end(&mut self) {
        if self.cpu_before.is_none() {
            self.begin();
        }
        let cpu = CpuTime::current();
        self.announce("measured");
        self.cpu = Some(cpu - self.cpu_before.unwrap_or(cpu));
    }

    /// Ends it if the clock has not ended it yet; it then ends with the last response.
    fn ended(&mut self) -> CpuTime {
        if self.cpu.is_none() {
            self.end();
        }
        self.cpu.unwrap_or_default()
    }

    fn announce(&self, word: &str) {
        if self.announced {
            let mut stdout = io::stdout().lock();
            // A closed stdout also loses the result, so the error can be ignored.
            let _ = writeln!(stdout, "{word}").and_then(|()| stdout.flush());
        }
    }
}

/// The workers and their tasks.
struct Workers<'c> {
    call: Call,
    clients: &'c [Client],
    run: Arc<Run>,
    /// Maximum time that a worker may wait for the same event.
    timeout: Duration,
    tasks: JoinSet<()>,
    slots: HashMap<Id, WorkerSlot>,
}

struct WorkerSlot {
    index: usize,
    progress: Arc<Progress>,
    task: AbortHandle,
}

impl Workers<'_> {
    fn start(&mut self, index: usize) {
        let progress = Arc::new(Progress::default());
        let worker = Worker { index, run: self.run.clone(), progress: progress.clone() };
        let client = self.clients[index % self.clients.len()].clone();
        let task = self.tasks.spawn(repeat(self.call, client, worker));
        self.slots.insert(task.id(), WorkerSlot { index, progress, task });
    }

    /// Waits for a worker to end. Replaces an aborted one while the run lasts.
    async fn next_ended(&mut self) {
        match self.tasks.join_next_with_id().await {
            Some(Ok((id, ()))) => {
                self.slots.remove(&id);
            }
            Some(Err(error)) if error.is_cancelled() => {
                if let Some(slot) = self.slots.remove(&error.id())
                    && !self.run.is_over()
                {
                    self.start(slot.index);
                }
            }
            Some(Err(error)) => std::panic::resume_unwind(error.into_panic()),
            None => {}
        }
    }

    /// Aborts every worker that has waited too long, which cancels its call.
    fn abort_stuck_workers(&self) {
        let now_ns = self.run.now_ns();
        for slot in self.slots.values() {
            let waits = slot.progress.since_ns().map(|since_ns| now_ns.saturating_sub(since_ns));
            if waits.is_some_and(|waits| waits > self.timeout.as_nanos() as u64) {
                slot.progress.mark_paused();
                slot.task.abort();
                self.run.call_ended();
                self.run.give_up(slot.index, &timed_out(self.timeout));
            }
        }
    }
}
