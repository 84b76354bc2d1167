//! Server TLS: configuration, and the state that a server's connections share.

use std::cell::Cell;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::server::{ClientHello, ResolvesServerCert, UnbufferedServerConnection, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{KeyLogFile, RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite};

use super::buffers::BufferMemory;
use super::error::TlsError;
use super::explain::explain;
use super::handshake::{self, ALPN_H2, ALPN_HTTP1, HandshakeError};
use super::identity::{Certificate, Changes, Identity};
use super::info::TlsInfo;
use super::names::{Identities, Pairs};
use super::provider::{TlsVersion, provider, tickets};
use super::reload::{self, Recipe, Reloaded};
use super::roots;
use super::stream::TlsStream;

/// TLS configuration of a server: identities and accepted clients.
///
/// Clients must negotiate HTTP/2 by ALPN (RFC 9113 §3.3). If the server has a non-gRPC handler, they may also choose
/// HTTP/1.1, or lack ALPN. They may resume sessions by tickets, without state on the server. The ticket keys change
/// every six hours.
///
/// ```
/// use thalweg_engine::tls::{Certificate, Identity, ServerTlsConfig};
///
/// let _tls = ServerTlsConfig::new()
///     .identity(Identity::from_files("server.pem", "server.key"))
///     .client_ca_root(Certificate::from_file("clients-ca.pem"));
/// ```
#[derive(Clone, Debug)]
pub struct ServerTlsConfig {
    recipe: Source,
    timeout: Duration,
    max_handshakes: usize,
    renewal: Option<Renewal>,
}

#[derive(Clone)]
enum Source {
    Ours(ServerRecipe),
    Rustls(Arc<ServerConfig>),
}

type Renewing = Pin<Box<dyn Future<Output = Option<ServerTlsConfig>> + Send>>;

/// Called before each handshake; returns the configuration from then on, or `None` to keep the current one.
#[derive(Clone)]
struct Renewal(Arc<dyn Fn() -> Renewing + Send + Sync>);

impl fmt::Debug for Renewal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Renewal")
    }
}

#[derive(Clone, Debug)]
struct ServerRecipe {
    identities: Identities,
    client_authorities: Vec<Certificate>,
    is_client_auth_optional: bool,
    ignores_client_order: bool,
    logs_keys: bool,
    min_version: TlsVersion,
    interval: Duration,
}

/// Timeout of a handshake. A distant client needs one second, plus some for lost packets.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Concurrent handshakes. Each uses some 20 KiB. A server that accepts 5,000 connections a second with round trips of
/// 100 ms has 1,000 in progress.
const HANDSHAKES_MAX: usize = 1024;

impl ServerTlsConfig {
    /// Creates a configuration without client certificates. It needs an [`identity`](Self::identity), or one [for a
    /// name](Self::identity_for).
    pub fn new() -> Self {
        Self {
            recipe: Source::Ours(ServerRecipe {
                identities: Identities::default(),
                client_authorities: Vec::new(),
                is_client_auth_optional: false,
                ignores_client_order: false,
                logs_keys: false,
                min_version: TlsVersion::Tls12,
                interval: reload::INTERVAL,
            }),
            timeout: TIMEOUT,
            max_handshakes: HANDSHAKES_MAX,
            renewal: None,
        }
    }

    /// Creates a configuration from one of rustls, for other settings: another provider, certificates chosen by the
    /// application, or a custom verifier. Its ALPN protocols become `h2`. The only other methods that apply are
    /// [`timeout`](Self::timeout) and [`max_handshakes`](Self::max_handshakes).
    pub fn from_rustls(config: Arc<ServerConfig>) -> Self {
        let mut config = Arc::unwrap_or_clone(config);
        config.alpn_protocols = vec![ALPN_H2.to_vec()];
        config.cert_resolver = Arc::new(NoteServerName(config.cert_resolver));
        Self { recipe: Source::Rustls(Arc::new(config)), ..Self::new() }
    }

    fn ours(mut self, change: impl FnOnce(&mut ServerRecipe)) -> Self {
        if let Source::Ours(recipe) = &mut self.recipe {
            change(recipe);
        }
        self
    }

