//! Graceful shutdown state of a server: [`Draining`].

use tokio::sync::watch;

/// Whether a server is shutting down gracefully. Clones share the state.
#[derive(Clone, Debug)]
pub struct Draining(watch::Sender<bool>);

impl Default for Draining {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Draining {
    /// Returns whether the server has started to drain.
    pub fn has_started(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the server starts to drain. Cancel-safe.
    pub async fn started(&self) {
        // `self` keeps the sender alive.
        let _ = self.0.subscribe().wait_for(|has_started| *has_started).await;
    }

    pub(super) fn begin(&self) {
        self.0.send_replace(true);
    }
}
