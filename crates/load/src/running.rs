//! An ongoing run and its interim results.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use thalweg_measure::cpu_time::CpuTime;
use thalweg_measure::usage::{KeptWaiting, OwnUsage};
use thalweg_measure::validity::{Cause, Reason};
use thalweg_measure::{figures, wording};

use crate::intervals::{IntervalEnd, Intervals};
use crate::pacer::Due;
use crate::plan::{Pace, Plan, Stop};
use crate::run::{Interval, LoadRun, RunNote, SCHEMA, Search, StepRun, Timing};
use crate::scenario::{Scenario, Step};
use crate::servers::Servers;
use crate::tally::{RunCounters, StepTally, Tally};
use crate::worker::Shared;

/// Maximum share of busy client processors. Above it, the client was the limit.
const BUSY_SHARE_MAX: f64 = 0.95;
/// Maximum share of late starts. Above it, a note says that the schedule was not kept.
const LATE_SHARE_MAX: f64 = 0.01;
/// Shortest time without a finished call that is noted, in ns.
const OUTAGE_NS_MIN: u64 = 100_000_000;
/// Smallest share of the run without a finished call that is noted.
const OUTAGE_SHARE_MIN: f64 = 0.05;

/// Lead at which calls in flight are counted before the end, as calls may be cancelled at the end itself.
const BEFORE_END_NS: u64 = 5_000_000;

/// An ongoing run. Clones refer to the same run.
#[derive(Clone, Debug)]
pub struct Running {
    state: Arc<State>,
    /// Tries before this run.
    search: Option<Arc<Search>>,
}

#[derive(Debug)]
struct State {
    plan: Plan,
    shared: Arc<Shared>,
    threads: usize,
    /// ID of the run in hex; `None` if the system has no random numbers.
    id: Option<String>,
    measured: Mutex<RunMeasurements>,
}

impl State {
    /// Returns the resource usage. Only a kernel without /proc or getrusage fails here; processor time then counts as
    /// zero.
    fn client_usage(&self) -> ClientUsage {
        let cpu = CpuTime::of_this_process().unwrap_or_default();
        ClientUsage { cpu, busy_poll_wasted: thalweg_engine::busy_poll_wasted(), spun: self.spun() }
    }

    /// Returns the time spent spinning for the next start, since the run began.
    fn spun(&self) -> Duration {
        self.shared.due.as_ref().map_or(Duration::ZERO, Due::spun)
    }
}

/// Measurements besides the workers' counters.
#[derive(Debug)]
struct RunMeasurements {
    /// Start of the measured time, and the process's usage then.
    started: SystemTime,
    cpu: CpuTime,
    busy_poll_wasted: Duration,
    spun: Duration,
    /// Time the client's threads waited for a processor; `None` before measuring began.
    own: Option<OwnUsage>,
    /// Usage at the end of the measured time, if calls were still awaited then.
    at_end: Option<ClientUsage>,
    intervals: Intervals,
    /// End of the last interval, in ns of the run's clock.
    since_ns: u64,
    servers: Servers,
}

/// Resource usage of the process at one moment.
#[derive(Clone, Copy, Debug)]
struct ClientUsage {
    cpu: CpuTime,
    busy_poll_wasted: Duration,
    spun: Duration,
}

/// Wall-clock and processor time of a run.
pub(crate) struct RunUsage {
    pub(crate) started: SystemTime,
    pub(crate) measured_ns: u64,
    /// Time after the measured time.
    pub(crate) drain_ns: u64,
    pub(crate) cpu: CpuTime,
    /// Processor time without spinning on the clock.
    cpu_of_calls: CpuTime,
    spun: Duration,
    /// Time of busy polls without result.
    pub(crate) busy_poll_wasted: Duration,
    /// Share of the client's processors busy with calls.
    busy_share: f64,
}

impl RunUsage {
    /// Returns a reason if the client was the limit.
    pub(crate) fn client_limit(&self) -> Option<Reason> {
        client_limit(self.busy_share)
    }
}

/// Returns 128 random bits, by which `merge` recognizes a run given twice.
fn new_id() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(format!("{:032x}", u128::from_be_bytes(bytes)))
}

/// State of a run's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunEnd {
    NotYet,
    AsPlanned,
    /// A time limit ended it before all calls had started.
    TimeUp,
    /// The schedule of an open loop ended after this number of starts, fewer than planned.
    ScheduleOver(u64),
    Interrupted,
}

