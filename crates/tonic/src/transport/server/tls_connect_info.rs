//! Creates tonic's [`TlsConnectInfo`] from the result of the engine's TLS handshake.
//!
//! tonic creates one only from tokio-rustls's `TlsStream`. Therefore this module performs an in-memory handshake in
//! which the client presents the certificates and both sides accept everything. It never carries any data.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use thalweg_engine::tls::CertificateDer;
use thalweg_engine::tls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use thalweg_engine::tls::rustls::client::{ClientConnection, ResolvesClientCert};
use thalweg_engine::tls::rustls::crypto::CryptoProvider;
use thalweg_engine::tls::rustls::pki_types::{ServerName, UnixTime};
use thalweg_engine::tls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use thalweg_engine::tls::rustls::server::{ClientHello, ResolvesServerCert};
use thalweg_engine::tls::rustls::sign::{CertifiedKey, Signer, SigningKey};
use thalweg_engine::tls::rustls::version::TLS13;
use thalweg_engine::tls::rustls::{
    ClientConfig, DigitallySignedStruct, DistinguishedName, Error, NamedGroup, ServerConfig,
    SignatureAlgorithm, SignatureScheme,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsAcceptor;
use vocabulary::transport::server::{Connected, TlsConnectInfo};

/// Connection information by the certificates that clients presented.
pub(super) struct TlsConnectInfos<C> {
    cached: Mutex<HashMap<Vec<CertificateDer<'static>>, TlsConnectInfo<C>>>,
}

/// Maximum number of cached entries; an in-memory handshake takes about 100 µs.
const CACHED_MAX: usize = 256;

impl<C> Default for TlsConnectInfos<C> {
    fn default() -> Self {
        Self { cached: Mutex::default() }
    }
}

impl<C: Clone + Send + Sync + 'static> TlsConnectInfos<C> {
    /// Returns the information for a connection whose client presented these certificates, or none.
    pub(super) fn get(&self, info: &C, chain: &[CertificateDer<'static>]) -> Option<TlsConnectInfo<C>> {
        let known = self.cached.lock().unwrap_or_else(PoisonError::into_inner).get(chain).cloned();
        if let Some(mut known) = known {
            known.get_mut().clone_from(info);
            return Some(known);
        }
        let cached = handshake(info.clone(), chain);
        let cached = cached.inspect_err(|error| tracing::warn!(%error, "missing TlsConnectInfo")).ok()?;
        let mut all = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= CACHED_MAX {
            all.clear();
        }
        all.insert(chain.to_vec(), cached.clone());
        Some(cached)
    }
}

fn handshake<C>(info: C, chain: &[CertificateDer<'static>]) -> io::Result<TlsConnectInfo<C>>
where
    C: Clone + Send + Sync + 'static,
{
    let (client, server) = handshake_sides(chain).map_err(io::Error::other)?;
    let mut accepting = TlsAcceptor::from(server).accept(InMemory { client, info });
    // The client responds at once, so the handshake never waits.
    match Pin::new(&mut accepting).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(stream) => Ok(stream?.connect_info()),
        Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
    }
}

/// Creates a client that presents `chain`, and the server's configuration.
fn handshake_sides(
    chain: &[CertificateDer<'static>],
) -> Result<(ClientConnection, Arc<ServerConfig>), Error> {
    let mut provider = thalweg_engine::tls::provider().map_err(|error| Error::General(error.to_string()))?;
    // X25519 is the cheapest group.
    if let Some(group) = provider.kx_groups.iter().find(|group| group.name() == NamedGroup::X25519) {
        provider = Arc::new(CryptoProvider { kx_groups: vec![*group], ..CryptoProvider::clone(&provider) });
    }
    let client = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AcceptsAll));
    let client = match chain {
        [] => client.with_no_client_auth(),
        chain => client.with_client_cert_resolver(Arc::new(FixedCertificate::new(chain.to_vec()))),
    };
    let mut server = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(Arc::new(AcceptsAll))
        // Any byte will do, since the certificate is never parsed.
        .with_cert_resolver(Arc::new(FixedCertificate::new(vec![CertificateDer::from_slice(&[0])])));
    server.send_tls13_tickets = 0;
    let client =
        ClientConnection::new(Arc::new(client), ServerName::from(std::net::IpAddr::from([127, 0, 0, 1])))?;
    Ok((client, Arc::new(server)))
}

/// A byte stream with a client at the other end.
struct InMemory<C> {
    client: ClientConnection,
    info: C,
}

impl<C: Clone + Send + Sync + 'static> Connected for InMemory<C> {
    type ConnectInfo = C;

    fn connect_info(&self) -> C {
        self.info.clone()
    }
}

