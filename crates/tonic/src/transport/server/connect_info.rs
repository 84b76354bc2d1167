//! Connection information for requests.

use std::any::Any;
use std::sync::Arc;

use http::Extensions;
use thalweg_engine::ConnectionInfo;

#[cfg(feature = "_tls-any")]
use super::tls_connect_info::TlsConnectInfos;

/// Returns the extensions with a connection's information for its requests.
pub(super) type RequestExtensions = Arc<dyn Fn(Option<&Arc<ConnectionInfo>>) -> Extensions + Send + Sync>;

/// Creates [`RequestExtensions`] from the information that a server's connections provide.
pub(super) struct RequestExtensionsFactory<C> {
    #[cfg(feature = "_tls-any")]
    tls: Arc<TlsConnectInfos<C>>,
    #[cfg(not(feature = "_tls-any"))]
    info: std::marker::PhantomData<C>,
}

impl<C: Any + Clone + Send + Sync> RequestExtensionsFactory<C> {
    pub(super) fn new() -> Self {
        Self {
            #[cfg(feature = "_tls-any")]
            tls: Arc::default(),
            #[cfg(not(feature = "_tls-any"))]
            info: std::marker::PhantomData,
        }
    }

    /// Creates the information of a connection, including its TLS information.
    #[cfg(feature = "_tls-any")]
    pub(super) fn for_connection(&self, info: C) -> RequestExtensions {
        let infos = Arc::clone(&self.tls);
        // Created at the first request, when the handshake is complete.
        let cached = std::sync::OnceLock::new();
        let make = move |connection: Option<&Arc<ConnectionInfo>>| {
            let mut extensions = Extensions::new();
            if let Some(tls) = connection.and_then(|connection| connection.tls())
                && let Some(tls_info) = infos.get(&info, tls.peer_certificates().unwrap_or_default())
            {
                extensions.insert(tls_info);
            }
            extensions.insert(info.clone());
            extensions
        };
        Arc::new(move |connection| cached.get_or_init(|| make(connection)).clone())
    }

    /// Creates the information of a connection.
    #[cfg(not(feature = "_tls-any"))]
    pub(super) fn for_connection(&self, info: C) -> RequestExtensions {
        let mut extensions = Extensions::new();
        extensions.insert(info);
        Arc::new(move |_| extensions.clone())
    }
}
