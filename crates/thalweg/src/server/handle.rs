//! A server's handle for services and the rest of the program: [`ServerHandle`].

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use thalweg_engine::server::Draining;

/// Information about a server, for its services and other parts of the program. Clones refer to the same server.
///
/// A service gets it from [`Methods::server`](super::Methods::server), the program from
/// [`ServerBuilder::handle`](super::ServerBuilder::handle).
///
/// ```
/// # use thalweg::{Response, Status, server::ServerHandle};
/// /// Ends an endless stream when the server shuts down.
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

    /// Returns the names of the services, `package.Service`, in alphabetical order. While the server is being built,
    /// those added so far.
    pub fn services(&self) -> Vec<&'static str> {
        self.read().names.iter().copied().collect()
    }

    /// Returns true if the server has a service of this name.
    pub fn has_service(&self, name: &str) -> bool {
        self.read().names.contains(name)
    }

    /// Returns the descriptors of the services ([`Service::FILE_DESCRIPTOR_SET`](super::Service::FILE_DESCRIPTOR_SET)),
    /// each an encoded `google.protobuf.FileDescriptorSet` with all imports. A set that several services share is
    /// included once. While the server is being built, those of the services added so far.
    pub fn descriptor_sets(&self) -> Vec<&'static [u8]> {
        self.read().descriptors.clone()
    }

    /// Returns true if graceful shutdown has started: the server accepts no new connections and calls, and waits for
    /// those in flight.
    pub fn is_draining(&self) -> bool {
        self.draining.has_started()
    }

    /// Waits until the server starts a graceful shutdown; returns at once if it has. End endless calls when this
    /// returns: otherwise the server waits for them until its grace period ends
    /// ([`ServerBuilder::shutdown_grace`](super::ServerBuilder::shutdown_grace)).
    ///
    /// Never returns for a server that is dropped without having served.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn draining(&self) {
        self.draining.started().await;
    }

    /// Adds a service and its descriptors.
    pub(super) fn add_service(&self, name: &'static str, descriptors: &'static [u8]) {
        let mut services = self.services.write().unwrap_or_else(PoisonError::into_inner);
        services.names.insert(name);
        // Compares contents, since a constant may have several addresses.
        if !descriptors.is_empty() && !services.descriptors.contains(&descriptors) {
            services.descriptors.push(descriptors);
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Services> {
        self.services.read().unwrap_or_else(PoisonError::into_inner)
    }
}
