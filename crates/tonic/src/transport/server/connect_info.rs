//! Connection information for requests.

use std::any::Any;
use std::sync::Arc;

use http::Extensions;
use thalweg_engine::ConnectionInfo;

#[cfg(feature = "_tls-any")]
use super::tls_connect_info::TlsConnectInfos;

/// Returns the extensions with a connection's information for its requests.
pub(super) type Told = Arc<dyn Fn(Option<&Arc<ConnectionInfo>>) -> Extensions + Send + Sync>;

/// Creates [`Told`] from the information that a server's connections provide.
pub(super) struct Telling<C> {
    #[cfg(feature = "_tls-any")]
    tls: Arc<TlsConnectInfos<C>>,
    #[cfg(not(feature = "_tls-any"))]
    of: std::marker::PhantomData<C>,
}

impl<C: Any + Clone + Send + Sync> Telling<C> {
    pub(super) fn new() -> Self {
        Self {
            #[cfg(feature = "_tls-any")]
            tls: Arc::default(),
            #[cfg(not(feature = "_tls-any"))]
            of: std::marker::PhantomData,
        }
    }

    /// Creates the information of a connection, including its TLS information.
    #[cfg(feature = "_tls-any")]
    pub(super) fn of(&self, info: C) -> Told {
        let infos = Arc::clone(&self.tls);
        // Created at the first request, when the handshake is complete.
        let known = std::sync::OnceLock::new();
        let make = move |connection: Option<&Arc<ConnectionInfo>>| {
            let mut told = Extensions::new();
            if let Some(tls) = connection.and_then(|connection| connection.tls())
                && let Some(of_tls) = infos.get(&info, tls.peer_certificates().unwrap_or_default())
            {
                told.insert(of_tls);
            }
            told.insert(info.clone());
            told
        };
        Arc::new(move |connection| known.get_or_init(|| make(connection)).clone())
    }

    /// Creates the information of a connection.
    #[cfg(not(feature = "_tls-any"))]
    pub(super) fn of(&self, info: C) -> Told {
        let mut told = Extensions::new();
        told.insert(info);
        Arc::new(move |_| told.clone())
    }
}
