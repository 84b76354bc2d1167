//! Client TLS: configuration, and the state that a channel's connections share.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, UnbufferedClientConnection};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, TrustAnchor, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, KeyLogFile, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite};

use super::buffers::BufferMemory;
use super::error::TlsError;
use super::explain::explain;
use super::handshake::{self, ALPN_H2, ALPN_HTTP1, HandshakeError};
use super::identity::{Certificate, Changes, Identity, Pair};
use super::provider::{TlsVersion, provider};
use super::reload::{self, Recipe, Reloaded};
use super::roots;
use super::stream::TlsStream;

/// TLS configuration of a channel: trusted authorities, identity, and the name to verify.
///
/// The server is verified against the authorities named here, or the platform's if there are none. HTTP/2 is
/// negotiated by ALPN (RFC 9113 §3.3). Sessions are resumed: the second connection to a server verifies no certificate
/// again.
///
/// ```
/// use thalweg_engine::tls::{Certificate, ClientTlsConfig, Identity};
///
/// let _tls = ClientTlsConfig::new()
///     .ca_certificate(Certificate::from_file("ca.pem"))
///     .identity(Identity::from_files("client.pem", "client.key"))
///     .domain_name("greeter.example");
/// ```
#[derive(Clone, Debug)]
pub struct ClientTlsConfig {
    recipe: Source,
    domain_name: Option<String>,
    assume_http2: bool,
    timeout: Option<Duration>,
}

#[derive(Clone)]
enum Source {
    Ours(ClientRecipe),
    Rustls(Arc<ClientConfig>),
}

#[derive(Clone, Debug)]
struct ClientRecipe {
    authorities: Vec<Certificate>,
    anchors: Option<Vec<TrustAnchor<'static>>>,
    roots: RootSets,
    /// Replaces the verification against authorities.
    verifier: Option<Verifier>,
    identity: Option<Identity>,
    logs_keys: bool,
    min_version: TlsVersion,
    interval: Duration,
}

#[derive(Clone, Debug)]
enum Verifier {
    Custom(Arc<dyn ServerCertVerifier>),
    AcceptsAny,
}

/// Authorities trusted in addition to those that are named.
#[derive(Clone, Debug, Default)]
struct RootSets {
    platform: bool,
    #[cfg(feature = "tls-webpki-roots")]
    webpki: bool,
}

impl ClientTlsConfig {
    /// Creates a configuration that trusts the platform's authorities, unless others are named.
    pub fn new() -> Self {
        Self {
            recipe: Source::Ours(ClientRecipe {
                authorities: Vec::new(),
                anchors: None,
                roots: RootSets::default(),
                verifier: None,
                identity: None,
                logs_keys: false,
                min_version: TlsVersion::Tls12,
                interval: reload::INTERVAL,
            }),
            domain_name: None,
            assume_http2: false,
            timeout: None,
        }
    }

    /// Creates a configuration from one of rustls, for other settings: another provider, or a custom verifier. Its ALPN
    /// protocols become `h2`. The only other methods that apply are [`domain_name`](Self::domain_name),
    /// [`assume_http2`](Self::assume_http2) and [`timeout`](Self::timeout).
    pub fn from_rustls(config: Arc<ClientConfig>) -> Self {
        let mut config = Arc::unwrap_or_clone(config);
        config.alpn_protocols = vec![ALPN_H2.to_vec()];
        Self { recipe: Source::Rustls(Arc::new(config)), ..Self::new() }
    }

    fn ours(mut self, change: impl FnOnce(&mut ClientRecipe)) -> Self {
        if let Source::Ours(recipe) = &mut self.recipe {
            change(recipe);
        }
        self
    }

    /// Sets the name that the server's certificate must be valid for, and that is sent as SNI. By default it is the
    /// host of the channel's authority, or of its target. As in grpc-go, it is also the `:authority` of calls, unless
    /// the channel sets one.
    pub fn domain_name(mut self, name: impl Into<String>) -> Self {
        self.domain_name = Some(name.into());
        self
    }

    /// Trusts an authority, instead of the platform's. Call [`with_native_roots`](Self::with_native_roots) to trust
    /// both.
    pub fn ca_certificate(self, authority: Certificate) -> Self {
        self.ours(|recipe| recipe.authorities.push(authority))
    }

    /// Trusts several authorities: see [`ca_certificate`](Self::ca_certificate).
    pub fn ca_certificates(self, authorities: impl IntoIterator<Item = Certificate>) -> Self {
        self.ours(|recipe| recipe.authorities.extend(authorities))
    }

    /// Trusts authorities given by name and key only, instead of the platform's. Call
    /// [`with_native_roots`](Self::with_native_roots) to trust both. If `anchors` is empty and no others are named, no
    /// server is trusted.
    pub fn trust_anchors(self, anchors: impl IntoIterator<Item = TrustAnchor<'static>>) -> Self {
        self.ours(|recipe| recipe.anchors.get_or_insert_default().extend(anchors))
    }

