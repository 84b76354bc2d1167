//! Input of the policy.

use std::time::Duration;

/// Samples of all lanes of a channel in an interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// Length of the interval, which varies because the runtime may be late.
    pub interval: Duration,
    /// Existing lanes, including draining ones, oldest first.
    pub lanes: Vec<LaneSample>,
}

/// Activity of a lane in the interval, and its state at the end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LaneSample {
    /// Identifies the lane in decisions; unique within a channel.
    pub id: u64,
    /// State of the lane's life cycle.
    pub state: LaneState,
    /// Time that the lane's driver was busy.
    pub busy: Duration,
    /// Ended calls and moved messages of streams.
    pub completed: u64,
    /// Started calls that have not ended, including those that wait for a stream.
    pub in_flight: usize,
    /// Mean of `in_flight` over the interval; zero if not measured. Each call counts until its caller has taken the
    /// response (its slot is free again), because calls waiting for their callers are not faster. A momentary number
    /// would say little just after a batch of responses. Cheap to measure: the number at the start and end of each poll
    /// of the driver, weighted by the time until the next one.
    pub in_flight_mean: f64,
    /// Calls that wait because the peer allows no more streams.
    pub waiting_for_stream: usize,
    /// Mean time from queueing a call to writing its bytes; zero without a sample.
    pub write_delay: Duration,
    /// Time in which the connection's flow control window held back data.
    pub flow_blocked: Duration,
    /// Number of contended acquisitions of the lane's lock.
    pub contended: u64,
    /// Shortest known round trip of the network, such as the kernel's `tcpi_min_rtt`.
    pub round_trip: Option<Duration>,
}

/// State of a lane's life cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LaneState {
    /// Not connected yet, or no longer: accepts no calls.
    #[default]
    Connecting,
    /// Accepts calls.
    Ready,
    /// Closing after its last calls.
    Draining,
}

/// Distributes the `waiting` calls, which wait for a stream on any lane, over the ready lanes.
pub fn distribute_waiting(waiting: usize, lanes: &mut [LaneSample]) {
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
    fn waiting_calls_are_distributed_over_ready_lanes() {
        use LaneState::{Connecting, Draining, Ready};

        let check = |waiting, states: &[LaneState], expected: &[usize]| {
            let lane = |&state| LaneSample { state, ..LaneSample::default() };
            let mut lanes: Vec<_> = states.iter().map(lane).collect();
            distribute_waiting(waiting, &mut lanes);
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
