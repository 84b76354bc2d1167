//! Whether a server is still there, asked by PINGs.

use std::time::Duration;

use thalweg::Keepalive;

/// The library's own.
const TIMEOUT_MAX: Duration = Duration::from_secs(20);

/// A PING when nothing has come for `time`, which is answered within as long, or within 20 s.
pub(crate) fn keepalive(time: Duration) -> Keepalive {
    Keepalive::every(time).timeout(time.min(TIMEOUT_MAX))
}
