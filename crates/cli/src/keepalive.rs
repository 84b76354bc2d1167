//! Keepalive PINGs.

use std::time::Duration;

use thalweg::Keepalive;

/// Default timeout of the library.
const TIMEOUT_MAX: Duration = Duration::from_secs(20);

/// Sends a PING after `time` of silence. The timeout is `time`, at most 20 s.
pub(crate) fn keepalive(time: Duration) -> Keepalive {
    Keepalive::every(time).timeout(time.min(TIMEOUT_MAX))
}