    /// Sets the default identity: for clients that ask for no name, or for one without an identity [of its
    /// own](Self::identity_for).
    pub fn identity(self, identity: impl Into<Identity>) -> Self {
        let identity = identity.into();
        self.ours(|recipe| recipe.identities.default = Some(identity))
    }

    /// Sets the identity for clients that ask for this name (SNI, RFC 6066 §3). A DNS name must be among the
    /// certificate's names. `*.example.com` covers all names with one label in that place; an exact name has
    /// precedence. A second call with the same name replaces the first.
    ///
    /// Clients that ask for another name, or for none, get [`identity`](Self::identity). Without that, their
    /// handshakes fail with the alert `access_denied`.
    ///
    /// ```
    /// use thalweg_engine::tls::{Identity, ServerTlsConfig};
    ///
    /// let _tls = ServerTlsConfig::new()
    ///     .identity_for("shop.example", Identity::from_files("shop.pem", "shop.key"))
    ///     .identity_for("*.api.example", Identity::from_files("api.pem", "api.key"));
    /// ```
    pub fn identity_for(self, name: impl Into<String>, identity: impl Into<Identity>) -> Self {
        let (name, identity) = (name.into().to_ascii_lowercase(), identity.into());
        self.ours(|recipe| {
            recipe.identities.by_name.insert(name, identity);
        })
    }

    /// Adds an identity for the DNS names in its certificate (SNI). The names are read with the certificate, so a
    /// renewed one may have others. No name may be in two of these certificates. This includes that of
    /// [`identity`](Self::identity), which also covers its own names. Identities set [for a name](Self::identity_for)
    /// have precedence.
    ///
    /// ```
    /// use thalweg_engine::tls::{Identity, ServerTlsConfig};
    ///
    /// let _tls = ServerTlsConfig::new()
    ///     .identity(Identity::from_files("default.pem", "default.key"))
    ///     .identity_for_its_names(Identity::from_files("shop.pem", "shop.key"));
    /// ```
    pub fn identity_for_its_names(self, identity: impl Into<Identity>) -> Self {
        let identity = identity.into();
        self.ours(|recipe| recipe.identities.by_certificate.push(identity))
    }

    /// Requires clients to present a certificate issued by this authority (mTLS). Each call adds an authority.
    pub fn client_ca_root(self, authority: Certificate) -> Self {
        self.ours(|recipe| recipe.client_authorities.push(authority))
    }

    /// Also accepts clients without a certificate; one that is presented is still verified. Off by default. Applies
    /// with a [`client_ca_root`](Self::client_ca_root).
    pub fn client_auth_optional(self, optional: bool) -> Self {
        self.ours(|recipe| recipe.is_client_auth_optional = optional)
    }

    /// Chooses the cipher suite by the server's order instead of the client's; off by default.
    pub fn ignore_client_order(self, ignore: bool) -> Self {
        self.ours(|recipe| recipe.ignores_client_order = ignore)
    }

    /// Sets the minimum version of TLS; TLS 1.2 by default.
    pub fn min_version(self, version: TlsVersion) -> Self {
        self.ours(|recipe| recipe.min_version = version)
    }

