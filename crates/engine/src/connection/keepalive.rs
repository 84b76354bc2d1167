//! Whether the other end of a connection is still there, asked by PINGs (gRFC A8).

use std::time::Duration;

use thalweg_http2::{ErrorCode, PingPolicy};
use tokio::time::Instant;

use super::shared::Connection;
use super::state::State;
use crate::status::Status;

/// When the other end of a connection is asked whether it is still there, and how long it has to answer, by gRFC [A8].
///
/// Whatever comes from it is an answer. A connection whose other end is silent is ended, and its calls fail with
/// UNAVAILABLE.
///
/// [A8]: https://github.com/grpc/proposal/blob/master/A8-client-side-keepalive.md
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Keepalive {
    /// How long nothing may have come before a PING is sent. A client's is at least 10 s, and a server's 1 s.
    pub interval: Duration,
    /// How long something may take to come then; 20 s by default, at least 1 s.
    pub timeout: Duration,
    /// Whether PINGs are sent while there is no call; off by default. Servers of gRPC's other libraries end a
    /// connection that pings them without a call, unless they permit it.
    pub without_calls: bool,
}

impl Keepalive {
    /// A client's least interval (gRFC A8).
    pub(crate) const CLIENT_INTERVAL_MIN: Duration = Duration::from_secs(10);
    const TIMEOUT: Duration = Duration::from_secs(20);
    const TIME_MIN: Duration = Duration::from_secs(1);

    /// A PING when nothing has come for `interval`, answered within 20 s, while there are calls.
    pub fn every(interval: Duration) -> Self {
        Self { interval, timeout: Self::TIMEOUT, without_calls: false }
    }

    /// How long an answer may take.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sends PINGs while there is no call, too.
    pub fn without_calls(mut self, without_calls: bool) -> Self {
        self.without_calls = without_calls;
        self
    }

    pub(crate) fn at_least(self, interval: Duration) -> Self {
        let timeout = self.timeout.max(Self::TIME_MIN);
        Self { interval: self.interval.max(interval).max(Self::TIME_MIN), timeout, ..self }
    }
}

/// How often the clients of a server may send PINGs (gRFC [A8]): every five minutes while there are calls, and every
/// two hours without, by default. Strikes are counted as by [`PingPolicy`]; gRPC's clients answer the `too_many_pings`
/// at the third by doubling their interval.
///
/// [A8]: https://github.com/grpc/proposal/blob/master/A8-client-side-keepalive.md
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeepalivePolicy {
    /// The least time between two PINGs of a connection; five minutes by default. Zero permits any number.
    pub interval_min: Duration,
    /// Whether that goes for a connection without calls as well. By default there are two hours between PINGs there.
    pub without_calls: bool,
}

impl Default for KeepalivePolicy {
    fn default() -> Self {
        Self { interval_min: Duration::from_secs(5 * 60), without_calls: false }
    }
}

impl KeepalivePolicy {
    /// Permits a PING in each `interval_min`, while there are calls.
    pub fn every(interval_min: Duration) -> Self {
        Self { interval_min, ..Self::default() }
    }

    /// Permits as many while there is no call.
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

/// How far asking has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asking {
    /// The connection's count of reads when something had come last.
    activity: u64,
    heard_at: Instant,
    pinged_at: Option<Instant>,
}

/// What a look at a connection led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Look again at this time.
    Again(Instant),
    /// There was no answer in time.
    Silent,
}

/// What a keepalive's PING carries.
const PING: [u8; 8] = *b"tw-alive";

impl Asking {
    pub(crate) fn new(now: Instant) -> Self {
        Self { activity: 0, heard_at: now, pinged_at: None }
    }

    /// Looks at a connection: sends a PING where one is due.
    pub(crate) fn look(&mut self, options: &Keepalive, state: &mut State, now: Instant) -> Asked {
        if state.activity != self.activity {
            *self = Self { activity: state.activity, heard_at: state.polled_at, pinged_at: None };
        }
        if let Some(pinged_at) = self.pinged_at {
            let due = pinged_at + options.timeout;
            return if due <= now { Asked::Silent } else { Asked::Again(due) };
        }
        if !options.without_calls && state.http2.active_streams() == 0 {
            // What comes with the next call counts from then on.
            self.heard_at = now;
        }
        let due = self.heard_at + options.interval;
        if due > now {
            return Asked::Again(due);
        }
        state.http2.ping(PING);
        state.keepalives_sent += 1;
        state.notify_driver();
        self.pinged_at = Some(now);
        // An answer that has come by then counts from its own time: the next PING is not late by the timeout.
        Asked::Again(now + options.timeout.min(options.interval))
    }
}

/// Ends a connection whose other end is silent, with all calls on it.
pub(crate) fn end_silent(connection: &Connection, options: &Keepalive) {
    let peer = &connection.peer;
    let timeout = options.timeout;
    let status = Status::unavailable(format!(
        "connection to {peer} lost: no answer to a keepalive PING in {timeout:?}"
    ));
    connection.measure.note_error(std::io::ErrorKind::TimedOut);
    let mut state = connection.lock();
    state.end_all(&status);
    state.close(ErrorCode::NoError, "no answer to a keepalive PING");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_peer_is_asked_and_then_given_up() {
        let start = Instant::now();
        let http2 = thalweg_http2::Connection::client(thalweg_http2::Config::default(), start.into_std());
        let connection = Connection::new(http2, "a peer".to_owned(), None);
        let options = Keepalive::every(Duration::from_secs(10)).without_calls(true);
        let mut asking = Asking::new(start);
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut check = |heard: bool, seconds: u64, expected: Asked| {
            let mut state = connection.lock();
            if heard {
                state.activity += 1;
                state.polled_at = at(seconds);
            }
            assert_eq!(asking.look(&options, &mut state, at(seconds)), expected, "at {seconds} s");
        };
        check(true, 1, Asked::Again(at(11)));
        check(false, 11, Asked::Again(at(21)));
        check(false, 21, Asked::Again(at(31)));
        check(true, 30, Asked::Again(at(40)));
        check(false, 35, Asked::Again(at(40)));
        check(false, 40, Asked::Again(at(50)));
        check(false, 50, Asked::Again(at(60)));
        check(false, 59, Asked::Again(at(60)));
        check(false, 60, Asked::Silent);
    }

    #[test]
    fn without_calls_nobody_is_asked() {
        let start = Instant::now();
        let http2 = thalweg_http2::Connection::client(thalweg_http2::Config::default(), start.into_std());
        let connection = Connection::new(http2, "a peer".to_owned(), None);
        let mut asking = Asking::new(start);
        let later = start + Duration::from_secs(1000);
        let options = Keepalive::every(Duration::from_secs(10));
        let asked = asking.look(&options, &mut connection.lock(), later);
        assert_eq!(asked, Asked::Again(later + Duration::from_secs(10)));
        assert_eq!(connection.lock().keepalives_sent, 0);
    }

    #[test]
    fn intervals_have_a_least() {
        let options = Keepalive::every(Duration::from_secs(1)).timeout(Duration::ZERO);
        let fitted = options.at_least(Keepalive::CLIENT_INTERVAL_MIN);
        assert_eq!((fitted.interval, fitted.timeout), (Duration::from_secs(10), Duration::from_secs(1)));
        let of_server = Keepalive::every(Duration::ZERO).at_least(Duration::ZERO);
        assert_eq!(of_server.interval, Duration::from_secs(1));
    }
}
