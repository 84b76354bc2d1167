//! What the policy sees.

use std::time::Duration;

/// What the lanes of a channel did in an interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Samples {
    /// The time that the samples are of; the runtime may have been late.
    pub(crate) interval: Duration,
    /// The lanes that exist, those that drain included, oldest first.
    pub(crate) lanes: Vec<LaneSample>,
}

/// What a lane did in the interval, and what it is doing at its end.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LaneSample {
    /// Names the lane in decisions; never given twice in a channel.
    pub(crate) id: u64,
    pub(crate) state: LaneState,
    /// The time that the lane's driver was at work.
    pub(crate) busy: Duration,
    /// Calls that ended, and messages of streams that were moved.
    pub(crate) completed: u64,
    /// Calls that have begun and not ended, those that wait for a stream included.
    pub(crate) in_flight: usize,
    /// The same, averaged over the interval, and each call counted until its caller has taken the answer (its slot is
    /// free again): a batch that has just been answered makes the number of one moment say little, and calls that wait
    /// for their callers to run have not become faster. Cheap enough: the number at the beginning and at the end of
    /// each poll of the driver, weighted by the time until the next of these. Zero if it was not measured.
    pub(crate) in_flight_mean: f64,
    /// Calls that wait because the peer allows no more streams.
    pub(crate) waiting_for_stream: usize,
    /// Mean time from a call being queued to its bytes leaving; zero if there was no sample.
    pub(crate) write_delay: Duration,
    /// The time in which data was kept back by the connection's flow control window.
    pub(crate) flow_blocked: Duration,
    /// How often the lane's lock was not free at once.
    pub(crate) contended: u64,
    /// The network's round trip, if it is known; the shortest that was seen, such as the kernel's `tcpi_min_rtt`.
    pub(crate) round_trip: Option<Duration>,
}

/// How far a lane is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LaneState {
    /// Not connected yet, or not any more: takes no calls.
    #[default]
    Connecting,
    /// Takes calls.
    Ready,
    /// Was told to close, and waits for its last calls.
    Draining,
}
