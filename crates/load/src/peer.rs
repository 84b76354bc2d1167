//! Driving a server in a closed loop: each of a fixed number of workers has one call under way, and begins the next
//! when it has ended.
//!
//! All four kinds of call start their clocks at the same place: where the message is handed to the library, before it
//! is encoded. What [`CallType`] says ends them.

mod bidi;
mod call;
mod patience;
mod run;
mod stride;
mod supervise;
mod worker;

use std::sync::Arc;
use std::time::{Duration, Instant};

use prost::Message;
use thalweg::channel::{ChannelBuilder, ConnectError, Lanes};
use thalweg::{Channel, Method, Status};
use thalweg_engine::ChannelConfig;
use thalweg_measure::kernel::Established;

use crate::echo::{EchoCall, EchoWork, OwnEcho, Shape};
use crate::record::{CallType, LaneRule, LoadResult, LoadSettings, MethodCall};
use crate::services::PAYLOAD_BYTES_MAX;
use crate::services::proto::SimpleResponse;
use call::{Call, RawMethod, client};

pub use bidi::{BIDI_OUTSTANDING_BYTES, BIDI_OUTSTANDING_MESSAGES_MAX, window};
pub use call::{payload, request};
pub use patience::{Announcement, Patience};

/// How long a server is looked for whose calls have failed.
const GONE_PATIENCE: Duration = Duration::from_secs(2);
/// Connections that a channel can have; of more there are several channels.
const OF_A_CHANNEL_MAX: u32 = 1024;
/// What the first call calls, if no other method is asked for.
const FIRST_METHOD: &str = "grpc.testing.BenchmarkService/UnaryCall";

/// Why there is nothing to report.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The settings make no run.
    #[error("{0}")]
    Settings(&'static str),
    /// The method cannot be read.
    #[error("{0}")]
    Method(String),
    /// The target cannot be read.
    #[error(transparent)]
    Target(ConnectError),
    /// Nothing to measure is there.
    #[error(transparent)]
    Connect(ConnectError),
    /// Something is there, and it does not say what it is.
    #[error("{target} did not answer as an HTTP/2 server within {patience:?}")]
    Silent {
        /// As it was given.
        target: String,
        /// How long it was waited for.
        patience: Duration,
    },
    /// The bare client's connections do not come about.
    #[error("{target}: {why}")]
    Bare {
        /// As it was given.
        target: String,
        /// What is wrong.
        why: String,
    },
    /// The first call, made before anything is measured, failed.
    #[error(
        "{target}: the first call, {method}, ended with {}",
        run::described(.status)
    )]
    FirstCall {
        /// As it was given.
        target: String,
        /// `package.Service/Method`.
        method: String,
        /// How the call ended.
        status: Status,
    },
    /// The interrupt came before measuring had begun.
    #[error("interrupted before measuring began")]
    Interrupted,
}

