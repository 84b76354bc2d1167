//! Creates [`TlsConnectInfo`] from the result of the engine's TLS handshake.

use std::marker::PhantomData;
use std::sync::Arc;

use thalweg_engine::tls::CertificateDer;
use vocabulary::transport::server::TlsConnectInfo;

/// Connection information by the certificates that clients presented.
pub(super) struct TlsConnectInfos<C>(PhantomData<C>);

impl<C> Default for TlsConnectInfos<C> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<C: Clone> TlsConnectInfos<C> {
    /// Returns the information for a connection whose client presented these certificates, or none.
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "tonic's may be missing, and is kept")]
    pub(super) fn get(&self, info: &C, chain: &[CertificateDer<'static>]) -> Option<TlsConnectInfo<C>> {
        let certificates = (!chain.is_empty()).then(|| Arc::new(chain.to_vec()));
        Some(TlsConnectInfo::new(info.clone(), certificates))
    }
}