    /// Sets the timeout of a handshake, from accepting the connection; 10 s by default. Slower clients are
    /// disconnected.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the maximum number of concurrent handshakes; 1,024 by default. When it is exceeded, the oldest handshake
    /// is disconnected.
    pub fn max_handshakes(mut self, handshakes: usize) -> Self {
        self.max_handshakes = handshakes.max(1);
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

    /// Calls `renew` before each handshake, within its timeout. If it returns a configuration, that one applies from
    /// then on: identities, client authorities and versions, but not its timeout, number of handshakes and renewal. If
    /// that cannot be used, a warning is logged, and the previous one stays. To replace only an identity, a
    /// [`LiveIdentity`](super::LiveIdentity) costs less.
    pub fn renew_with<F, Fut>(mut self, renew: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Option<Self>> + Send + 'static,
    {
        self.renewal = Some(Renewal(Arc::new(move || Box::pin(renew()))));
        self
    }

    /// Reads and checks everything.
    ///
    /// # Errors
    /// Returns an error if there is no identity, or certificates or keys can't be read or used.
    pub(crate) fn prepare(self) -> Result<ServerTls, TlsError> {
        let config = Mutex::new(Arc::new(Config::new(self.recipe)?));
        let Self { timeout, max_handshakes, renewal, .. } = self;
        let shared = Shared { config, timeout, max_handshakes, renewal };
        Ok(ServerTls { shared: Arc::new(shared), http1: None })
    }
}

impl Default for ServerTlsConfig {
    fn default() -> Self {
        Self::new()
    }
}

/// Creates a configuration with this identity and default settings.
impl From<Identity> for ServerTlsConfig {
    fn from(identity: Identity) -> Self {
        Self::new().identity(identity)
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ours(recipe) => recipe.fmt(f),
            Self::Rustls(_) => f.write_str("rustls::ServerConfig"),
        }
    }
}

/// TLS state shared by the connections of a server.
#[derive(Clone)]
pub(crate) struct ServerTls {
    shared: Arc<Shared>,
    /// Set if clients may also negotiate HTTP/1.1, or nothing.
    http1: Option<Arc<WithHttp1>>,
}

/// The current configuration, and a copy with HTTP/1.1 after HTTP/2 in ALPN.
#[derive(Default)]
struct WithHttp1(Mutex<Option<(Arc<ServerConfig>, Arc<ServerConfig>)>>);

impl WithHttp1 {
    fn of(&self, config: Arc<ServerConfig>) -> Arc<ServerConfig> {
        let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*latest {
            Some((of, with)) if Arc::ptr_eq(of, &config) => Arc::clone(with),
            _ => {
                let mut with = ServerConfig::clone(&config);
                with.alpn_protocols.push(ALPN_HTTP1.to_vec());
                let with = Arc::new(with);
                *latest = Some((config, Arc::clone(&with)));
                with
            }
        }
    }
}

struct Shared {
    /// Replaced by the renewal.
    config: Mutex<Arc<Config>>,
    timeout: Duration,
    max_handshakes: usize,
    renewal: Option<Renewal>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Arc<Config>> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn renew(&self, renewal: &Renewal) {
        let Some(renewed) = (renewal.0)().await else { return };
        match Config::new(renewed.recipe) {
            Ok(config) => *self.lock() = Arc::new(config),
            Err(error) => {
                tracing::warn!(%error, "failed to renew the TLS configuration; the previous one stays in use");
            }
        }
    }
}

enum Config {
    Ours(Box<Reloaded<ServerRecipe>>),
    Rustls(Arc<ServerConfig>),
}

impl Config {
    fn new(source: Source) -> Result<Self, TlsError> {
        Ok(match source {
            Source::Ours(recipe) => Self::Ours(Box::new(Reloaded::new(recipe)?)),
            Source::Rustls(config) => Self::Rustls(config),
        })
    }

    /// Returns the configuration for a new connection.
    fn current(&self) -> Arc<ServerConfig> {
        match self {
            Self::Ours(reloaded) => reloaded.config(),
            Self::Rustls(config) => Arc::clone(config),
        }
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &**self.shared.lock() {
            Config::Ours(config) => config.fmt(f),
            Config::Rustls(_) => f.write_str("rustls::ServerConfig"),
        }
    }
}

impl ServerTls {
    pub(crate) fn max_handshakes(&self) -> usize {
        self.shared.max_handshakes
    }

    /// Lets clients choose between HTTP/2 and HTTP/1.1.
    pub(crate) fn with_http1(self) -> Self {
        Self { http1: Some(Arc::default()), ..self }
    }

    /// Runs the handshake with a client, within the timeout. `memory` tracks the memory of the stream's buffers from
    /// now on.
    pub(crate) async fn accept<IO>(
        &self,
        io: IO,
        memory: BufferMemory,
    ) -> Result<(TlsStream<IO, UnbufferedServerConnection>, TlsInfo), HandshakeError>
    where
        IO: AsyncRead + AsyncWrite + Unpin,
    {
        let shaking = self.shake(io, memory);
        match tokio::time::timeout(self.shared.timeout, shaking).await {
            Ok(outcome) => outcome,
            Err(_) => Err(HandshakeError::TimedOut(self.shared.timeout)),
        }
    }

