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
use super::{Settings, unanswered};

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
    let mut measuring = Measuring { announced: settings.announce, cpu_before: None, cpu: None };
    if settings.warmup_ns == 0 {
        measuring.begin();
    }
    let mut crew = Crew {
        call,
        clients,
        run: run.clone(),
        patience: settings.timeout,
        tasks: JoinSet::new(),
        worker_tasks: HashMap::new(),
    };
    for index in 0..settings.in_flight as usize {
        crew.start(index);
    }

    let mut warm_up = std::pin::pin!(tokio::time::sleep_until(run.measured_from().into()));
    let until = run.measured_until();
    let mut window = std::pin::pin!(tokio::time::sleep_until(until.unwrap_or_else(Instant::now).into()));
    let mut check_timer =
        tokio::time::interval((settings.timeout / 4).clamp(Duration::from_millis(1), CHECK_INTERVAL_MAX));
    check_timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !crew.tasks.is_empty() {
        tokio::select! {
            biased;
            () = &mut warm_up, if measuring.cpu_before.is_none() => measuring.begin(),
            () = &mut window, if until.is_some() && measuring.cpu.is_none() => measuring.end(),
            () = crew.next_ended() => {}
            _ = check_timer.tick() => crew.abort_stuck_workers(),
        }
    }

    let client_cpu = measuring.ended();
    let Merged { shard, duration, drain } = run.merged();
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
        self.print("measuring");
        self.cpu_before = Some(CpuTime::of_this_process());
    }

    fn end(&mut self) {
        if self.cpu_before.is_none() {
            self.begin();
        }
        let cpu = CpuTime::of_this_process();
        self.print("measured");
        self.cpu = Some(cpu - self.cpu_before.unwrap_or(cpu));
    }

    /// Ends it if the clock has not ended it yet; it then ends with the last response.
    fn ended(&mut self) -> CpuTime {
        if self.cpu.is_none() {
            self.end();
        }
        self.cpu.unwrap_or_default()
    }

    fn print(&self, word: &str) {
        if self.announced {
            let mut stdout = io::stdout().lock();
            // A closed stdout also loses the result, so the error can be ignored.
            let _ = writeln!(stdout, "{word}").and_then(|()| stdout.flush());
        }
    }
}

/// The workers and their tasks.
struct Crew<'c> {
    call: Call,
    clients: &'c [Client],
    run: Arc<Run>,
    /// Maximum time that a worker may wait for the same event.
    patience: Duration,
    tasks: JoinSet<()>,
    worker_tasks: HashMap<Id, WorkerTask>,
}

struct WorkerTask {
    index: usize,
    progress: Arc<Progress>,
    task: AbortHandle,
}

impl Crew<'_> {
    fn start(&mut self, index: usize) {
        let progress = Arc::new(Progress::default());
        let worker = Worker { index, run: self.run.clone(), progress: progress.clone() };
        let client = self.clients[index % self.clients.len()].clone();
        let task = self.tasks.spawn(repeat(self.call, client, worker));
        self.worker_tasks.insert(task.id(), WorkerTask { index, progress, task });
    }

    /// Waits for a worker to end. Replaces an aborted one while the run lasts.
    async fn next_ended(&mut self) {
        match self.tasks.join_next_with_id().await {
            Some(Ok((id, ()))) => {
                self.worker_tasks.remove(&id);
            }
            Some(Err(error)) if error.is_cancelled() => {
                if let Some(worker_task) = self.worker_tasks.remove(&error.id())
                    && !self.run.is_over()
                {
                    self.start(worker_task.index);
                }
            }
            Some(Err(error)) => std::panic::resume_unwind(error.into_panic()),
            None => {}
        }
    }

    /// Aborts every worker that has waited too long, which cancels its call.
    fn abort_stuck_workers(&self) {
        let now_ns = self.run.now_ns();
        for worker_task in self.worker_tasks.values() {
            let waits = worker_task.progress.since_ns().map(|since_ns| now_ns.saturating_sub(since_ns));
            if waits.is_some_and(|waits| waits > self.patience.as_nanos() as u64) {
                worker_task.progress.stops_waiting();
                worker_task.task.abort();
                self.run.call_ended();
                self.run.record_timeout(worker_task.index, &unanswered(self.patience));
            }
        }
    }
}
