//! How often a client may ask whether its server is still there (gRFC [A8]): what is permitted, and who breaks it.
//!
//! [A8]: https://github.com/grpc/proposal/blob/master/A8-client-side-keepalive.md

use std::time::{Duration, Instant};

use crate::error::ConnectionError;
use crate::violation::Violation;

/// How often a client may send PINGs; see [`Config::ping_policy`](crate::Config::ping_policy).
///
/// A PING that comes too soon after the last is a strike. Two are forgiven, and HEADERS or DATA that the server sends
/// wipe out all before them: a client may ask for the round trip, or for the bandwidth, whenever it was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PingPolicy {
    /// The least time between two PINGs.
    pub interval_min: Duration,
    /// Whether that goes for a connection without streams as well. If not, there are two hours between PINGs there.
    pub without_streams: bool,
}

impl PingPolicy {
    /// Allows a PING each `interval_min` while there are streams.
    pub fn every(interval_min: Duration) -> Self {
        Self { interval_min, without_streams: false }
    }

    /// Sets [`without_streams`](field@Self::without_streams).
    pub fn without_streams(mut self, without_streams: bool) -> Self {
        self.without_streams = without_streams;
        self
    }
}

/// Between two PINGs of a connection without streams, if it may not have them.
const INTERVAL_MIN_IDLE: Duration = Duration::from_secs(2 * 60 * 60);
/// Strikes that are forgiven.
const STRIKES_MAX: u8 = 2;

/// The PINGs of one client.
#[derive(Debug)]
pub(crate) struct Pings {
    policy: Option<PingPolicy>,
    last: Option<Instant>,
    strikes: u8,
    /// HEADERS or DATA were sent since the last PING came.
    has_answered: bool,
}

impl Pings {
    pub(crate) fn new(policy: Option<PingPolicy>) -> Self {
        Self { policy, last: None, strikes: 0, has_answered: false }
    }

    /// HEADERS or DATA are sent.
    #[inline]
    pub(crate) fn note_answered(&mut self) {
        self.has_answered = true;
    }

    /// A PING came, while there were streams or not.
    pub(crate) fn receive(&mut self, has_streams: bool, now: Instant) -> Result<(), ConnectionError> {
        let Some(policy) = self.policy else { return Ok(()) };
        let last = self.last.replace(now);
        if std::mem::take(&mut self.has_answered) {
            self.strikes = 0;
            return Ok(());
        }
        let is_permitted = has_streams || policy.without_streams;
        let interval_min = if is_permitted { policy.interval_min } else { INTERVAL_MIN_IDLE };
        // The first comes when it likes.
        if last.is_some_and(|last| now.saturating_duration_since(last) < interval_min) {
            self.strikes += 1;
        }
        if self.strikes > STRIKES_MAX { Err(ConnectionError::calm(Violation::PingsExceeded)) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const HOUR: Duration = Duration::from_secs(3600);

    /// What happens, after how long.
    enum Step {
        Ping(Duration),
        IdlePing(Duration),
        Answer,
    }
    use Step::{Answer, IdlePing, Ping};

    /// Which of the steps is too much, if one is.
    #[track_caller]
    fn check(without_streams: bool, steps: &[Step], expected: Option<usize>) {
        let mut pings = Pings::new(Some(PingPolicy { interval_min: 10 * SECOND, without_streams }));
        #[expect(clippy::disallowed_methods, reason = "an Instant can be had from nowhere else")]
        let mut now = Instant::now();
        let broken = steps.iter().position(|step| {
            let (has_streams, after) = match *step {
                Answer => {
                    pings.note_answered();
                    return false;
                }
                Ping(after) => (true, after),
                IdlePing(after) => (false, after),
            };
            now += after;
            pings.receive(has_streams, now).is_err()
        });
        assert_eq!(broken, expected);
    }

    #[test]
    fn two_strikes_are_forgiven() {
        let soon = || Ping(9 * SECOND);
        check(false, &[soon(), soon(), soon(), soon()], Some(3));
        let enough = || Ping(10 * SECOND);
        check(false, &[enough(), enough(), enough(), enough(), enough(), enough()], None);
        // Patience does not wipe them out, an answer does.
        check(false, &[soon(), soon(), soon(), enough(), enough(), soon()], Some(5));
        check(false, &[soon(), soon(), soon(), Answer, soon(), soon(), soon(), soon()], Some(7));
    }

    #[test]
    fn an_idle_connection_has_two_hours() {
        let idle = |after| IdlePing(after);
        check(false, &[idle(HOUR), idle(HOUR), idle(HOUR), idle(HOUR)], Some(3));
        check(false, &[idle(2 * HOUR), idle(2 * HOUR), idle(2 * HOUR), idle(2 * HOUR)], None);
        check(true, &[idle(10 * SECOND), idle(10 * SECOND), idle(10 * SECOND), idle(10 * SECOND)], None);
        check(true, &[idle(SECOND), idle(SECOND), idle(SECOND), idle(SECOND)], Some(3));
    }
}
