//! Maintenance of a lane's connection: keepalive and idle timeout.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use thalweg_http2::ErrorCode;
use tokio::time::{Instant, sleep_until};

use super::owner::ConnectionOwner;
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
const IDLE_LOOKS: u32 = 4;

/// Returns whether a server's GOAWAY was caused by too many PINGs.
pub(super) fn permits_fewer_pings(code: ErrorCode, debug: &[u8]) -> bool {
    code == ErrorCode::EnhanceYourCalm && debug == TOO_MANY_PINGS
}

impl Maintenance {
    pub(crate) fn new(keepalive: Option<Keepalive>, idle_max: Option<Duration>) -> Self {
        let keepalive = keepalive.map(|keepalive| keepalive.at_least(Keepalive::CLIENT_INTERVAL_MIN));
        Self { keepalive, doubled: AtomicU32::new(0), idle_max }
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
    pub(super) fn begin(self: &Arc<Self>, connection: &Arc<Connection>, owner: &Weak<dyn ConnectionOwner>) {
        if self.is_needed() {
            let (connection, owner) = (Arc::downgrade(connection), owner.clone());
            tokio::spawn(Arc::clone(self).run(connection, owner));
        }
    }

    async fn run(self: Arc<Self>, connection: Weak<Connection>, owner: Weak<dyn ConnectionOwner>) {
        let keepalive = self.keepalive_now();
        let mut asking = KeepaliveState::new(Instant::now());
        while let Some(connection) = connection.upgrade() {
            let is_over = {
                let state = connection.lock();
                state.ended().is_some() || state.http2.is_closed()
            };
            let found = if is_over { Found::Over } else { self.look(&connection, keepalive, &mut asking) };
            match (found, keepalive) {
                (Found::Over, _) => return,
                (Found::Silent, Some(keepalive)) => end_silent(&connection, &keepalive),
                (Found::Silent, None) | (Found::Idle, _) => {}
                (Found::Well { look_again }, _) => {
                    drop(connection);
                    sleep_until(look_again).await;
                    continue;
                }
            }
            if let Some(owner) = owner.upgrade() {
                owner.lost(&connection);
            }
            return;
        }
    }

    fn look(
        &self,
        connection: &Connection,
        keepalive: Option<Keepalive>,
        asking: &mut KeepaliveState,
    ) -> Found {
        let now = Instant::now();
        let mut state = connection.lock();
        let mut look_again = None;
        if let Some(max) = self.idle_max {
            let ends = state.sweep(now) + max;
            if ends <= now {
                return Found::Idle;
            }
            look_again = Some(ends.min(now + (max / IDLE_LOOKS).max(Duration::from_millis(10))));
        }
        if let Some(keepalive) = &keepalive {
            match asking.look(keepalive, &mut state, now) {
                KeepaliveCheck::Silent => return Found::Silent,
                KeepaliveCheck::Again(at) => {
                    look_again = Some(look_again.map_or(at, |earlier| earlier.min(at)));
                }
            }
        }
        look_again.map_or(Found::Over, |look_again| Found::Well { look_again })
    }
}

enum Found {
    Over,
    Silent,
    Idle,
    Well { look_again: Instant },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_doubles_when_a_server_says_so() {
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
