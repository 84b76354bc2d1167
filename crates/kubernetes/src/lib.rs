//! A resolver that watches the EndpointSlices of a Kubernetes service.
//!
//! A channel with this [`KubernetesResolver`] learns of new, unready and removed pods as soon as Kubernetes does, where
//! DNS takes up to 36 s. The service may be of any type, with or without a cluster IP.
//!
//! ```no_run
//! use thalweg::Channel;
//! use thalweg::channel::policy::PolicyConfig;
//! use thalweg_kubernetes::KubernetesResolver;
//!
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let channel = Channel::builder("orders.shop")
//!     .resolver(KubernetesResolver::new("kubernetes:///orders.shop:grpc")?)
//!     .load_balancing(PolicyConfig::RoundRobin)
//!     .connect_lazy()?;
//! # drop(channel);
//! # Ok(()) }
//! ```
//!
//! With `thalweg-tonic`, `EndpointExt::resolver` takes it.
//!
//! # Permissions
//!
//! The pod's service account needs a role in the namespace of the service:
//!
//! ```yaml
//! apiVersion: rbac.authorization.k8s.io/v1
//! kind: Role
//! metadata: { name: read-endpointslices, namespace: shop }
//! rules:
//!   - apiGroups: [discovery.k8s.io]
//!     resources: [endpointslices]
//!     verbs: [get, list, watch]
//! ---
//! apiVersion: rbac.authorization.k8s.io/v1
//! kind: RoleBinding
//! metadata: { name: read-endpointslices, namespace: shop }
//! roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: read-endpointslices }
//! subjects:
//!   - { kind: ServiceAccount, name: frontend, namespace: shop }
//! ```
//!
//! # The API server
//!
//! Each resolver has one connection to the API server, by HTTP/2 and TLS of `thalweg-engine`, and one watch. A watch
//! continues from its last version when it ends. After 410 Gone the slices are listed again. Failures are repeated
//! with [backoff](ApiServer::backoff). Kubernetes 1.21 or later is needed.

#![forbid(unsafe_code)]

mod api_server;
mod client;
mod error;
mod lines;
mod progress;
mod resolver;
mod slices;
mod target;
mod watching;

pub use thalweg_engine::Backoff;
pub use thalweg_engine::tls::{Certificate, ClientTlsConfig, Identity};

pub use api_server::ApiServer;
pub use error::KubernetesError;
pub use resolver::KubernetesResolver;
