//! A proxy with the state of its connections: [`ReadyProxy`].

use super::url::Proxy;
#[cfg(feature = "tls")]
use crate::tls::ClientTls;

/// A proxy with the TLS state that its connections share.
#[derive(Clone, Debug)]
pub(crate) struct ReadyProxy {
    pub(crate) proxy: Proxy,
    /// `None` if it is connected without TLS.
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<ClientTls>,
}