impl Running {
    pub(crate) fn new(plan: &Plan, shared: &Arc<Shared>, threads: usize) -> Self {
        let mut servers = Servers::default();
        servers.begin(&shared.scenario);
        let measured = RunMeasurements {
            started: SystemTime::now(),
            cpu: CpuTime::of_this_process().unwrap_or_default(),
            busy_poll_wasted: thalweg_engine::busy_poll_wasted(),
            spun: Duration::ZERO,
            own: None,
            at_end: None,
            intervals: Intervals::new(plan.interval, !shared.scenario.is_one_call()),
            since_ns: shared.from_ns,
            servers,
        };
        let measured = Mutex::new(measured);
        let state = State { plan: plan.clone(), shared: shared.clone(), threads, id: new_id(), measured };
        Self { state: Arc::new(state), search: None }
    }

    /// Returns the same run as part of a search.
    pub(crate) fn within(&self, search: &Arc<Search>) -> Self {
        Self { state: self.state.clone(), search: Some(search.clone()) }
    }

    /// Returns the calls now in flight.
    pub fn in_flight(&self) -> u64 {
        self.state.shared.in_flight()
    }

    /// Returns the connections that now accept calls.
    pub fn connections(&self) -> u32 {
        self.state.shared.scenario.ready_connections()
    }

    /// Returns waiting starts plus calls in flight, at half the measured time and just before its end.
    pub(crate) async fn backlogs(self) -> [u64; 2] {
        let State { plan, shared, .. } = &*self.state;
        let end_ns = plan.measured_until_ns();
        let half_ns = shared.from_ns.midpoint(end_ns);
        let mut backlogs = [0; 2];
        for (backlog, at_ns) in backlogs.iter_mut().zip([half_ns, end_ns.saturating_sub(BEFORE_END_NS)]) {
            tokio::time::sleep_until((shared.base + Duration::from_nanos(at_ns)).into()).await;
            *backlog = self.in_flight() + shared.due.as_ref().map_or(0, Due::waiting);
        }
        backlogs
    }

    /// Returns the plan of the run.
    pub fn plan(&self) -> &Plan {
        &self.state.plan
    }

    pub(crate) fn measuring_begins(&self) {
        let mut measured = self.measured();
        measured.started = self.state.plan.start_at.unwrap_or_else(SystemTime::now);
        let ClientUsage { cpu, busy_poll_wasted, spun } = self.state.client_usage();
        (measured.cpu, measured.busy_poll_wasted, measured.spun) = (cpu, busy_poll_wasted, spun);
        measured.own = Some(OwnUsage::start(&self.state.shared.scenario.targets));
        measured.servers.begin(&self.state.shared.scenario);
    }

    /// Returns the end of the measured time, if a time ends it.
    pub(crate) fn measured_until(&self) -> Option<Instant> {
        let until_ns = self.state.plan.measured_until_ns();
        (until_ns < u64::MAX).then(|| self.state.shared.base + Duration::from_nanos(until_ns))
    }

    /// Marks the end of the measured time. Later usage does not count.
    pub(crate) fn measuring_ends(&self) {
        let State { plan, shared, .. } = &*self.state;
        let at_end = self.state.client_usage();
        let mut measured = self.measured();
        measured.at_end = Some(at_end);
        if plan.counted_until_ns() < u64::MAX && !shared.scenario.lasts_to_end() {
            measured.servers.end(&shared.scenario);
        }
    }

    pub(crate) fn counters(&self) -> RunCounters {
        self.state.shared.shards.merged()
    }

    /// Returns the start of the measured time, in ns of the run's clock.
    pub(crate) fn measured_from_ns(&self) -> u64 {
        self.state.shared.from_ns
    }

    pub(crate) fn end_interval(&self) -> Interval {
        let State { plan, shared, .. } = &*self.state;
        let mut measured = self.measured();
        let now_ns = shared.now_ns();
        let since_ns = measured.since_ns;
        let place = |ns: u64| ns.min(shared.until_ns).max(since_ns) - shared.from_ns;
        let scheduled = plan.scheduled_between(since_ns - shared.from_ns, place(now_ns));
        let recent = shared.shards.take_recent();
        let end = IntervalEnd { in_flight: self.in_flight(), connections: self.connections() };
        measured.since_ns = now_ns.max(since_ns);
        measured.servers.read(&shared.scenario);
        measured.intervals.push(since_ns - shared.from_ns, &recent, scheduled, end)
    }

    /// Returns the interim result. This takes some milliseconds, during which workers may be delayed: call it from a
    /// separate thread, and not for each call.
    pub fn so_far(&self) -> LoadRun {
        LoadRun { search: self.search(), ..self.result(RunEnd::NotYet) }
    }

