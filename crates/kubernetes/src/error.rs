//! Errors of settings.

use std::io;
use std::path::PathBuf;

/// Reason why a resolver cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KubernetesError {
    /// The target is invalid.
    #[error("invalid target `{target}`: {reason}; use kubernetes:///SERVICE.NAMESPACE:PORT")]
    #[non_exhaustive]
    Target {
        /// The target.
        target: String,
        /// The invalid part.
        reason: &'static str,
    },
    /// The process does not run in a pod.
    #[error(
        "not in a cluster: {variable} is not set; use KubernetesResolver::with_api_server outside of pods"
    )]
    #[non_exhaustive]
    NotInCluster {
        /// The missing environment variable.
        variable: &'static str,
    },
    /// A file of the pod's service account cannot be read.
    #[error("failed to read {}: {error}; the pod needs automountServiceAccountToken", path.display())]
    #[non_exhaustive]
    ServiceAccount {
        /// Path of the file.
        path: PathBuf,
        /// Reason why it cannot be read.
        #[source]
        error: io::Error,
    },
    /// The target has no namespace, and the process is not in one.
    #[error("the service `{service}` has no namespace; use {service}.NAMESPACE, or ApiServer::namespace")]
    #[non_exhaustive]
    Namespace {
        /// The service.
        service: String,
    },
    /// The namespace is no valid name.
    #[error("invalid namespace `{0}`")]
    InvalidNamespace(String),
    /// The URL of the API server is invalid.
    #[error("invalid URL `{url}` of the API server: {reason}; use https://HOST:PORT")]
    #[non_exhaustive]
    Url {
        /// The URL.
        url: String,
        /// Reason why it is invalid.
        reason: String,
    },
}