    async fn shake<IO>(
        &self,
        io: IO,
        memory: BufferMemory,
    ) -> Result<(TlsStream<IO, UnbufferedServerConnection>, TlsInfo), HandshakeError>
    where
        IO: AsyncRead + AsyncWrite + Unpin,
    {
        if let Some(renewal) = &self.shared.renewal {
            self.shared.renew(renewal).await;
        }
        let config = Arc::clone(&self.shared.lock()).current();
        let config = match &self.http1 {
            Some(http1) => http1.of(config),
            None => config,
        };
        let session =
            UnbufferedServerConnection::new(config).map_err(|error| HandshakeError::Tls(explain(&error)))?;
        let mut server_name = None;
        let needs_alpn = self.http1.is_none();
        // The name is noted while the client's first message is handled, within one poll.
        let stream =
            noting(&mut server_name, handshake::shake(io, session, memory, needs_alpn, false)).await?;
        let info = TlsInfo::new(stream.session(), server_name);
        Ok((stream, info))
    }
}

/// The identities and certificates that a server's recipe reads.
#[derive(PartialEq)]
pub(super) struct Material {
    identities: Pairs,
    client_authorities: Vec<(String, Vec<CertificateDer<'static>>)>,
}

impl Recipe for ServerRecipe {
    type Material = Material;
    type Config = ServerConfig;

    fn read(&self) -> Result<Material, TlsError> {
        Ok(Material {
            identities: self.identities.read()?,
            client_authorities: self
                .client_authorities
                .iter()
                .map(Certificate::read)
                .collect::<Result<_, _>>()?,
        })
    }

    fn build(
        &self,
        material: &Material,
        former: Option<(&Material, &ServerConfig)>,
    ) -> Result<ServerConfig, TlsError> {
        let builder = ServerConfig::builder_with_provider(provider()?)
            .with_protocol_versions(self.min_version.and_newer())?;
        let builder = if material.client_authorities.is_empty() {
            builder.with_no_client_auth()
        } else {
            let mut trusted = RootCertStore::empty();
            for (place, certificates) in &material.client_authorities {
                roots::add(&mut trusted, place, certificates)?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(trusted), provider()?);
            let verifier =
                if self.is_client_auth_optional { verifier.allow_unauthenticated() } else { verifier };
            let verifier = verifier.build().map_err(|error| rustls::Error::General(error.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        };
        let certificates = Arc::new(material.identities.certificates()?);
        let mut config = builder.with_cert_resolver(Arc::new(NoteServerName(certificates)));
        config.alpn_protocols = vec![ALPN_H2.to_vec()];
        config.ignore_client_order = self.ignores_client_order;
        match former {
            // A ticket vouches for a client that was verified by the authorities of that time.
            Some((before, former)) if before.client_authorities == material.client_authorities => {
                config.ticketer = Arc::clone(&former.ticketer);
            }
            _ => {
                if let Some(tickets) = tickets()? {
                    config.ticketer = tickets;
                }
            }
        }
        if self.logs_keys {
            config.key_log = Arc::new(KeyLogFile::new());
        }
        Ok(config)
    }

    fn may_change(&self) -> Changes {
        let identities = self.identities.may_change();
        let has_files = identities.has_files || self.client_authorities.iter().any(Certificate::has_file);
        Changes { has_files, ..identities }
    }

    fn interval(&self) -> Duration {
        self.interval
    }
}

/// Notes the host that a client asks for: rustls's unbuffered API reveals it only to the certificate resolver.
#[derive(Debug)]
struct NoteServerName(Arc<dyn ResolvesServerCert>);

thread_local! {
    static SERVER_NAME: Cell<Option<Box<str>>> = const { Cell::new(None) };
}

impl ResolvesServerCert for NoteServerName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        SERVER_NAME.set(hello.server_name().map(Into::into));
        self.0.resolve(hello)
    }
}

/// Runs `shaking`, and stores the name that one of its polls notes.
async fn noting<F: Future>(server_name: &mut Option<Box<str>>, shaking: F) -> F::Output {
    let mut shaking = std::pin::pin!(shaking);
    std::future::poll_fn(|cx| {
        SERVER_NAME.set(None);
        let outcome = shaking.as_mut().poll(cx);
        if let Some(name) = SERVER_NAME.take() {
            *server_name = Some(name);
        }
        outcome
    })
    .await
}