    /// Returns the interim result without the intervals, which make up most of it after an hour.
    pub fn totals(&self) -> LoadRun {
        LoadRun { search: self.search(), ..self.without_intervals(RunEnd::NotYet) }
    }

    pub(crate) fn result(&self, end: RunEnd) -> LoadRun {
        let run = self.without_intervals(end);
        let measured = self.measured();
        let interval_ns = measured.intervals.length().as_nanos() as u64;
        LoadRun { interval_ns, intervals: measured.intervals.all(), ..run }
    }

    fn without_intervals(&self, end: RunEnd) -> LoadRun {
        let State { plan, shared, id, .. } = &*self.state;
        let counters = shared.shards.merged();
        let RunUsage { started, measured_ns, drain_ns, cpu, cpu_of_calls, spun, busy_share, .. } =
            self.usage();
        let (ok, failed) = (counters.tally.codes().ok(), counters.tally.codes().failed());
        let dropped = shared.due.as_ref().map_or(0, Due::dropped);
        let (is_one_call, flows) = (shared.scenario.is_one_call(), counters.tally.flows);
        let unit = if is_one_call { "call" } else { "flow" };
        let delayed = shared.due.as_ref().map(Due::delayed);
        let missed_starts = MissedStarts { dropped, delayed: delayed.unwrap_or(0) };
        let by_server = shared.has_several_servers.then_some(&counters.servers);
        let (own, servers, attempts, balanced) = {
            let mut measured = self.measured();
            measured.servers.read(&shared.scenario);
            let of = &measured.servers;
            (measured.own.clone(), of.runs(by_server, ok, failed), of.attempts(), of.balanced())
        };
        let mut notes = notes(plan, &counters, unit, missed_starts, end);
        notes.extend(too_few_streams(plan, &shared.scenario, balanced));
        let calls = counters.tally.codes().ok() + counters.tally.codes().failed();
        let none = (calls == 0 && end != RunEnd::NotYet)
            .then(|| Reason::new(Cause::NotMeasured, "no call finished in the measured time"));
        let waited = match own.and_then(|own| own.kept_waiting()) {
            Some(KeptWaiting { reason, invalidates: true }) => Some(reason),
            Some(KeptWaiting { reason, invalidates: false }) => {
                notes.push(RunNote::new(reason.text));
                None
            }
            None => None,
        };
        let not_valid = none.into_iter().chain(waited).chain(client_limit(busy_share)).collect();
        // Inactive or thinking workers finish no calls.
        let is_steady = matches!(plan.pace, Pace::Closed { workers: None });
        let finishes_calls = |step: &Step| step.think.is_none() && !step.call.stream.lasts_to_end;
        if is_steady && shared.scenario.steps().all(|(_, step)| finishes_calls(step)) {
            notes.extend(outage(&counters.tally, shared.from_ns, measured_ns));
        }
        let seconds = measured_ns as f64 / 1e9;
        let per_second = |count: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
        let (schedule, spacing, workers) = match &plan.pace {
            Pace::Closed { workers } => (None, None, workers.as_ref()),
            Pace::Open { schedule, spacing, .. } => (Some(schedule), Some(*spacing), None),
        };
        let scenario = &shared.scenario;
        let tally = counters.tally;
        LoadRun {
            schema: SCHEMA.to_owned(),
            ids: id.iter().cloned().collect(),
            so_far: end == RunEnd::NotYet,
            name: plan.label.name.clone(),
            tags: plan.label.tags.clone(),
            targets: scenario.targets.clone(),
            method: scenario.name.clone(),
            kind: scenario.kind().to_owned(),
            loop_kind: if schedule.is_some() { "open" } else { "closed" }.to_owned(),
            schedule: schedule.map(ToString::to_string),
            spacing: spacing.map(|spacing| spacing.name().to_owned()),
            share: plan.share,
            in_flight: plan.in_flight,
            workers: workers.map(ToString::to_string),
            stream_for_ns: match scenario.stream_for() {
                Some(time) => Some(time.as_nanos() as u64),
                None => scenario.lasts_to_end().then_some(measured_ns),
            },
            connections: scenario.connections,
            lanes: Some(scenario.lanes),
            to_each_server: balanced > 0,
            connections_established: None,
            warmup_ns: plan.warm_up.as_nanos() as u64,
            started: humantime::format_rfc3339_millis(started).to_string(),
            ended: humantime::format_rfc3339_millis(started + Duration::from_nanos(measured_ns)).to_string(),
            duration_ns: measured_ns,
            drain_ns,
            stopped_early: matches!(end, RunEnd::TimeUp | RunEnd::ScheduleOver(_) | RunEnd::Interrupted),
            rate_per_s: per_second(ok as f64),
            scheduled_per_s: schedule.map(|_| per_second(plan.scheduled_between(0, measured_ns))),
            ok,
            failed,
            errors: tally.codes().errors(),
            flows: (!is_one_call).then_some(flows),
            late: tally.late,
            dropped,
            delayed,
            messages_sent: tally.traffic.sent,
            messages_received: tally.traffic.received,
            bytes_sent: tally.traffic.bytes_sent,
            bytes_received: tally.traffic.bytes_received,
            latency: Timing::of(&tally.latency),
            service: schedule.and_then(|_| Timing::of(&tally.service)),
            wait: schedule.and_then(|_| Timing::of(&tally.wait)),
            failed_latency: Timing::of(&tally.failed),
            first_message: Timing::of(&tally.first),
            reply: Timing::of(&tally.replies),
            flow: Timing::of(&counters.flow_times),
            steps: self.steps(&counters.steps),
            attempts,
            servers,
            interval_ns: plan.interval.as_nanos() as u64,
            intervals: Vec::new(),
            spun_ns: spun.as_nanos() as u64,
            client_cpu: cpu,
            client_cpu_per_call: (ok > 0).then(|| cpu_of_calls / ok as f64),
            machine: None,
            merged_of: None,
            conditions: Vec::new(),
            search: None,
            not_valid,
            notes,
        }
    }

