//! Maintenance of a lane's connection: keepalive and idle timeout.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use thalweg_http2::ErrorCode;
use tokio::time::{Instant, sleep_until};

use super::observers::ConnectionObserver;
use crate::bounded_time::bounded;
use crate::connection::{Connection, Keepalive, KeepaliveCheck, KeepaliveState, end_silent};

/// Maintenance settings of a channel's connections. Off by default, without any timer.
#[derive(Debug, Default)]
pub(crate) struct Maintenance {
    keepalive: Option<Keepalive>,
    /// Number of GOAWAYs for too many PINGs, each of which doubles the interval.
    doubled: AtomicU32,
    idle_max: Option<Duration>,
}

/// GOAWAY debug data of a server that gets more PINGs than it permits (gRFC A8).
const TOO_MANY_PINGS: &[u8] = b"too_many_pings";
/// Maximum number of doublings: 10 s become three hours.
const DOUBLED_MAX: u32 = 10;
/// Minimum number of checks within the idle timeout.
const IDLE_CHECKS: u32 = 4;

/// Returns whether a server's GOAWAY was caused by too many PINGs.
pub(super) fn permits_fewer_pings(code: ErrorCode, debug: &[u8]) -> bool {
    code == ErrorCode::EnhanceYourCalm && debug == TOO_MANY_PINGS
}

impl Maintenance {
    pub(crate) fn new(keepalive: Option<Keepalive>, idle_max: Option<Duration>) -> Self {
        let keepalive = keepalive.map(|keepalive| keepalive.at_least(Keepalive::CLIENT_INTERVAL_MIN));
        Self { keepalive, doubled: AtomicU32::new(0), idle_max: idle_max.map(bounded) }
    }

    /// Returns the same settings without an idle timeout, for another endpoint.
    pub(crate) fn without_idle_timeout(&self) -> Self {
        Self { keepalive: self.keepalive, doubled: AtomicU32::new(0), idle_max: None }
    }

    fn is_needed(&self) -> bool {
        self.keepalive.is_some() || self.idle_max.is_some()
    }

    /// Returns how long the peer of a connection may leave bytes unacknowledged (TCP_USER_TIMEOUT, gRFC A18).
    pub(super) fn user_timeout(&self) -> Option<Duration> {
        self.keepalive.map(|keepalive| keepalive.timeout)
    }

    /// Doubles the keepalive interval of the channel's next connections.
    pub(super) fn ping_less(&self) {
        let doubled = self.doubled.fetch_add(1, Ordering::Relaxed);
        let interval = self.keepalive_now().map(|keepalive| keepalive.interval);
        tracing::warn!(times = doubled + 1, ?interval, "the server accepts fewer keepalive PINGs");
    }

    /// Returns the keepalive settings of a new connection.
    fn keepalive_now(&self) -> Option<Keepalive> {
        let doubled = self.doubled.load(Ordering::Relaxed).min(DOUBLED_MAX);
        self.keepalive
            .map(|keepalive| Keepalive { interval: keepalive.interval * (1 << doubled), ..keepalive })
    }

    /// Starts the maintenance of a connection, until it is over.
    pub(super) fn begin(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        observer: &Weak<dyn ConnectionObserver>,
    ) {
        if self.is_needed() {
            let (connection, observer) = (Arc::downgrade(connection), observer.clone());
            tokio::spawn(Arc::clone(self).run(connection, observer));
        }
    }

    async fn run(self: Arc<Self>, connection: Weak<Connection>, observer: Weak<dyn ConnectionObserver>) {
        let keepalive = self.keepalive_now();
        let mut keepalive_state = KeepaliveState::new(Instant::now());
        while let Some(connection) = connection.upgrade() {
            let is_over = {
                let state = connection.lock();
                state.ended().is_some() || state.http2.is_closed()
            };
            let outcome = if is_over {
                CheckOutcome::Over
            } else {
                self.check(&connection, keepalive, &mut keepalive_state)
            };
            match (outcome, keepalive) {
                (CheckOutcome::Over, _) => return,
                (CheckOutcome::Silent, Some(keepalive)) => end_silent(&connection, &keepalive),
                (CheckOutcome::Silent, None) | (CheckOutcome::Idle, _) => {}
                (CheckOutcome::CheckAgain { next_check }, _) => {
                    drop(connection);
                    sleep_until(next_check).await;
                    continue;
                }
            }
            if let Some(observer) = observer.upgrade() {
                observer.lost(&connection);
            }
            return;
        }
    }

    fn check(
        &self,
        connection: &Connection,
        keepalive: Option<Keepalive>,
        keepalive_state: &mut KeepaliveState,
    ) -> CheckOutcome {
        let now = Instant::now();
        let mut state = connection.lock();
        let mut next_check = None;
        if let Some(max) = self.idle_max {
            let ends = state.sweep(now) + max;
            if ends <= now {
                return CheckOutcome::Idle;
            }
            next_check = Some(ends.min(now + (max / IDLE_CHECKS).max(Duration::from_millis(10))));
        }
        if let Some(keepalive) = &keepalive {
            match keepalive_state.check(keepalive, &mut state, now) {
                KeepaliveCheck::Silent => return CheckOutcome::Silent,
                KeepaliveCheck::Again(at) => {
                    next_check = Some(next_check.map_or(at, |earlier| earlier.min(at)));
                }
            }
        }
        next_check.map_or(CheckOutcome::Over, |next_check| CheckOutcome::CheckAgain { next_check })
    }
}

enum CheckOutcome {
    Over,
    Silent,
    Idle,
    CheckAgain { next_check: Instant },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_doubles_after_too_many_pings() {
        let maintenance = Maintenance::new(Some(Keepalive::every(Duration::from_secs(1))), None);
        let check = |code, debug: &[u8], seconds| {
            if permits_fewer_pings(code, debug) {
                maintenance.ping_less();
            }
            let interval = maintenance.keepalive_now().map(|keepalive| keepalive.interval);
            assert_eq!(interval, Some(Duration::from_secs(seconds)), "{code:?} {debug:?}");
        };
        check(ErrorCode::NoError, TOO_MANY_PINGS, 10);
        check(ErrorCode::EnhanceYourCalm, b"something else", 10);
        check(ErrorCode::EnhanceYourCalm, TOO_MANY_PINGS, 20);
        check(ErrorCode::EnhanceYourCalm, TOO_MANY_PINGS, 40);
        for _ in 0..40 {
            maintenance.ping_less();
        }
        check(ErrorCode::NoError, b"", 10 << DOUBLED_MAX);
    }
}