impl<C> Unpin for InMemory<C> {}

impl<C> AsyncRead for InMemory<C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut space = into.initialize_unfilled();
        let len = self.client.write_tls(&mut space)?;
        into.advance(len);
        Poll::Ready(Ok(()))
    }
}

impl<C> AsyncWrite for InMemory<C> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let len = bytes.len();
        while !bytes.is_empty() {
            self.client.read_tls(&mut bytes)?;
            self.client.process_new_packets().map_err(io::Error::other)?;
        }
        Poll::Ready(Ok(len))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

const SCHEME: SignatureScheme = SignatureScheme::ED25519;

/// Certificates without their key; signatures are dummies.
#[derive(Debug)]
struct FixedCertificate(Arc<CertifiedKey>);

impl FixedCertificate {
    fn new(chain: Vec<CertificateDer<'static>>) -> Self {
        Self(Arc::new(CertifiedKey::new(chain, Arc::new(DummyKey))))
    }
}

impl ResolvesClientCert for FixedCertificate {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

impl ResolvesServerCert for FixedCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

#[derive(Debug)]
struct DummyKey;

impl SigningKey for DummyKey {
    fn choose_scheme(&self, _: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        Some(Box::new(Self))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::ED25519
    }
}

impl Signer for DummyKey {
    fn sign(&self, _: &[u8]) -> Result<Vec<u8>, Error> {
        Ok(vec![0])
    }

    fn scheme(&self) -> SignatureScheme {
        SCHEME
    }
}

/// Accepts any certificate and signature.
#[derive(Debug)]
struct AcceptsAll;

impl ServerCertVerifier for AcceptsAll {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SCHEME]
    }
}

impl ClientCertVerifier for AcceptsAll {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SCHEME]
    }
}

impl<C> fmt::Debug for TlsConnectInfos<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsConnectInfos").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use vocabulary::transport::server::TcpConnectInfo;

    use super::*;

    fn at(port: u16) -> TcpConnectInfo {
        TcpConnectInfo { local_addr: None, remote_addr: Some(([127, 0, 0, 1], port).into()) }
    }

    #[test]
    fn handshake_runs_once_per_certificate_chain() {
        let infos = TlsConnectInfos::default();
        let long = CertificateDer::from(vec![7; 30_000]);
        let chains = [vec![], vec![CertificateDer::from(vec![1])], vec![long, CertificateDer::from(vec![1])]];
        for port in [1, 2] {
            for chain in &chains {
                let info = infos.get(&at(port), chain).unwrap();
                assert_eq!(info.get_ref().remote_addr(), at(port).remote_addr());
                let presented = info.peer_certs().map(|certificates| certificates.to_vec());
                assert_eq!(presented.unwrap_or_default(), *chain);
                assert_eq!(info.peer_certs().is_some(), !chain.is_empty());
            }
            assert_eq!(infos.cached.lock().unwrap().len(), chains.len());
        }
    }

    #[test]
    fn cache_is_bounded() {
        let infos = TlsConnectInfos::default();
        for n in 0..=CACHED_MAX {
            infos.get(&at(1), &[CertificateDer::from(n.to_le_bytes().to_vec())]).unwrap();
        }
        assert_eq!(infos.cached.lock().unwrap().len(), 1);
    }
}
