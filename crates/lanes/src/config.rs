//! Parameters of the policy.

/// Bounds and thresholds of [`Policy`](super::Policy), with units in the names. The crate's documentation explains
/// them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolicyConfig {
    /// Minimum number of lanes, at least one.
    pub floor: usize,
    /// Maximum number of lanes, at least the floor.
    pub cap: usize,
    /// Interval between samples.
    pub tick_ms: u64,

    /// Minimum gain, as a logarithm, for keeping more lanes.
    pub gain_min: f64,
    /// Maximum loss, as a logarithm, for keeping fewer lanes.
    pub loss_max: f64,
    /// Weight of a gain in latency relative to one in rate.
    pub latency_weight: f64,

    /// Minimum share of a call's time outside the network for trying more lanes.
    pub late_share_min: f64,
    /// The same with few calls in flight.
    pub late_share_few_min: f64,
    /// The same for trying more lanes again after twice as many did not help.
    pub late_share_far_min: f64,
    /// Maximum number of calls that counts as few.
    pub few_calls_max: usize,
    /// Minimum share of time that a driver is busy, as a reason for a trial.
    pub busy_share_min: f64,
    /// Minimum share of a call's time spent waiting to be written, as a reason for a trial.
    pub write_share_min: f64,
    /// Minimum share of calls that found the lane's lock taken, as a reason for a trial.
    pub contended_share_min: f64,
    /// Minimum share of time in which flow control held back data, as a reason for a trial.
    pub flow_share_min: f64,

    /// Minimum ticks of a comparison.
    pub ticks_min: usize,
    /// Maximum ticks of a trial of more lanes.
    pub up_ticks_max: usize,
    /// Maximum ticks of a trial of fewer lanes.
    pub down_ticks_max: usize,
    /// Maximum ticks kept of a steady load.
    pub steady_ticks_max: usize,
    /// Standard errors that make a difference significant.
    pub sigmas: f64,
    /// Maximum relative standard error of a rate that others are compared with.
    pub error_max: f64,
    /// Ticks after which the result of a search is confirmed.
    pub confirm_ticks: usize,
    /// Minimum assumed relative difference of rates between two ticks by chance.
    pub spread_min: f64,

    /// Factor by which rate, calls in flight or latency must differ to be another load.
    pub change_factor: f64,
    /// Standard errors by which they must differ as well.
    pub change_sigmas: f64,
    /// Ticks that show another load.
    pub change_ticks: usize,

    /// Time until a steady load is tried with another number of lanes. Doubles after each unsuccessful retry.
    pub retry_ms: u64,
    /// Limit of the doubled [`retry_ms`](Self::retry_ms).
    pub retry_ms_max: u64,
    /// Time between searches for different loads. Doubles each time that searches follow within
    /// [`search_again_ms`](Self::search_again_ms).
    pub search_ms: u64,
    /// Searches closer than this double [`search_ms`](Self::search_ms).
    pub search_again_ms: u64,
    /// Limit of the doubled [`search_ms`](Self::search_ms).
    pub search_ms_max: u64,
    /// Time for lanes to connect, in addition to some round trips.
    pub connect_ms_max: u64,
    /// Time without calls after which a channel returns to its floor.
    pub idle_ms: u64,
}

impl PolicyConfig {
    /// Returns the default for a process that may use `cores`. The floor is one lane; the cap is the number of cores,
    /// but at least 3 and at most 16.
    pub fn for_cores(cores: usize) -> Self {
        Self {
            floor: 1,
            cap: cores.clamp(LANES_DEFAULT_MIN, LANES_DEFAULT_MAX),
            tick_ms: 25,
            gain_min: 0.03,
            loss_max: 0.03,
            latency_weight: 0.2,
            late_share_min: 0.08,
            late_share_few_min: 0.25,
            late_share_far_min: 0.15,
            few_calls_max: 4,
            busy_share_min: 0.7,
            write_share_min: 0.25,
            contended_share_min: 0.25,
            flow_share_min: 0.1,
            ticks_min: 4,
            up_ticks_max: 24,
            down_ticks_max: 20,
            steady_ticks_max: 40,
            sigmas: 2.0,
            error_max: 0.03,
            confirm_ticks: 12,
            spread_min: 0.015,
            change_factor: 1.4,
            change_sigmas: 5.0,
            change_ticks: 6,
            retry_ms: 15_000,
            retry_ms_max: 600_000,
            search_ms: 250,
            search_again_ms: 10_000,
            search_ms_max: 60_000,
            connect_ms_max: 1_000,
            idle_ms: 3_000,
        }
    }
}

/// Lower limit of the default cap. A client with one core may also gain, if the server's connection is the limit. Two
/// lanes may interfere with each other when three do not. With four calls in flight and one core per side, one lane
/// achieves 44.9 k calls/s, two 35.9 k and three 54.1 k.
const LANES_DEFAULT_MIN: usize = 3;
/// Upper limit of the default cap.
const LANES_DEFAULT_MAX: usize = 16;