    /// Returns the time and resources used so far.
    pub(crate) fn usage(&self) -> RunUsage {
        let State { plan, shared, threads, .. } = &*self.state;
        // Keep the lock short, since the end of an interval waits for it.
        let (started, before, at_end) = {
            let measured = self.measured();
            let RunMeasurements { started, cpu, busy_poll_wasted, spun, at_end, .. } = *measured;
            (started, ClientUsage { cpu, busy_poll_wasted, spun }, at_end)
        };
        let now = at_end.unwrap_or_else(|| self.state.client_usage());
        let now_ns = shared.now_ns().max(shared.from_ns);
        let measured_until_ns = now_ns.min(plan.measured_until_ns());
        let measured_ns = measured_until_ns - shared.from_ns;
        let cpu = now.cpu - before.cpu;
        let spun = now.spun.saturating_sub(before.spun);
        let busy_poll_wasted = now.busy_poll_wasted.saturating_sub(before.busy_poll_wasted);
        let cpu_of_calls = without(cpu, spun);
        let busy_ns = cpu_of_calls.user_ns + cpu_of_calls.system_ns - busy_poll_wasted.as_nanos() as f64;
        let processors =
            std::thread::available_parallelism().map_or(*threads, |count| count.get().min(*threads));
        // With no measured time the share is unknown.
        let busy_share =
            if measured_ns == 0 { 0.0 } else { busy_ns / (measured_ns as f64 * processors as f64) };
        let drain_ns = now_ns - measured_until_ns;
        RunUsage { started, measured_ns, drain_ns, cpu, cpu_of_calls, spun, busy_poll_wasted, busy_share }
    }

    fn search(&self) -> Option<Search> {
        self.search.as_deref().cloned()
    }

    fn steps(&self, counters: &[StepTally]) -> Vec<StepRun> {
        let steps = self.state.shared.scenario.steps().zip(counters);
        steps
            .map(|((flow, step), counters)| StepRun {
                flow: flow.name.clone(),
                step: step.name.clone(),
                method: step.call.method.path().trim_start_matches('/').to_owned(),
                kind: step.call.kind.name().to_owned(),
                ok: counters.codes.ok(),
                failed: counters.codes.failed(),
                errors: counters.codes.errors(),
                latency: Timing::of(&counters.latency),
            })
            .collect()
    }

