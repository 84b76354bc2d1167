//! Closed loops by [`LoadSettings`], as the lab requests them from the drivers of all stacks.
//!
//! Each of a fixed number of workers has one call in flight, and starts the next when it has ended. For all kinds of
//! call the clock starts when the message is passed to the library, before it is encoded. [`CallType`] defines when it
//! ends.

mod client;
mod patience;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use prost::Message;
use thalweg::channel::ChannelBuilder;
use thalweg::metadata::MetadataMap;
use thalweg::{Channel, Method, Raw, Request};
use thalweg_engine::ChannelConfig;
use thalweg_measure::kernel::Established;
use tokio::time::MissedTickBehavior;

use crate::benchmark_calls::{self, SERVICE};
use crate::benchmark_messages::{payload, request};
use crate::call::{Call, CallKind, CallMetadata, Calls, Expected, StreamPlan};
use crate::connect::{StartError, channel_builder, connect, connect_all, first_call, lanes};
use crate::drive::run_plan;
use crate::echo::{EchoCall, EchoWork, OwnEcho, Shape};
use crate::label::Label;
use crate::observer::Observer;
use crate::plan::{NO_INTERVALS, Pace, Plan, Stop, UnfinishedCalls};
use crate::record::{
    CallType, Connections, LaneRule, LanesAt, LoadResult, LoadSettings, MethodCall, Note, RunContext,
};
use crate::requests::{Order, Requests};
use crate::run::Interval;
use crate::running::{RunEnd, Running};
use crate::scenario::{Channels, Flow, Scenario, Step};
use crate::services::PAYLOAD_BYTES_MAX;
use crate::services::proto::SimpleResponse;

pub use client::{ConductError, Conducted, Watch, conduct};
pub use patience::{Announcement, Patience};

