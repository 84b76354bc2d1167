//! What may be known of a server from outside its calls: [`ServerHandle`].

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

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
    services: Arc<RwLock<Services>>,
    draining: Draining,
}

#[derive(Debug, Default)]
struct Services {
    names: BTreeSet<&'static str>,
    descriptors: Vec<&'static [u8]>,
}

impl ServerHandle {
    pub(super) fn new(draining: Draining) -> Self {
        Self { services: Arc::default(), draining }
    }

    /// The names of its services, `package.Service`, in the order of the alphabet. Whoever asks while the server is
    /// being built gets those that it has by then.
    pub fn services(&self) -> Vec<&'static str> {
        self.read().names.iter().copied().collect()
    }

    /// Whether it has a service of this name.
    pub fn has_service(&self, name: &str) -> bool {
        self.read().names.contains(name)
    }

    /// The descriptors that its services have with them
    /// ([`Service::FILE_DESCRIPTOR_SET`](super::Service::FILE_DESCRIPTOR_SET)), each an encoded
    /// `google.protobuf.FileDescriptorSet` with all that it imports: those of several services are often the same set,
    /// which is here once. Whoever asks while the server is being built gets what it has by then.
    pub fn descriptor_sets(&self) -> Vec<&'static [u8]> {
        self.read().descriptors.clone()
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

    /// A service of this name, and the descriptors that it has with it.
    pub(super) fn add_service(&self, name: &'static str, descriptors: &'static [u8]) {
        let mut services = self.services.write().unwrap_or_else(PoisonError::into_inner);
        services.names.insert(name);
        // Not by their addresses: a constant may have several.
        if !descriptors.is_empty() && !services.descriptors.contains(&descriptors) {
            services.descriptors.push(descriptors);
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Services> {
        self.services.read().unwrap_or_else(PoisonError::into_inner)
    }
}
