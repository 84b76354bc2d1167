//! What may be known of a server from outside its calls: [`ServerHandle`].

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

use thalweg_engine::server::Draining;

/// What a service, or another part of the program, may know of a server. Clones are of the same server.
///
/// A service gets it from [`Methods::server`](super::Methods::server), the program from
/// [`ServerBuilder::handle`](super::ServerBuilder::handle).
///
/// ```
/// # use thalweg::{Response, Status, server::ServerHandle};
/// /// A stream that would last for ever ends when the server is told to stop.
/// async fn until_the_end(server: ServerHandle, work: impl Future<Output = ()>) {
///     tokio::select! {
///         () = server.draining() => {}
///         () = work => {}
///     }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct ServerHandle {
    services: Arc<RwLock<BTreeSet<&'static str>>>,
    draining: Draining,
}

impl ServerHandle {
    pub(super) fn new(draining: Draining) -> Self {
        Self { services: Arc::default(), draining }
    }

    /// The names of its services, `package.Service`, in the order of the alphabet. Whoever asks while the server is
    /// being built gets those that it has by then.
    pub fn services(&self) -> Vec<&'static str> {
        self.services.read().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }

    /// Whether it has a service of this name.
    pub fn has_service(&self, name: &str) -> bool {
        self.services.read().unwrap_or_else(PoisonError::into_inner).contains(name)
    }

    /// Whether it has begun to stop gracefully: it takes no new connections and calls, and waits for those under way.
    pub fn is_draining(&self) -> bool {
        self.draining.has_begun()
    }

    /// Returns when the server begins to stop gracefully, or at once where it has. What would keep a call under way
    /// for ever ends it then: the server waits for it otherwise, until its grace is over
    /// ([`ServerBuilder::shutdown_grace`](super::ServerBuilder::shutdown_grace)).
    ///
    /// Cancel-safe. It never returns for a server that is dropped without having served.
    pub async fn draining(&self) {
        self.draining.begun().await;
    }

    pub(super) fn add_service(&self, name: &'static str) {
        self.services.write().unwrap_or_else(PoisonError::into_inner).insert(name);
    }
}
