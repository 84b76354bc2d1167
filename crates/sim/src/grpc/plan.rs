//! Decisions made before a world starts, and the plan of a call, which both ends derive from its seed.

use std::time::Duration;

use thalweg::{Code, http2};

use crate::http2::random_config;
use crate::link::LinkPlan;
use crate::random::Random;

/// The settings of a world.
#[derive(Clone, Debug)]
pub(super) struct WorldPlan {
    pub(super) client: http2::Config,
    pub(super) server: http2::Config,
    pub(super) links: [LinkPlan; 2],
    pub(super) lanes: usize,
    pub(super) calls: usize,
    /// Calls start within this time.
    pub(super) calls_within: Duration,
    /// Whether connections break after some time.
    pub(super) cuts: bool,
    /// Times when the server stops and starts again.
    pub(super) restarts: Vec<Duration>,
    pub(super) shutdown_grace: Duration,
    /// Maximum message length in bytes.
    pub(super) message_max: usize,
    /// Whether the server compresses for clients that accept it.
    pub(super) compresses: bool,
    /// Whether connections process accumulated input in slices.
    pub(super) slices: bool,
}

/// Maximum message length of all worlds, in bytes.
const MESSAGE_MAX: usize = 200_000;

impl WorldPlan {
    pub(super) fn random(random: &mut Random) -> WorldPlan {
        let links = [LinkPlan::random(random), LinkPlan::random(random)];
        let narrowest = links[0].narrowest().min(links[1].narrowest());
        let (client, server) = (config(random), config(random));
        // Many messages through a window of a few bytes would be many tiny frames, or take very long.
        let window = client.stream_window.min(server.stream_window) as usize;
        let message_max = random.pick(&[100, 5000, 40_000, MESSAGE_MAX, MESSAGE_MAX]);
        let restarts = if random.one_in(4) { random.between(1, 2) } else { 0 };
        let mut restart_at = Duration::ZERO;
        let mut next_restart = |random: &mut Random| {
            restart_at += millis(random, 4000);
            restart_at
        };
        WorldPlan {
            client,
            server,
            links,
            lanes: random.between(1, 3),
            calls: random.between(1, 30),
            calls_within: millis(random, 3000),
            cuts: random.one_in(4),
            restarts: (0..restarts).map(|_| next_restart(random)).collect(),
            shutdown_grace: millis(random, 5000),
            compresses: random.one_in(4),
            slices: random.one_in(2),
            message_max: message_max.min(narrowest.saturating_mul(100)).min(window * 50),
        }
    }
}

fn millis(random: &mut Random, max: usize) -> Duration {
    Duration::from_millis(random.size(max) as u64)
}

fn config(random: &mut Random) -> http2::Config {
    let config = random_config(random);
    let stream_window = if random.one_in(2) { config.stream_window.max(5) } else { 1 << 20 };
    let max_header_list_size = config.max_header_list_size.max(4096);
    config
        .stream_window(stream_window)
        .max_header_list_size(max_header_list_size)
        .settings_timeout(Duration::from_secs(24 * 3600))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Unary,
    ClientStreaming,
    ServerStreaming,
    Bidi,
}

/// How the handler ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Ok,
    Fail(Code),
    Panic,
    /// Never: the call is ended by its caller, a deadline, or the end of the server.
    Never,
}

/// One call, as known to both ends.
#[derive(Clone, Debug)]
pub(super) struct CallPlan {
    pub(super) seed: u64,
    pub(super) kind: Kind,
    /// Lengths of the messages.
    pub(super) requests: Vec<usize>,
    pub(super) responses: Vec<usize>,
    /// Pauses before a message; mostly zero.
    pub(super) request_pause: Duration,
    pub(super) response_pause: Duration,
    /// Requests that the handler reads first; it reads the rest while responding, or never.
    pub(super) reads: usize,
    pub(super) ending: Ending,
    pub(super) start: Duration,
    pub(super) deadline: Option<Duration>,
    /// Time after which the caller drops the call.
    pub(super) drop_after: Option<Duration>,
    /// Number of responses after which the caller drops the call.
    pub(super) responses_max: usize,
    pub(super) wait_for_ready: bool,
    /// Whether the caller compresses.
    pub(super) compresses: bool,
}

/// Codes of failing handlers; the transport never sets these itself.
const FAILURES: [Code; 3] = [Code::NotFound, Code::DataLoss, Code::AlreadyExists];

impl CallPlan {
    /// Returns the same plan for the same seed, on both ends.
    pub(super) fn new(seed: u64, world: &WorldPlan) -> CallPlan {
        let random = &mut Random::new(seed);
        let kind = random.pick(&[Kind::Unary, Kind::ClientStreaming, Kind::ServerStreaming, Kind::Bidi]);
        let messages = |random: &mut Random, streams: bool| -> Vec<usize> {
            let count = if streams { random.size(20) } else { 1 };
            // The more messages, the smaller they are.
            let max = world.message_max / (count / 4).max(1);
            (0..count).map(|_| if random.one_in(4) { max } else { random.size(max) }).collect()
        };
        let requests = messages(random, matches!(kind, Kind::ClientStreaming | Kind::Bidi));
        let responses = messages(random, matches!(kind, Kind::ServerStreaming | Kind::Bidi));
        let ending = match random.below(12) {
            0 => Ending::Fail(random.pick(&FAILURES)),
            1 => Ending::Panic,
            2 => Ending::Never,
            _ => Ending::Ok,
        };
        let mut deadline = random.one_in(5).then(|| millis(random, 5000));
        let drop_after = random.one_in(6).then(|| millis(random, 5000));
        if ending == Ending::Never && drop_after.is_none() {
            deadline = deadline.or(Some(Duration::from_secs(7)));
        }
        CallPlan {
            seed,
            kind,
            reads: if random.one_in(3) { random.below(requests.len() + 1) } else { requests.len() },
            responses_max: if random.one_in(10) { random.below(20) } else { usize::MAX },
            requests,
            responses,
            request_pause: pause(random),
            response_pause: pause(random),
            ending,
            start: Duration::from_millis(random.below(world.calls_within.as_millis() as usize + 1) as u64),
            deadline,
            drop_after,
            wait_for_ready: random.one_in(2),
            compresses: random.one_in(5),
        }
    }
}

fn pause(random: &mut Random) -> Duration {
    if random.one_in(2) { Duration::ZERO } else { millis(random, 200) }
}