/// Maximum payload bytes of a bidi stream that await their replies.
pub const BIDI_OUTSTANDING_BYTES: usize = 1 << 20;
/// Maximum messages of a bidi stream that await their replies. 4096 empty ones take 20 KiB on the wire.
pub const BIDI_OUTSTANDING_MESSAGES_MAX: usize = 4096;
/// Even a stream of the largest messages is pipelined.
const OUTSTANDING_MESSAGES_MIN: usize = 2;
/// Time to wait for a connection to a server whose calls have failed.
const GONE_PATIENCE: Duration = Duration::from_secs(2);
/// Interval at which the lanes of an adaptive channel are counted.
const COUNT_LANES_EVERY: Duration = Duration::from_millis(20);
/// Maximum recorded changes of the lane count.
const LANE_CHANGES_MAX: usize = 1000;
/// Reason why a run has no result.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The settings are invalid.
    #[error("{0}")]
    Settings(&'static str),
    /// The method is invalid.
    #[error("{0}")]
    Method(String),
    /// The server does not accept calls.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The bare client cannot connect.
    #[error("{target}: {why}")]
    Bare {
        /// Target as given.
        target: String,
        /// Reason.
        why: String,
    },
    /// The run cannot be made, or was aborted.
    #[error(transparent)]
    Run(#[from] crate::drive::DriveError),
    /// The run was interrupted before measuring began.
    #[error("interrupted before measuring began")]
    Interrupted,
}

/// Drives `settings.target` by `settings`, until time, count or `interrupt` ends the run.
///
/// It runs on the caller's tokio runtime. `settings.cpus` is only recorded; the caller does the pinning. One call is
/// made before the warm-up, so that a missing server or service is an error and not a run of failures. `set_up`
/// configures the channel beyond the settings, such as TLS. `announce` is called with [`Announcement::Measuring`] and
/// [`Announcement::Measured`] on the driving thread, and must be quick.
///
/// # Errors
///
/// If there is no result: see [`DriveError`]. Failed calls are part of the result.
pub async fn drive(
    settings: &LoadSettings,
    own: Option<&OwnEcho>,
    set_up: impl Fn(ChannelBuilder) -> ChannelBuilder,
    patience: Patience,
    interrupt: impl Future<Output = ()>,
    announce: impl FnMut(Announcement),
) -> Result<LoadResult, DriveError> {
    let size = check_settings(settings, own)?;
    let mut interrupt = std::pin::pin!(interrupt);
    let before = Established::now();
    let ready = async {
        let builder = set_up(builder(settings, patience));
        let echo = settings.echo.map(|work| echo(work, own, settings, patience)).transpose()?.map(Arc::new);
        let channels = if echo.is_some() {
            // The echo call has its own connections.
            vec![builder.clone().connect_lazy().map_err(StartError::Target)?]
        } else {
            let (lanes, connections) = (settings.lanes, settings.connections);
            connect_all(&builder, &settings.target, lanes, connections, patience.connect).await?
        };
        let call = call(settings, size, echo.as_ref())?;
        let began = Instant::now();
        try_out(&call, &channels[0], settings, patience).await?;
        Ok::<_, DriveError>((scenario(settings, channels, builder, call), echo, began.elapsed()))
    };
    // The channels stay open until their connections have been counted.
    let (scenario, echo, first_took) = tokio::select! {
        ready = ready => ready?,
        () = &mut interrupt => return Err(DriveError::Interrupted),
    };
    let scenario = Arc::new(scenario);

    let mut plan = plan(settings, patience);
    if let Some(warm_up) = warm_up(settings, &plan) {
        plan.warm_up = Duration::ZERO;
        if run_plan(&warm_up, &scenario, interrupt.as_mut(), &mut ()).await?.1 == RunEnd::Interrupted {
            return Err(DriveError::Interrupted);
        }
    }
    let mut lanes = LaneSampler::begin(settings, &scenario, plan.warm_up);
    let mut observer = AnnouncingObserver(announce);
    let (running, end) = {
        let mut run = std::pin::pin!(run_plan(&plan, &scenario, interrupt, &mut observer));
        loop {
            tokio::select! {
                ended = &mut run => break ended?,
                () = lanes.sample() => {}
            }
        }
    };
    let mut result = result(settings, &running, end).ok_or(DriveError::Interrupted)?;
    result.lanes = lanes.samples;
    if let Some(echo) = &echo {
        (result.bytes_sent, result.bytes_received) = echo.body_bytes(result.messages);
        result.first_call_ns = u64::try_from(first_took.as_nanos()).ok();
    }
    result.connections.established = Established::now().since(before);
    note_connections(&mut result);
    if result.error_count() > 0
        && settings.echo.is_none()
        && let Err(reason) = check_reachable(set_up(builder(settings, patience)), settings, patience).await
    {
        // Figures up to the server's exit do not measure it.
        note(&mut result, format!("the server was not reachable at the end: {reason}"), true);
    }
    Ok(result)
}

/// Returns the result of a run, or `None` if it was interrupted before measuring began.
fn result(settings: &LoadSettings, running: &Running, end: RunEnd) -> Option<LoadResult> {
    let (usage, counters) = (running.usage(), running.counters());
    if end == RunEnd::Interrupted && usage.measured_ns == 0 {
        return None;
    }
    let mut result = LoadResult::of(
        &counters.tally,
        RunContext {
            settings: settings.clone(),
            started: usage.started,
            duration: Duration::from_nanos(usage.measured_ns),
            from_ns: running.measured_from_ns(),
            client_cpu: usage.cpu,
            connections: Connections { asked: settings.connections, established: None },
            notes: Vec::new(),
        },
    );
    let (sent, received) = settings.call.payloads();
    let payload_bytes = result.messages * settings.size_bytes;
    (result.bytes_sent, result.bytes_received) = (payload_bytes * sent, payload_bytes * received);
    result.busy_poll_wasted_ns = usage.busy_poll_wasted.as_nanos() as u64;
    result.drain_ns = usage.drain_ns;
    if let Some((_, failure)) = &counters.tally.first_failure {
        note(&mut result, format!("the first failed call ended with {failure}"), false);
    }
    if let Some(reason) = usage.client_limit() {
        note(&mut result, reason.text, true);
    }
    if end == RunEnd::Interrupted {
        note(&mut result, "the run was interrupted before its end".to_owned(), false);
    }
    Some(result)
}

/// Adds a note if the kernel's number of connections differs from the requested one.
fn note_connections(result: &mut LoadResult) {
    let Connections { asked, established } = result.connections;
    match established {
        Some(_) if result.settings.lanes != LaneRule::Fixed => {}
        Some(established) if established != asked => {
            note(result, format!("connections: {asked} requested, {established} established"), false);
        }
        Some(_) => {}
        None => note(result, "failed to read the number of connections from the kernel".to_owned(), false),
    }
}

fn note(result: &mut LoadResult, text: String, invalidates: bool) {
    result.notes.push(Note { text, invalidates });
}

/// Announces the start and end of the measured time.
struct AnnouncingObserver<A>(A);

impl<A: FnMut(Announcement)> Observer for AnnouncingObserver<A> {
    fn begins(&mut self, _: &Running) {}

    fn measuring(&mut self) {
        self.0(Announcement::Measuring);
    }

    fn measured(&mut self) {
        self.0(Announcement::Measured);
    }

    fn interval(&mut self, _: &Interval, _: &Running) {}
}

/// Lane counts of an adaptive channel over time.
struct LaneSampler {
    scenario: Option<Arc<Scenario>>,
    measured_from: Instant,
    ticks: tokio::time::Interval,
    samples: Vec<LanesAt>,
}

impl LaneSampler {
    fn begin(settings: &LoadSettings, scenario: &Arc<Scenario>, warm_up: Duration) -> Self {
        let scenario = (settings.lanes == LaneRule::Adaptive).then(|| scenario.clone());
        let mut ticks = tokio::time::interval(COUNT_LANES_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { scenario, measured_from: Instant::now() + warm_up, ticks, samples: Vec::new() }
    }

    /// Counts the lanes at the next tick. Never returns if there is nothing to count.
    async fn sample(&mut self) {
        let Some(scenario) = &self.scenario else { return std::future::pending().await };
        self.ticks.tick().await;
        let lanes = scenario.ready_connections();
        let is_new = self.samples.last().is_none_or(|last| last.lanes != lanes);
        if is_new && self.samples.len() < LANE_CHANGES_MAX {
            let now = Instant::now();
            let [since, until] = [now - self.measured_from, self.measured_from - now];
            let at_ns = since.as_nanos().cast_signed() as i64 - until.as_nanos().cast_signed() as i64;
            self.samples.push(LanesAt { at_ns, lanes });
        }
    }
}

/// Returns the plan for `settings`.
fn plan(settings: &LoadSettings, patience: Patience) -> Plan {
    let stop = match (settings.total, settings.duration_ns, settings.call) {
        (Some(total), _, CallType::Unary) => Stop::Calls(total),
        (Some(total), ..) => Stop::Messages(total),
        (None, duration_ns, _) => Stop::After(Duration::from_nanos(duration_ns.unwrap_or(0))),
    };
    Plan {
        pace: Pace::Closed { workers: None },
        in_flight: settings.in_flight,
        stop,
        max_duration: None,
        // The arrival of a client stream's messages cannot be seen: they count with the time until the stream's
        // response.
        unfinished_calls: if settings.call == CallType::ClientStream {
            UnfinishedCalls::Wait
        } else {
            UnfinishedCalls::ByLoop
        },
        patience: Some(patience.call),
        warm_up: Duration::from_nanos(settings.warmup_ns),
        interval: NO_INTERVALS,
        share: None,
        start_at: None,
        label: Label::default(),
    }
}

/// Returns the warm-up of client streams, a run with its own streams. Messages passed on but not read yet would
/// otherwise be processed in the measured time without counting.
fn warm_up(settings: &LoadSettings, plan: &Plan) -> Option<Plan> {
    let is_apart = settings.call == CallType::ClientStream && settings.warmup_ns > 0;
    is_apart.then(|| Plan { warm_up: Duration::ZERO, stop: Stop::After(plan.warm_up), ..plan.clone() })
}

/// Returns the call that `settings` describe.
fn call(settings: &LoadSettings, size: usize, echo: Option<&Arc<EchoCall>>) -> Result<Call, DriveError> {
    let kind = benchmark_calls::kind(settings.call);
    let path = match &settings.method {
        Some(called) => called.path.clone(),
        None => format!("/{SERVICE}/{}", benchmark_calls::method(settings.call)),
    };
    let calls = match (echo, &settings.method) {
        (Some(echo), _) => Calls::Echo(echo.clone()),
        (None, Some(MethodCall { request, .. })) => {
            Calls::Bytes(Requests::new(vec![Bytes::from(request.clone())], Order::InTurn, None))
        }
        (None, None) => benchmark_calls::calls(kind, size, settings.message_ownership, u64::MAX),
    };
    let outstanding = (kind == CallKind::BidiStream).then(|| window(settings.call, size));
    Ok(Call {
        method: Method::from_path(&path).map_err(|error| DriveError::Method(error.to_string()))?,
        kind,
        metadata: CallMetadata::Constant(MetadataMap::default()),
        options: benchmark_calls::options(),
        calls,
        stream: StreamPlan {
            outstanding,
            lasts_to_end: kind != CallKind::Unary,
            counts_at_response: true,
            ..StreamPlan::default()
        },
        expects: Expected::default(),
    })
}

/// Returns the number of messages with payloads of `size` bytes that may await their replies on a stream.
pub fn window(kind: CallType, size: usize) -> u64 {
    if kind == CallType::PingPong {
        return 1;
    }
    let fitting = BIDI_OUTSTANDING_BYTES / size.max(1);
    fitting.clamp(OUTSTANDING_MESSAGES_MIN, BIDI_OUTSTANDING_MESSAGES_MAX) as u64
}

fn scenario(
    settings: &LoadSettings,
    channels: Vec<Channel>,
    builder: ChannelBuilder,
    call: Call,
) -> Scenario {
    let channels = match settings.lanes {
        LaneRule::PerCall => Channels::PerCall(vec![builder]),
        LaneRule::Fixed | LaneRule::Adaptive => Channels::Shared(vec![channels]),
    };
    let name = call.method.path().trim_start_matches('/').to_owned();
    let step = Step { name: name.clone(), call, think: None };
    Scenario {
        name: name.clone(),
        // The lab checks the targets of its drivers itself.
        targets: Vec::new(),
        connections: settings.connections,
        lanes: settings.lanes,
        channels,
        flows: vec![Flow { name, weight: 1, steps: vec![step] }],
        seed: 0,
    }
}

/// Checks that the server still accepts connections after calls have failed.
async fn check_reachable(
    builder: ChannelBuilder,
    settings: &LoadSettings,
    patience: Patience,
) -> Result<(), String> {
    let patience = Patience { connect: patience.connect.min(GONE_PATIENCE), ..patience };
    let builder = builder.connect_timeout(patience.connect);
    let connected = connect(builder, &settings.target, patience.connect).await;
    connected.map(drop).map_err(|error| error.to_string())
}

/// Checks the settings and returns the payload's size.
fn check_settings(settings: &LoadSettings, own: Option<&OwnEcho>) -> Result<usize, DriveError> {
    let is_own = settings.echo.is_some_and(|work| work.shape == Shape::Own);
    if is_own != own.is_some() {
        return Err(DriveError::Settings(
            "--echo own needs the messages to send; other --echo values do not accept them",
        ));
    }
    if settings.in_flight == 0 || settings.connections == 0 {
        return Err(DriveError::Settings("calls in flight and connections must each be at least 1"));
    }
    if settings.method.is_some() && settings.call != CallType::Unary {
        return Err(DriveError::Settings("--method supports unary calls only"));
    }
    if let Some(work) = settings.echo {
        if settings.method.is_some() || settings.call != CallType::Unary || settings.size_bytes > 0 {
            return Err(DriveError::Settings("--echo cannot be used with --call, --method or --size"));
        }
        if work.protocol.is_http1() && settings.connections != settings.in_flight {
            return Err(DriveError::Settings(
                "HTTP/1.1 has one call per connection at a time; set -c and --connections to the same value",
            ));
        }
    }
    if settings.connections > settings.in_flight {
        return Err(DriveError::Settings("-c is less than --connections"));
    }
    if settings.duration_ns.is_some() == settings.total.is_some() {
        return Err(DriveError::Settings("exactly one of -z (duration) and -n (total calls) must be set"));
    }
    usize::try_from(settings.size_bytes)
        .ok()
        .filter(|&size| size <= PAYLOAD_BYTES_MAX)
        .ok_or(DriveError::Settings("a payload can be at most 64 MiB"))
}

/// Returns path and message of the unary method in `settings`, and the size of a response's message if it is known.
pub(crate) fn prepared_call(settings: &LoadSettings) -> Result<(String, Vec<u8>, Option<usize>), DriveError> {
    if let Some(called) = &settings.method {
        return Ok((called.path.clone(), called.request.clone(), None));
    }
    let size = check_settings(&LoadSettings { connections: 1, ..settings.clone() }, None)?;
    let response = SimpleResponse { payload: payload(size), ..SimpleResponse::default() };
    let path = format!("/{SERVICE}/{}", benchmark_calls::method(CallType::Unary));
    Ok((path, request(size, size).encode_to_vec(), Some(response.encoded_len())))
}

fn echo(
    work: EchoWork,
    own: Option<&OwnEcho>,
    settings: &LoadSettings,
    patience: Patience,
) -> Result<EchoCall, DriveError> {
    let mut channel = ChannelConfig::default();
    channel.connect_timeout = patience.connect;
    channel.busy_poll = settings.busy_poll_ns.map(Duration::from_nanos);
    channel.lanes = lanes(settings.lanes, settings.connections);
    Ok(EchoCall::new(work, own, &settings.target, channel).map_err(StartError::Target)?)
}

fn builder(settings: &LoadSettings, patience: Patience) -> ChannelBuilder {
    let mut builder = channel_builder(&settings.target).connect_timeout(patience.connect);
    if let Some(busy_poll_ns) = settings.busy_poll_ns {
        builder = builder.busy_poll(Duration::from_nanos(busy_poll_ns));
    }
    builder.lanes(lanes(settings.lanes, settings.connections))
}

/// Makes one unary call, of the run's method or with payloads of its size.
async fn try_out(
    call: &Call,
    channel: &Channel,
    settings: &LoadSettings,
    patience: Patience,
) -> Result<(), StartError> {
    let (target, patience) = (settings.target.as_str(), patience.call);
    match (&call.calls, settings.echo) {
        (Calls::Echo(echo), Some(work)) => {
            let name = format!("{} by {}", work.shape, work.protocol);
            first_call(target, name, patience, echo.first()).await
        }
        (Calls::Bytes(_), _) => {
            let request = settings.method.as_ref().map(|called| called.request.clone()).unwrap_or_default();
            let name = call.method.path().trim_start_matches('/').to_owned();
            let called = async {
                let request = Request::new(Raw(request.into()));
                channel.unary::<Raw, Raw>(&call.method, request, &call.options).await.map(drop)
            };
            first_call(target, name, patience, called).await
        }
        _ => benchmark_calls::try_out(target, channel, settings.size_bytes as usize, patience).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_is_bounded_in_bytes_and_in_messages() {
        let check = |size: usize, expected: u64| {
            assert_eq!(window(CallType::BidiStream, size), expected, "{size} bytes");
            assert_eq!(window(CallType::PingPong, size), 1, "{size} bytes");
        };
        check(0, 4096);
        check(256, 4096);
        check(1024, 1024);
        check(64 << 10, 16);
        check(1 << 20, 2);
        check(4 << 20, 2);
    }
}