/// Drives `settings.target` as `settings` say, until time or count end the run or `interrupt` comes.
///
/// It runs on the caller's tokio runtime; `settings.cpus` is for the record, pinning is the caller's. One call is made
/// before the warm-up, so that a server that is not there or not this service is an error and not a run of failures.
/// `set_up` adds to the channel what the settings do not say, such as TLS. `announce` is told both [`Announcement`]s
/// when they come, on the thread that drives: it must not take long.
///
/// # Errors
///
/// When there is nothing to report: see [`DriveError`]. Failed calls are in the result.
pub async fn drive(
    settings: &LoadSettings,
    own: Option<&OwnEcho>,
    set_up: impl Fn(ChannelBuilder) -> ChannelBuilder,
    patience: Patience,
    interrupt: impl Future<Output = ()>,
    announce: impl FnMut(Announcement),
) -> Result<LoadResult, DriveError> {
    let size = checked(settings, own)?;
    let mut interrupt = std::pin::pin!(interrupt);
    let before = Established::now();

    let method = settings.method.as_ref().map(raw_method).transpose()?.map(Arc::new);
    let ready = async {
        let builder = set_up(builder(settings, patience));
        let echo = settings.echo.map(|work| echo(work, own, settings, patience)).transpose()?;
        let echo = echo.map(Arc::new);
        let (channel, others) = match &echo {
            // It has connections of its own.
            Some(_) => (builder.clone().connect_lazy().map_err(DriveError::Target)?, Vec::new()),
            None => connect_all(&builder, settings, patience).await?,
        };
        let others = others.into();
        let afresh = (settings.lanes == LaneRule::PerCall).then_some(builder);
        let (client, kind, handing) = (client(&channel), settings.call, settings.handing);
        let call = Call { channel, others, client, kind, size, afresh, method, echo, handing };
        let began = Instant::now();
        first_call(&call, settings, patience).await?;
        Ok((call, began.elapsed()))
    };
    // The channel stays open until its connections have been counted.
    let (call, first_took) = tokio::select! {
        ready = ready => ready?,
        () = &mut interrupt => return Err(DriveError::Interrupted),
    };

    let mut measured = settings.clone();
    if let Some(warm_up) = warm_up(settings) {
        measured.warmup_ns = 0;
        let ended = supervise::supervise(&warm_up, call.clone(), patience, interrupt.as_mut(), |_| ()).await;
        if ended.is_none_or(|ended| ended.was_interrupted) {
            return Err(DriveError::Interrupted);
        }
    }
    let supervised = supervise::supervise(&measured, call.clone(), patience, interrupt, announce).await;
    let mut result = supervised.ok_or(DriveError::Interrupted)?.result;
    result.settings = settings.clone();
    if let Some(echo) = &call.echo {
        (result.bytes_sent, result.bytes_received) = echo.body_bytes(result.messages);
        result.first_call_ns = u64::try_from(first_took.as_nanos()).ok();
    }
    result.connections.established = Established::now().since(before);
    supervise::note_connections(&mut result);
    if result.error_count() > 0
        && settings.echo.is_none()
        && let Err(reason) = still_there(set_up(builder(settings, patience)), settings, patience).await
    {
        supervise::note_server_gone(&mut result, &reason);
    }
    Ok(result)
}

/// The run that warms client streams up. They share no stream with what is measured: what a warm-up has handed over and
/// nobody has read yet would have to be worked off in the measured time, and would not count.
fn warm_up(settings: &LoadSettings) -> Option<LoadSettings> {
    let is_apart = settings.call == CallType::ClientStream && settings.warmup_ns > 0;
    is_apart.then(|| LoadSettings {
        warmup_ns: 0,
        duration_ns: Some(settings.warmup_ns),
        total: None,
        ..settings.clone()
    })
}

/// Whether a server still answers where calls have failed.
async fn still_there(
    builder: ChannelBuilder,
    settings: &LoadSettings,
    patience: Patience,
) -> Result<(), String> {
    let patience = Patience { connect: patience.connect.min(GONE_PATIENCE), ..patience };
    let builder = builder.connect_timeout(patience.connect);
    let connected = connect(builder, settings, patience).await;
    connected.map(drop).map_err(|error| error.to_string())
}