    /// Trusts the platform's authorities in addition to those that are named. `SSL_CERT_FILE` and `SSL_CERT_DIR`
    /// replace them, as for OpenSSL.
    pub fn with_native_roots(self) -> Self {
        self.ours(|recipe| recipe.roots.platform = true)
    }

    /// Trusts Mozilla's authorities, which are compiled in.
    #[cfg(feature = "tls-webpki-roots")]
    pub fn with_webpki_roots(self) -> Self {
        self.ours(|recipe| recipe.roots.webpki = true)
    }

    /// Trusts all authorities available without a file: the platform's, and those that are compiled in.
    pub fn with_enabled_roots(self) -> Self {
        let config = self.with_native_roots();
        #[cfg(feature = "tls-webpki-roots")]
        let config = config.with_webpki_roots();
        config
    }

    /// Sets the identity to present to a server that requests a certificate (mTLS).
    pub fn identity(self, identity: impl Into<Identity>) -> Self {
        let identity = identity.into();
        self.ours(|recipe| recipe.identity = Some(identity))
    }

    /// Accepts a server that does not negotiate HTTP/2 by ALPN, unless it chooses another protocol: some proxies lack
    /// ALPN. Off by default.
    pub fn assume_http2(mut self, assume: bool) -> Self {
        self.assume_http2 = assume;
        self
    }

    /// Sets the minimum version of TLS; TLS 1.2 by default.
    pub fn min_version(self, version: TlsVersion) -> Self {
        self.ours(|recipe| recipe.min_version = version)
    }

    /// Sets the timeout of the handshake. By default only the channel's connect timeout applies.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the minimum interval of re-reading files, which happens when a connection starts; 10 s by default.
    pub fn reload_interval(self, interval: Duration) -> Self {
        self.ours(|recipe| recipe.interval = interval)
    }

    /// Writes each connection's secrets to the file named by the environment variable `SSLKEYLOGFILE`, for Wireshark.
    /// Off by default. Without the variable nothing is written.
    pub fn use_key_log(self) -> Self {
        self.ours(|recipe| recipe.logs_keys = true)
    }

    /// Uses `verifier` to verify servers, instead of the named authorities.
    pub fn verifier(self, verifier: Arc<dyn ServerCertVerifier>) -> Self {
        self.ours(|recipe| recipe.verifier = Some(Verifier::Custom(verifier)))
    }

    /// Accepts any server certificate. An attacker on the network path can then read and change everything: use this
    /// for experiments only.
    pub fn danger_accept_any_certificate(self) -> Self {
        self.ours(|recipe| recipe.verifier = Some(Verifier::AcceptsAny))
    }

    /// Reads and checks everything, as a channel to `host` does when it is created.
    ///
    /// # Errors
    /// Returns an error if certificates or keys can't be read or used, or if no certificate can be valid for the name.
    pub fn check(&self, host: &str) -> Result<(), TlsError> {
        self.clone().prepare(host).map(drop)
    }

    /// Returns the name to verify, if it was set.
    pub(crate) fn name(&self) -> Option<&str> {
        self.domain_name.as_deref()
    }

    /// Prepares connections to `host`, unless another name was set.
    pub(crate) fn prepare(self, host: &str) -> Result<ClientTls, TlsError> {
        let name = self.domain_name.as_deref().unwrap_or(host);
        let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        let server = ServerName::try_from(name.to_owned()).map_err(|_| TlsError::Name(name.to_owned()))?;
        let config = match self.recipe {
            Source::Ours(recipe) => Config::Ours(Box::new(Reloaded::new(recipe)?)),
            Source::Rustls(config) => Config::Rustls(config),
        };
        Ok(ClientTls(Arc::new(Shared {
            server,
            config,
            needs_alpn: !self.assume_http2,
            timeout: self.timeout,
        })))
    }
}

impl Default for ClientTlsConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ours(recipe) => recipe.fmt(f),
            Self::Rustls(_) => f.write_str("rustls::ClientConfig"),
        }
    }
}

/// TLS state shared by the connections of a channel.
#[derive(Clone, Debug)]
pub(crate) struct ClientTls(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    server: ServerName<'static>,
    config: Config,
    needs_alpn: bool,
    timeout: Option<Duration>,
}

enum Config {
    Ours(Box<Reloaded<ClientRecipe>>),
    Rustls(Arc<ClientConfig>),
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ours(config) => config.fmt(f),
            Self::Rustls(_) => f.write_str("rustls::ClientConfig"),
        }
    }
}

impl ClientTls {
    /// Runs the handshake with an HTTP/2 server. `memory` tracks the memory of the stream's buffers from now on.
    pub(crate) async fn connect<IO>(
        &self,
        io: IO,
        memory: BufferMemory,
    ) -> Result<TlsStream<IO, UnbufferedClientConnection>, HandshakeError>
    where
        IO: AsyncRead + AsyncWrite + Unpin,
    {
        self.shake(io, memory, ALPN_H2, self.0.needs_alpn).await
    }

