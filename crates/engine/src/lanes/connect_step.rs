//! Progress reports of attempts to connect.

use std::fmt;
use std::sync::Arc;

/// A completed step of an attempt to connect. The steps are reported in this order, without those that a connection
/// does not have. Each further address and each attempt starts over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectStep {
    /// The target's name was resolved. Not reported for targets that are addresses.
    Resolved,
    /// A byte stream to this peer is connected.
    Connected {
        /// The address, or the target if the application makes the connection.
        peer: String,
    },
    /// The TLS handshake is complete.
    Secured,
    /// The server's HTTP/2 SETTINGS have arrived: calls can start.
    Ready,
}

/// Callback for the steps.
#[derive(Clone, Default)]
pub(crate) struct StepWatcher(Option<Arc<dyn Fn(ConnectStep) + Send + Sync>>);

impl StepWatcher {
    pub(crate) fn new(watch: impl Fn(ConnectStep) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(watch)))
    }

    pub(super) fn notify(&self, step: impl FnOnce() -> ConnectStep) {
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
