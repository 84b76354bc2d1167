//! The resolver of a channel.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use thalweg_engine::{Resolution, ResolveError, Resolver, Resolving};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::api_server::ApiServer;
use crate::client::Client;
use crate::error::KubernetesError;
use crate::progress::Progress;
use crate::slices::Slices;
use crate::target::{Port, Target};
use crate::watching::{Known, Watching};

/// Watches the EndpointSlices of a service, and lists its ready pods as servers.
///
/// The first resolution starts a task on its runtime, which lists the slices and then watches them, over a connection
/// of its own. It ends when the last clone is dropped. Clones share the watch, so several channels can use it. While
/// the API server does not respond, the known servers stay.
///
/// A server has the zone of its pod as locality, and the pod's name as key in the ring of `ring_hash`, so that pods of
/// a StatefulSet keep their place. A pod with an IPv4 and an IPv6 address is one server.
#[derive(Clone)]
pub struct KubernetesResolver {
    shared: Arc<Shared>,
}

struct Shared {
    api: ApiServer,
    /// URL of the API server, and the prefix of its paths.
    origin: (String, String),
    service: String,
    namespace: String,
    port: Port,
    known: Arc<watch::Sender<Known>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl KubernetesResolver {
    /// Creates a resolver in a pod for `kubernetes:///SERVICE.NAMESPACE:PORT`.
    ///
    /// The scheme is optional. The default namespace is the pod's. The port is the name of a port of the service, or
    /// the number of the pods' port, which may differ from the service's. It can be omitted if the service has only
    /// one. `SERVICE.NAMESPACE.svc.DOMAIN` is accepted as `SERVICE.NAMESPACE`.
    ///
    /// # Errors
    /// Returns an error if the target is invalid, or the process is not in a pod with a service account.
    pub fn new(target: &str) -> Result<Self, KubernetesError> {
        Self::with_api_server(target, ApiServer::in_cluster()?)
    }

    /// Creates a resolver that asks this API server. For the target see [`new`](Self::new).
    ///
    /// # Errors
    /// Returns an error if the target or the URL is invalid, or there is no namespace.
    pub fn with_api_server(target: &str, api: ApiServer) -> Result<Self, KubernetesError> {
        let Target { service, namespace, port } = Target::parse(target)?;
        let (namespace, origin) = (api.namespace_of(&service, namespace)?, api.origin()?);
        let (known, task) = (Arc::default(), Mutex::default());
        Ok(Self { shared: Arc::new(Shared { api, origin, service, namespace, port, known, task }) })
    }
}

impl Shared {
    /// Starts the watch, if it does not run.
    fn start(&self) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if task.as_ref().is_none_or(JoinHandle::is_finished) {
            let Self { service, namespace, .. } = self;
            let watching = Watching {
                name: self.name(),
                port: self.port.clone(),
                client: Client::new(self.api.clone(), self.origin.clone(), namespace, service),
                progress: Progress::new(self.api.backoff_settings()),
                slices: Slices::default(),
                known: Arc::clone(&self.known),
                failure: None,
            };
            *task = Some(tokio::spawn(watching.run()));
        }
    }

    fn name(&self) -> String {
        format!("service `{}` in namespace `{}`", self.service, self.namespace)
    }

    async fn resolve(&self) -> Result<Resolution, ResolveError> {
        let mut known = self.known.subscribe();
        self.start();
        let known = known.wait_for(|known| known.listing.is_some() || known.error.is_some()).await;
        let known = known.map_err(|_| ResolveError::new("the watch has ended"))?;
        let Some(listing) = &known.listing else {
            return Err(ResolveError::new(known.error.clone().unwrap_or_default()));
        };
        let mut resolution = Resolution::new(listing.endpoints.clone());
        resolution.version = known.version;
        resolution.note = listing.note.as_ref().map(|note| format!("{}: {note}", self.name()).into());
        Ok(resolution)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let task = self.task.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = task {
            task.abort();
        }
    }
}

impl Resolver for KubernetesResolver {
    fn looks_up(&self) -> bool {
        false
    }

    fn resolve(&self) -> Resolving<'_> {
        Box::pin(self.shared.resolve())
    }

    fn changed(&self, version: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let mut known = self.shared.known.subscribe();
        Box::pin(async move {
            // The sender lives as long as this borrow.
            let _ = known.wait_for(|known| known.version != version).await;
        })
    }
}

impl fmt::Debug for KubernetesResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { service, namespace, port, .. } = &*self.shared;
        let mut shown = f.debug_struct("KubernetesResolver");
        shown
            .field("service", service)
            .field("namespace", namespace)
            .field("port", port)
            .finish_non_exhaustive()
    }
}