    /// Like [`connect`](Self::connect), for HTTP/1.1. ALPN is optional: HTTP/1.1-only servers often lack it.
    pub(crate) async fn connect_http1<IO>(
        &self,
        io: IO,
        memory: BufferMemory,
    ) -> Result<TlsStream<IO, UnbufferedClientConnection>, HandshakeError>
    where
        IO: AsyncRead + AsyncWrite + Unpin,
    {
        let outcome = self.shake(io, memory, ALPN_HTTP1, false).await;
        outcome.map_err(|error| match error {
            HandshakeError::NoAlpn { .. } => HandshakeError::Tls(
                "the server does not speak HTTP/1.1 (protocol `http/1.1` of ALPN)".to_owned(),
            ),
            other => other,
        })
    }

    async fn shake<IO>(
        &self,
        io: IO,
        memory: BufferMemory,
        protocol: &[u8],
        needs_alpn: bool,
    ) -> Result<TlsStream<IO, UnbufferedClientConnection>, HandshakeError>
    where
        IO: AsyncRead + AsyncWrite + Unpin,
    {
        let config = match &self.0.config {
            Config::Ours(reloaded) => reloaded.config(),
            Config::Rustls(config) => Arc::clone(config),
        };
        let (server, alpn) = (self.0.server.clone(), vec![protocol.to_vec()]);
        let session = UnbufferedClientConnection::new_with_alpn(config, server, alpn)
            .map_err(|error| HandshakeError::Tls(explain(&error)))?;
        let shaking = handshake::shake(io, session, memory, needs_alpn, true);
        match self.0.timeout {
            Some(time) => {
                let outcome = tokio::time::timeout(time, shaking).await;
                outcome.unwrap_or(Err(HandshakeError::TimedOut(time)))
            }
            None => shaking.await,
        }
    }
}

/// The files and certificates that a client's recipe reads.
#[derive(PartialEq)]
struct Material {
    authorities: Vec<(String, Vec<CertificateDer<'static>>)>,
    identity: Option<Pair>,
}

impl Recipe for ClientRecipe {
    type Material = Material;
    type Config = ClientConfig;

    fn read(&self) -> Result<Material, TlsError> {
        Ok(Material {
            authorities: self.authorities.iter().map(Certificate::read).collect::<Result<_, _>>()?,
            identity: self.identity.as_ref().map(Identity::read).transpose()?,
        })
    }

    fn build(
        &self,
        material: &Material,
        _: Option<(&Material, &ClientConfig)>,
    ) -> Result<ClientConfig, TlsError> {
        let provider = provider()?;
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(self.min_version.and_newer())?;
        let builder = match &self.verifier {
            Some(Verifier::Custom(verifier)) => {
                builder.dangerous().with_custom_certificate_verifier(Arc::clone(verifier))
            }
            Some(Verifier::AcceptsAny) => {
                builder.dangerous().with_custom_certificate_verifier(Arc::new(Unverified(provider)))
            }
            None => builder.with_root_certificates(self.trusted(material)?),
        };
        let mut config = match &material.identity {
            None => builder.with_no_client_auth(),
            Some(pair) => {
                let key = rustls::sign::SingleCertAndKey::from(pair.certified_key()?);
                builder.with_client_cert_resolver(Arc::new(key))
            }
        };
        config.alpn_protocols = vec![ALPN_H2.to_vec()];
        config.resumption = Resumption::in_memory_sessions(SESSIONS_KEPT);
        if self.logs_keys {
            config.key_log = Arc::new(KeyLogFile::new());
        }
        Ok(config)
    }

    fn may_change(&self) -> Changes {
        let identity = self.identity.as_ref().map(Identity::may_change).unwrap_or_default();
        let has_files = identity.has_files || self.authorities.iter().any(Certificate::has_file);
        Changes { has_files, ..identity }
    }

    fn interval(&self) -> Duration {
        self.interval
    }
}

/// Number of TLS sessions kept. A channel has one server, or a few with one name.
const SESSIONS_KEPT: usize = 8;

impl ClientRecipe {
    fn trusted(&self, material: &Material) -> Result<Arc<RootCertStore>, TlsError> {
        #[cfg(feature = "tls-webpki-roots")]
        let has_webpki_roots = self.roots.webpki;
        #[cfg(not(feature = "tls-webpki-roots"))]
        let has_webpki_roots = false;
        if material.authorities.is_empty() && !has_webpki_roots && self.anchors.is_none() {
            return roots::platform();
        }
        let mut trusted: RootCertStore = self.anchors.iter().flatten().cloned().collect();
        for (place, certificates) in &material.authorities {
            roots::add(&mut trusted, place, certificates)?;
        }
        if self.roots.platform {
            match roots::platform() {
                Ok(platform) => trusted.roots.extend(platform.roots.iter().cloned()),
                // They are optional in addition to others.
                Err(error) => tracing::warn!(%error, "continuing without the platform's root certificates"),
            }
        }
        #[cfg(feature = "tls-webpki-roots")]
        if has_webpki_roots {
            trusted.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        }
        Ok(Arc::new(trusted))
    }
}

/// Accepts any certificate. The server still has to prove that it has the private key.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