/// The payload's size, when the settings make sense.
fn checked(settings: &LoadSettings, own: Option<&OwnEcho>) -> Result<usize, DriveError> {
    let is_own = settings.echo.is_some_and(|work| work.shape == Shape::Own);
    if is_own != own.is_some() {
        return Err(DriveError::Settings(
            "--echo own needs the messages to send, and no other --echo takes them",
        ));
    }
    if settings.in_flight == 0 || settings.connections == 0 {
        return Err(DriveError::Settings("calls in flight and connections must each be at least 1"));
    }
    if settings.method.is_some() && settings.call != CallType::Unary {
        return Err(DriveError::Settings("--method takes unary calls only"));
    }
    if let Some(work) = settings.echo {
        if settings.method.is_some() || settings.call != CallType::Unary || settings.size_bytes > 0 {
            return Err(DriveError::Settings("--echo cannot be used with --call, --method or --size"));
        }
        if work.protocol.is_http1() && settings.connections != settings.in_flight {
            return Err(DriveError::Settings(
                "HTTP/1.1 carries one call per connection at a time: -c and --connections must be equal",
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

/// The path of the unary method that `settings` call, its message, and the bytes of an answer's message where these are
/// known.
pub(crate) fn prepared_call(settings: &LoadSettings) -> Result<(String, Vec<u8>, Option<usize>), DriveError> {
    if let Some(called) = &settings.method {
        return Ok((called.path.clone(), called.request.clone(), None));
    }
    let size = checked(&LoadSettings { connections: 1, ..settings.clone() }, None)?;
    let answer = SimpleResponse { payload: call::payload(size), ..SimpleResponse::default() };
    let path = format!("/{FIRST_METHOD}");
    Ok((path, call::request(size, size).encode_to_vec(), Some(answer.encoded_len())))
}

fn raw_method(called: &MethodCall) -> Result<RawMethod, DriveError> {
    let method = Method::from_path(&called.path).map_err(|error| DriveError::Method(error.to_string()))?;
    Ok(RawMethod { method, request: called.request.clone().into() })
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
    channel.lanes = match settings.lanes {
        LaneRule::Fixed => Lanes::fixed(settings.connections as usize),
        LaneRule::Adaptive => Lanes::adaptive(),
        LaneRule::PerCall => Lanes::fixed(1),
    };
    EchoCall::new(work, own, &settings.target, channel).map_err(DriveError::Target)
}

fn builder(settings: &LoadSettings, patience: Patience) -> ChannelBuilder {
    let mut builder = Channel::builder(&settings.target).connect_timeout(patience.connect);
    if let Some(busy_poll_ns) = settings.busy_poll_ns {
        builder = builder.busy_poll(Duration::from_nanos(busy_poll_ns));
    }
    match settings.lanes {
        LaneRule::Fixed => builder.lanes(Lanes::fixed(settings.connections as usize)),
        LaneRule::Adaptive => builder.lanes(Lanes::adaptive()),
        LaneRule::PerCall => builder.lanes(Lanes::fixed(1)),
    }
}

/// The channels that have the run's connections between them: the first, and where one cannot have all, others.
async fn connect_all(
    builder: &ChannelBuilder,
    settings: &LoadSettings,
    patience: Patience,
) -> Result<(Channel, Vec<Channel>), DriveError> {
    if settings.lanes != LaneRule::Fixed {
        return Ok((connect(builder.clone(), settings, patience).await?, Vec::new()));
    }
    let of_channel = |lanes: u32| builder.clone().lanes(Lanes::fixed(lanes as usize));
    let mut shares = shares(settings.connections);
    let first = connect(of_channel(shares.next().unwrap_or(1)), settings, patience).await?;
    let mut others = Vec::new();
    for lanes in shares {
        others.push(connect(of_channel(lanes), settings, patience).await?);
    }
    Ok((first, others))
}

/// How many connections each of the channels has that have so many between them: one channel, unless these are more
/// than it can have.
pub fn shares(connections: u32) -> impl Iterator<Item = u32> {
    let channels = connections.div_ceil(OF_A_CHANNEL_MAX).max(1);
    (0..channels).map(move |index| connections / channels + u32::from(index < connections % channels))
}

async fn connect(
    builder: ChannelBuilder,
    settings: &LoadSettings,
    patience: Patience,
) -> Result<Channel, DriveError> {
    match tokio::time::timeout(patience.connect, builder.connect()).await {
        Ok(Ok(channel)) => Ok(channel),
        Ok(Err(error @ ConnectError::Unavailable(_))) => Err(DriveError::Connect(error)),
        Ok(Err(error)) => Err(DriveError::Target(error)),
        Err(_) => Err(DriveError::Silent { target: settings.target.clone(), patience: patience.connect }),
    }
}

/// One unary call, of the run's method or with payloads of its size.
async fn first_call(call: &Call, settings: &LoadSettings, patience: Patience) -> Result<(), DriveError> {
    let method = match (&settings.method, settings.echo) {
        (Some(called), _) => called.path.trim_start_matches('/').to_owned(),
        (None, Some(work)) => format!("{} by {}", work.shape, work.protocol),
        (None, None) => FIRST_METHOD.to_owned(),
    };
    let failed =
        |status| DriveError::FirstCall { target: settings.target.clone(), method: method.clone(), status };
    match tokio::time::timeout(patience.call, call.first()).await {
        Ok(called) => called.map_err(failed),
        Err(_) => Err(failed(Status::deadline_exceeded(format!("no response within {:?}", patience.call)))),
    }
}
