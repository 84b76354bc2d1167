//! Keepalive PINGs (gRFC A8).

use std::time::Duration;

use thalweg_http2::{ErrorCode, PingPolicy};
use tokio::time::Instant;

use super::shared::Connection;
use super::state::State;
use crate::bounded_time::bounded;
use crate::status::{Code, Status};

/// When to send keepalive PINGs, and how long to wait for a response (gRFC [A8]).
///
/// Any received data counts as a response. Without one, the connection is closed and its calls fail with UNAVAILABLE.
///
/// [A8]: https://github.com/grpc/proposal/blob/master/A8-client-side-keepalive.md
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Keepalive {
    /// Time without received data before a PING is sent. At least 10 s on a client and 1 s on a server.
    pub interval: Duration,
    /// Time to wait for a response; 20 s by default, at least 1 s.
    pub timeout: Duration,
    /// Whether to send PINGs while there is no call; off by default. Other gRPC servers close a connection that sends
    /// PINGs without a call, unless they permit it.
    pub without_calls: bool,
}

impl Keepalive {
    /// Minimum interval of a client (gRFC A8).
    pub(crate) const CLIENT_INTERVAL_MIN: Duration = Duration::from_secs(10);
    const TIMEOUT: Duration = Duration::from_secs(20);
    const TIME_MIN: Duration = Duration::from_secs(1);

    /// Sends a PING after `interval` without received data, with a timeout of 20 s, while there are calls.
    pub fn every(interval: Duration) -> Self {
        Self { interval, timeout: Self::TIMEOUT, without_calls: false }
    }

    /// Sets the time to wait for a response.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets whether to send PINGs while there is no call, too.
    pub fn without_calls(mut self, without_calls: bool) -> Self {
        self.without_calls = without_calls;
        self
    }

    pub(crate) fn at_least(self, interval: Duration) -> Self {
        let timeout = bounded(self.timeout.max(Self::TIME_MIN));
        Self { interval: bounded(self.interval.max(interval).max(Self::TIME_MIN)), timeout, ..self }
    }
}

/// Limit of a server on its clients' PINGs (gRFC [A8]): by default one every five minutes while there are calls, and
/// every two hours without. Strikes are counted as in [`PingPolicy`]. gRPC clients respond to `too_many_pings` at the
/// third strike by doubling their interval.
///
/// [A8]: https://github.com/grpc/proposal/blob/master/A8-client-side-keepalive.md
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeepalivePolicy {
    /// Minimum time between two PINGs on a connection; five minutes by default. Zero permits any number.
    pub interval_min: Duration,
    /// Whether `interval_min` also applies without calls. By default the interval is two hours then.
    pub without_calls: bool,
}

impl Default for KeepalivePolicy {
    fn default() -> Self {
        Self { interval_min: Duration::from_secs(5 * 60), without_calls: false }
    }
}

impl KeepalivePolicy {
    /// Permits a PING every `interval_min` while there are calls.
    pub fn every(interval_min: Duration) -> Self {
        Self { interval_min, ..Self::default() }
    }

    /// Sets whether the same interval applies without calls.
    pub fn without_calls(mut self, without_calls: bool) -> Self {
        self.without_calls = without_calls;
        self
    }
}

impl From<KeepalivePolicy> for PingPolicy {
    fn from(policy: KeepalivePolicy) -> Self {
        Self::every(policy.interval_min).without_streams(policy.without_calls)
    }
}

/// Keepalive state of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeepaliveState {
    /// The connection's read counter when data last arrived.
    activity: u64,
    last_received_at: Instant,
    pinged_at: Option<Instant>,
}

/// Result of a keepalive check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeepaliveCheck {
    /// Check again at this time.
    Again(Instant),
    /// There was no response in time.
    Silent,
}

/// Payload of keepalive PINGs.
const PING: [u8; 8] = *b"tw-alive";

impl KeepaliveState {
    pub(crate) fn new(now: Instant) -> Self {
        Self { activity: 0, last_received_at: now, pinged_at: None }
    }

