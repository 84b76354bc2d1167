//! Decisions made before a world starts: settings, and the drivers' behaviour.

use std::time::Duration;

use thalweg_http2::{Config, FieldList, Indexing};

use crate::link::LinkPlan;
use crate::random::Random;

/// The link of a world, and its drivers.
#[derive(Clone, Debug)]
pub(super) struct WorldPlan {
    /// The directions, by writer.
    pub(super) links: [LinkPlan; 2],
    /// Client and server.
    pub(super) drivers: [DriverPlan; 2],
}

impl WorldPlan {
    pub(super) fn random(random: &mut Random) -> WorldPlan {
        let links = [LinkPlan::random(random), LinkPlan::random(random)];
        let narrowest = links.iter().map(LinkPlan::narrowest).min().unwrap_or_default();
        WorldPlan { links, drivers: [(); 2].map(|()| DriverPlan::random(random, narrowest)) }
    }
}

/// Behaviour of one driver.
#[derive(Clone, Debug)]
pub(super) struct DriverPlan {
    pub(super) config: Config,
    /// Random actions before it only finishes its streams.
    pub(super) acts: usize,
    /// Streams that it wants to open; clients only.
    pub(super) streams_wanted: usize,
    /// The longest pause between two actions.
    pub(super) pause_max: Duration,
    /// The longest body, in bytes.
    pub(super) body_max: usize,
    /// Whether it resets streams.
    pub(super) resets: bool,
    /// One action in this many drains the connection; 0: never.
    pub(super) drain_one_in: usize,
    /// One action in this many closes the connection; 0: never.
    pub(super) close_one_in: usize,
    /// Whether received bytes are released on arrival, or later.
    pub(super) releases_at_once: bool,
}

/// Maximum number of fields. Header lists beyond the peer's limit are refused, as expected.
const FIELDS_MAX: usize = 12;

impl DriverPlan {
    /// `step_max`: maximum bytes moved in one step. A narrow link gets small bodies; otherwise its world would take
    /// very long.
    pub(super) fn random(random: &mut Random, step_max: usize) -> DriverPlan {
        DriverPlan {
            config: random_config(random),
            acts: random.size(150),
            streams_wanted: random.between(1, 25),
            pause_max: Duration::from_micros(random.pick(&[0, 10, 1000, 50_000])),
            body_max: random.pick(&[0, 100, 20_000, 150_000]).min(step_max.saturating_mul(100)),
            resets: random.one_in(2),
            drain_one_in: if random.one_in(4) { random.between(1, 60) } else { 0 },
            close_one_in: if random.one_in(8) { random.between(1, 100) } else { 0 },
            releases_at_once: random.one_in(2),
        }
    }
}

/// Difficult settings: windows of a few bytes, almost no output buffer, small tables.
pub(crate) fn random_config(random: &mut Random) -> Config {
    let settings_timeout = if random.one_in(10) { 60 } else { 10_000 };
    Config::default()
        .stream_window(random.pick(&[1, 2, 5, 64, 1000, 16_384, 65_535, 65_535, 1 << 20, 1 << 20]))
        .connection_window(random.pick(&[65_535, 65_535, 65_536, 100_000, 1 << 20]))
        .buffer_budget(random.pick(&[0, 1000, 100_000, 16 << 20]))
        .max_frame_size(random.pick(&[16_384, 16_384, 16_385, 65_536, 1 << 20]))
        .header_table_size(random.pick(&[0, 64, 4096, 4096, 65_536]))
        .max_header_list_size(random.pick(&[400, 4096, 16_384, 16_384]))
        .max_concurrent_streams(random.pick(&[1, 2, 3, 8, 100]))
        .output_target(random.pick(&[1, 100, 10_000, 128 << 10]))
        .send_queue_low_water(random.pick(&[1, 1000, 32 << 10]))
        .settings_timeout(Duration::from_millis(settings_timeout))
        .drain_timeout(Duration::from_millis(random.pick(&[1, 100, 5000])))
}

/// Adds regular fields. Names and values repeat, so that tables have hits and evictions.
pub(crate) fn push_fields(random: &mut Random, list: &mut FieldList) {
    for _ in 0..random.size(FIELDS_MAX) {
        let name = format!("x-{}", random.below(12));
        let value = match random.below(8) {
            0 => "v".repeat(random.size(1500)),
            1 => String::new(),
            _ => format!("value {}", random.below(30)),
        };
        let indexing = random.pick(&[Indexing::Insert, Indexing::Insert, Indexing::Literal, Indexing::Never]);
        list.push(name.as_bytes(), value.as_bytes(), indexing);
    }
}

/// Maximum bytes to send to a peer with this window. A window of 5 bytes makes every DATA frame tiny, and the peer
/// tolerates at most 10,000 tiny frames, although it causes them.
pub(super) fn body_max(window: u32) -> usize {
    window as usize * 100
}
