//! What requests are told of the connection that they come by.

use std::any::Any;
use std::sync::Arc;

use http::Extensions;
use thalweg_engine::ConnectionInfo;

#[cfg(feature = "_tls-any")]
use super::tls_connect_info::TlsConnectInfos;

/// Puts what is known of a connection into the extensions of its requests.
pub(super) type Told = Box<dyn Fn(&mut Extensions, Option<&Arc<ConnectionInfo>>) + Send + Sync>;

/// What makes [`Told`] of the information that a server's connections give of themselves.
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

    /// For one connection. Over TLS there is what it was agreed on, too, once it was.
    #[cfg(feature = "_tls-any")]
    pub(super) fn of(&self, info: C) -> Told {
        let infos = Arc::clone(&self.tls);
        let of_tls = std::sync::OnceLock::new();
        Box::new(move |extensions, connection| {
            if let Some(tls) = connection.and_then(|connection| connection.tls())
                && let Some(of_tls) =
                    of_tls.get_or_init(|| infos.get(&info, tls.peer_certificates().unwrap_or_default()))
            {
                extensions.insert(of_tls.clone());
            }
            extensions.insert(info.clone());
        })
    }

    /// For one connection.
    #[cfg(not(feature = "_tls-any"))]
    pub(super) fn of(&self, info: C) -> Told {
        Box::new(move |extensions, _| {
            extensions.insert(info.clone());
        })
    }
}
