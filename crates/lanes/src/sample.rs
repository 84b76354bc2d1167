//! What the policy sees.

use std::time::Duration;

/// What the lanes of a channel did in an interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// The time that the samples are of; the runtime may have been late.
    pub interval: Duration,
    /// The lanes that exist, those that drain included, oldest first.
    pub lanes: Vec<LaneSample>,
}

/// What a lane did in the interval, and what it is doing at its end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LaneSample {
    /// Names the lane in decisions; never given twice in a channel.
    pub id: u64,
    /// How far it is in its life.
    pub state: LaneState,
    /// The time that the lane's driver was at work.
    pub busy: Duration,
    /// Calls that ended, and messages of streams that were moved.
    pub completed: u64,
    /// Calls that have begun and not ended, those that wait for a stream included.
    pub in_flight: usize,
    /// The same, averaged over the interval, and each call counted until its caller has taken the answer (its slot is
    /// free again): a batch that has just been answered makes the number of one moment say little, and calls that wait
    /// for their callers to run have not become faster. Cheap enough: the number at the beginning and at the end of
    /// each poll of the driver, weighted by the time until the next of these. Zero if it was not measured.
    pub in_flight_mean: f64,
    /// Calls that wait because the peer allows no more streams.
    pub waiting_for_stream: usize,
    /// Mean time from a call being queued to its bytes leaving; zero if there was no sample.
    pub write_delay: Duration,
    /// The time in which data was kept back by the connection's flow control window.
    pub flow_blocked: Duration,
    /// How often the lane's lock was not free at once.
    pub contended: u64,
    /// The network's round trip, if it is known; the shortest that was seen, such as the kernel's `tcpi_min_rtt`.
    pub round_trip: Option<Duration>,
}

/// How far a lane is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LaneState {
    /// Not connected yet, or not any more: takes no calls.
    #[default]
    Connecting,
    /// Takes calls.
    Ready,
    /// Was told to close, and waits for its last calls.
    Draining,
}

/// Gives each lane that takes calls its share of the `waiting` calls, which wait for a stream of any lane.
pub fn share_waiting(waiting: usize, lanes: &mut [LaneSample]) {
    let count = lanes.iter().filter(|lane| lane.state == LaneState::Ready).count();
    let ready = lanes.iter_mut().filter(|lane| lane.state == LaneState::Ready);
    for (index, lane) in ready.enumerate() {
        let share = waiting / count + usize::from(index < waiting % count);
        lane.waiting_for_stream = share;
        lane.in_flight += share;
        lane.in_flight_mean += share as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_wait_are_shared_by_the_lanes_that_take_calls() {
        use LaneState::{Connecting, Draining, Ready};

        let check = |waiting, states: &[LaneState], expected: &[usize]| {
            let lane = |&state| LaneSample { state, ..LaneSample::default() };
            let mut lanes: Vec<_> = states.iter().map(lane).collect();
            share_waiting(waiting, &mut lanes);
            let shares: Vec<_> = lanes.iter().map(|lane| lane.waiting_for_stream).collect();
            assert_eq!(shares, expected, "{waiting} over {states:?}");
        };
        check(7, &[Ready, Ready, Ready], &[3, 2, 2]);
        check(7, &[Connecting, Ready, Draining, Ready], &[0, 4, 0, 3]);
        check(1, &[Ready, Ready], &[1, 0]);
        check(5, &[Connecting], &[0]);
        check(0, &[Ready], &[0]);
    }
}