    /// Checks a connection and sends a PING if one is due.
    pub(crate) fn check(&mut self, options: &Keepalive, state: &mut State, now: Instant) -> KeepaliveCheck {
        if state.activity != self.activity {
            *self = Self { activity: state.activity, last_received_at: state.polled_at, pinged_at: None };
        }
        if let Some(pinged_at) = self.pinged_at {
            let due = pinged_at + options.timeout;
            return if due <= now { KeepaliveCheck::Silent } else { KeepaliveCheck::Again(due) };
        }
        if !options.without_calls && state.http2.active_streams() == 0 {
            // The interval starts with the next call.
            self.last_received_at = now;
        }
        let due = self.last_received_at + options.interval;
        if due > now {
            return KeepaliveCheck::Again(due);
        }
        state.http2.ping(PING);
        state.keepalives_sent += 1;
        state.notify_driver();
        self.pinged_at = Some(now);
        // An earlier response counts from its arrival, so the next PING is not delayed by the timeout.
        KeepaliveCheck::Again(now + options.timeout.min(options.interval))
    }
}

/// Closes an unresponsive connection and fails its calls.
pub(crate) fn end_silent(connection: &Connection, options: &Keepalive) {
    let peer = &connection.peer;
    let timeout = options.timeout;
    let status = Status::local(
        Code::Unavailable,
        format!("connection to {peer} lost: no response to a keepalive PING in {timeout:?}"),
    );
    connection.measure.note_error(std::io::ErrorKind::TimedOut);
    let mut state = connection.lock();
    state.end_all(&status);
    state.close(ErrorCode::NoError, "no response to a keepalive PING");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silent_peer_gets_ping_and_then_is_given_up() {
        let start = Instant::now();
        let http2 = thalweg_http2::Connection::client(thalweg_http2::Config::default(), start.into_std());
        let connection = Connection::new(http2, "a peer".to_owned(), None);
        let options = Keepalive::every(Duration::from_secs(10)).without_calls(true);
        let mut keepalive_state = KeepaliveState::new(start);
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut check = |has_received: bool, seconds: u64, expected: KeepaliveCheck| {
            let mut state = connection.lock();
            if has_received {
                state.activity += 1;
                state.polled_at = at(seconds);
            }
            assert_eq!(keepalive_state.check(&options, &mut state, at(seconds)), expected, "at {seconds} s");
        };
        check(true, 1, KeepaliveCheck::Again(at(11)));
        check(false, 11, KeepaliveCheck::Again(at(21)));
        check(false, 21, KeepaliveCheck::Again(at(31)));
        check(true, 30, KeepaliveCheck::Again(at(40)));
        check(false, 35, KeepaliveCheck::Again(at(40)));
        check(false, 40, KeepaliveCheck::Again(at(50)));
        check(false, 50, KeepaliveCheck::Again(at(60)));
        check(false, 59, KeepaliveCheck::Again(at(60)));
        check(false, 60, KeepaliveCheck::Silent);
    }

    #[test]
    fn no_ping_is_sent_without_calls() {
        let start = Instant::now();
        let http2 = thalweg_http2::Connection::client(thalweg_http2::Config::default(), start.into_std());
        let connection = Connection::new(http2, "a peer".to_owned(), None);
        let mut keepalive_state = KeepaliveState::new(start);
        let later = start + Duration::from_secs(1000);
        let options = Keepalive::every(Duration::from_secs(10));
        let result = keepalive_state.check(&options, &mut connection.lock(), later);
        assert_eq!(result, KeepaliveCheck::Again(later + Duration::from_secs(10)));
        assert_eq!(connection.lock().keepalives_sent, 0);
    }

    #[test]
    fn intervals_have_a_minimum() {
        let options = Keepalive::every(Duration::from_secs(1)).timeout(Duration::ZERO);
        let fitted = options.at_least(Keepalive::CLIENT_INTERVAL_MIN);
        assert_eq!((fitted.interval, fitted.timeout), (Duration::from_secs(10), Duration::from_secs(1)));
        let of_server = Keepalive::every(Duration::ZERO).at_least(Duration::ZERO);
        assert_eq!(of_server.interval, Duration::from_secs(1));
    }
}
