//! Whether a server has begun to stop gracefully: [`Draining`].

use tokio::sync::watch;

/// Whether a server has begun to stop gracefully. Clones are of the same server.
#[derive(Clone, Debug)]
pub struct Draining(watch::Sender<bool>);

impl Default for Draining {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Draining {
    /// Whether the server is shutting down any more.
    pub fn has_begun(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns when the server begins to drain, or at once where it has. Cancel-safe.
    pub async fn begun(&self) {
        // The sender is `self`: it is not gone.
        let _ = self.0.subscribe().wait_for(|begun| *begun).await;
    }

    pub(super) fn begin(&self) {
        self.0.send_replace(true);
    }
}