    fn measured(&self) -> MutexGuard<'_, RunMeasurements> {
        self.state.measured.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Subtracts the time spent spinning on the clock, part of which is the kernel's.
fn without(cpu: CpuTime, spun: Duration) -> CpuTime {
    let (spun_ns, all_ns) = (spun.as_nanos() as f64, cpu.user_ns + cpu.system_ns);
    if all_ns <= 0.0 { cpu } else { cpu / (all_ns / (all_ns - spun_ns).max(1.0)) }
}

/// Starts that were dropped or delayed.
#[derive(Clone, Copy)]
struct MissedStarts {
    dropped: u64,
    delayed: u64,
}

/// Returns the notes for readers.
fn notes(
    plan: &Plan,
    counters: &RunCounters,
    unit: &str,
    MissedStarts { dropped, delayed }: MissedStarts,
    end: RunEnd,
) -> Vec<RunNote> {
    let mut notes = Vec::new();
    let mut note = |text: String| notes.push(RunNote::new(text));
    let RunCounters { tally, .. } = counters;
    if let Some((_, failure)) = &tally.first_failure {
        note(format!("the first failed call ended with {failure}"));
    }
    let started = tally.flows.started;
    let late_share = tally.late as f64 / started.max(1) as f64;
    if dropped > 0 || late_share > LATE_SHARE_MAX {
        // Starts wait for the server only if the limit of -c is reached.
        let who = if delayed == 0 { "the client" } else { "client or server" };
        note(format!(
            "{} of {started} {unit}s started more than 1 ms late and {dropped} did not start: {who} could not keep up \
             (latency includes the wait)",
            tally.late
        ));
    }
    if delayed > 0 {
        note(format!(
            "{} waited because {} {unit}s were in flight, the limit of -c",
            wording::counted(delayed, "start"),
            plan.in_flight
        ));
    }
    match end {
        RunEnd::NotYet => note("the run is not complete: these are interim figures".to_owned()),
        RunEnd::TimeUp => note(time_up(plan, unit)),
        RunEnd::ScheduleOver(there) => {
            let of = match plan.own_stop() {
                Stop::Calls(calls) => format!("{there} of {}", wording::counted(calls, unit)),
                Stop::After(_) | Stop::Messages(_) => wording::counted(there, unit),
            };
            note(format!("the schedule ended after {of}"));
        }
        RunEnd::Interrupted => note("the run was interrupted before its end".to_owned()),
        RunEnd::AsPlanned => {}
    }
    notes
}

/// Returns a note if streams that last to the end of the run are fewer than the servers of a balanced channel.
fn too_few_streams(plan: &Plan, scenario: &Scenario, servers: usize) -> Option<RunNote> {
    let is_few = scenario.lasts_to_end() && (plan.in_flight as usize) < servers;
    is_few.then(|| {
        let streams = wording::counted(u64::from(plan.in_flight), "stream");
        RunNote::new(format!(
            "{streams} for {servers} servers: a stream stays on its server, so use -c {servers} or more to load all"
        ))
    })
}

/// Returns a reason if the client used too large a share of its processors.
fn client_limit(busy_share: f64) -> Option<Reason> {
    (busy_share > BUSY_SHARE_MAX).then(|| {
        let percent = busy_share.min(1.0) * 100.0;
        let text = format!(
            "the client's processors were busy for {percent:.0} % of the time: the client was the limit, not the server"
        );
        Reason::new(Cause::ClientLimit, text)
    })
}

/// Returns a note on a time without a finished call. A closed loop hides it: it sends nothing meanwhile, so few
/// latencies show it.
fn outage(tally: &Tally, from_ns: u64, measured_ns: u64) -> Option<RunNote> {
    let gap_ns = tally.finishes.longest_gap_ns(&(from_ns..from_ns + measured_ns));
    if gap_ns < OUTAGE_NS_MIN || (gap_ns as f64) < measured_ns as f64 * OUTAGE_SHARE_MIN {
        return None;
    }
    // Long calls finish rarely.
    let usual_ns = tally.latency.latency().map_or(0, |latency| latency.p50);
    (gap_ns > 3 * usual_ns).then(|| {
        RunNote::new(format!(
            "no call finished for {}, {} of the run; the percentiles of a closed loop hide this, use --rps",
            figures::time(gap_ns as f64),
            figures::percent(gap_ns as f64 / measured_ns as f64)
        ))
    })
}

fn time_up(plan: &Plan, unit: &str) -> String {
    let workers = match &plan.pace {
        Pace::Closed { workers: Some(workers) } => workers.ends_after(0.5),
        _ => None,
    };
    let over = match plan.max_duration {
        Some(longest) if workers.is_none_or(|over| longest < over) => {
            format!("the time limit of {} (-x) ended the run", humantime::format_duration(longest))
        }
        _ => "the --workers schedule ended".to_owned(),
    };
    match plan.own_stop() {
        Stop::Calls(calls) => format!("{over} before all {} started", wording::counted(calls, unit)),
        Stop::After(_) => format!("{over} before all {unit}s started"),
        Stop::Messages(messages) => format!("{over} before all {}", wording::counted(messages, "message")),
    }
}
