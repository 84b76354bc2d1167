//! What an attempt to connect has done, told to whoever wants to know.

use std::fmt;
use std::sync::Arc;

/// What an attempt to connect has just done. The steps come in this order, those that a connection does not have left
/// out; each further address and each attempt begins anew.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectStep {
    /// The target's name has addresses. Not for targets that are addresses.
    Resolved,
    /// There is a byte stream to this peer.
    Connected {
        /// The address, or the target where the application connects by itself.
        peer: String,
    },
    /// The TLS handshake is done.
    Secured,
    /// The server's HTTP/2 SETTINGS have come: calls can begin.
    Ready,
}

/// Who is told.
#[derive(Clone, Default)]
pub(crate) struct StepWatcher(Option<Arc<dyn Fn(ConnectStep) + Send + Sync>>);

impl StepWatcher {
    pub(crate) fn new(watch: impl Fn(ConnectStep) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(watch)))
    }

    pub(super) fn tell(&self, step: impl FnOnce() -> ConnectStep) {
        if let Some(watch) = &self.0 {
            watch(step());
        }
    }
}

impl fmt::Debug for StepWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "told" } else { "nobody" })
    }
}
