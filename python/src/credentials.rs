//! Credentials of channels and servers, and what servers know of authenticated clients.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use thalweg_core::{Code, Status};
use thalweg_engine::server::{Router, ServerMethod};
use thalweg_engine::tls::{Certificate, ClientTlsConfig, Identity, ServerTlsConfig, TlsInfo};
use thalweg_engine::{ChannelConfig, ConnectionInfo};
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

/// Connections within the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocalKind {
    Uds,
    Tcp,
}

impl LocalKind {
    fn new(is_uds: bool) -> Self {
        if is_uds { Self::Uds } else { Self::Tcp }
    }

    /// Checks an address or target.
    ///
    /// # Errors
    /// Returns `ValueError` if it may be on another machine, or of the other kind.
    pub(crate) fn check(self, address: &str) -> PyResult<()> {
        let is_uds = address.starts_with("unix:") || address.starts_with("unix-abstract:");
        let (is_right, expected) = match self {
            Self::Uds => (is_uds, "a Unix socket, such as unix:///run/app.sock"),
            Self::Tcp => (!is_uds && is_loopback(address), "a loopback address, such as localhost:50051"),
        };
        if is_right {
            return Ok(());
        }
        Err(PyValueError::new_err(format!("local credentials do not apply to `{address}`; use {expected}")))
    }
}

fn is_loopback(target: &str) -> bool {
    let name = ["dns:", "ipv4:", "ipv6:"].iter().find_map(|scheme| target.strip_prefix(scheme));
    let hosts = name.unwrap_or(target).trim_start_matches('/');
    hosts.split(',').all(|it| {
        let host = match it.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => it.rsplit_once(':').map_or(it, |(host, _)| host),
        };
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
    })
}

/// Credentials of a channel.
#[pyclass(frozen, module = "thalweg._native")]
pub(crate) struct ChannelCredentials(ChannelSecurity);

enum ChannelSecurity {
    Insecure,
    Tls(Box<ClientTlsConfig>),
    Local(LocalKind),
}

#[pymethods]
impl ChannelCredentials {
    #[staticmethod]
    fn insecure() -> Self {
        Self(ChannelSecurity::Insecure)
    }

    #[staticmethod]
    fn local(is_uds: bool) -> Self {
        Self(ChannelSecurity::Local(LocalKind::new(is_uds)))
    }

    /// Creates credentials of TLS. Without `root_certificates` and `roots_path`, the platform's authorities and
    /// Mozilla's are trusted. The file at `roots_path` is read again when it has changed.
    #[staticmethod]
    fn ssl(
        root_certificates: Option<&[u8]>,
        roots_path: Option<PathBuf>,
        private_key: Option<&[u8]>,
        certificate_chain: Option<&[u8]>,
    ) -> PyResult<Self> {
        let config = ClientTlsConfig::new();
        let mut config = match (root_certificates, roots_path) {
            (Some(pem), _) => config.ca_certificate(Certificate::from_pem(pem)),
            (None, Some(path)) => config.ca_certificate(Certificate::from_file(path)),
            (None, None) => {
                let all = config.clone().with_enabled_roots();
                // A container may have no authorities of its own.
                if all.check("localhost").is_ok() { all } else { config.with_webpki_roots() }
            }
        };
        match (private_key, certificate_chain) {
            (Some(key), Some(chain)) => config = config.identity(Identity::from_pem(chain, key)),
            (None, None) => {}
            (Some(_), None) => return Err(incomplete("private_key", "certificate_chain")),
            (None, Some(_)) => return Err(incomplete("certificate_chain", "private_key")),
        }
        Ok(Self(ChannelSecurity::Tls(Box::new(config))))
    }
}

fn incomplete(given: &str, missing: &str) -> PyErr {
    PyValueError::new_err(format!("{given} was given without {missing}; give both or neither"))
}

impl ChannelCredentials {
    /// Sets the credentials of a channel to `target`. `name` replaces the name that the server's certificate must be
    /// valid for.
    ///
    /// # Errors
    /// Returns `ValueError` if certificates or keys cannot be used, or if the target is not local.
    pub(crate) fn apply(
        this: Option<&Self>,
        target: &str,
        name: Option<&str>,
        config: &mut ChannelConfig,
    ) -> PyResult<()> {
        match this.map(|it| &it.0) {
            None | Some(ChannelSecurity::Insecure) => {}
            Some(ChannelSecurity::Local(kind)) => kind.check(target)?,
            Some(ChannelSecurity::Tls(tls)) => {
                let tls = (**tls).clone();
                let tls = if let Some(name) = name { tls.domain_name(name) } else { tls };
                // The channel itself is created later. Its name is checked then.
                tls.check("localhost").map_err(|error| PyValueError::new_err(error.to_string()))?;
                config.tls = Some(tls);
            }
        }
        Ok(())
    }
}

/// Credentials of a server.
#[pyclass(frozen, module = "thalweg._native")]
pub(crate) struct ServerCredentials(ServerSecurity);

pub(crate) enum ServerSecurity {
    Insecure,
    Tls(Box<TlsSource>),
    Local(LocalKind),
}

/// TLS settings of a server.
pub(crate) struct TlsSource {
    initial: CertificateConfiguration,
    /// Returns other settings, or `None` to keep the current ones.
    fetcher: Option<Py<PyAny>>,
    requires_client: bool,
}

/// Pairs of private keys and certificate chains, and the authorities of clients. In PEM.
#[derive(Clone, FromPyObject)]
pub(crate) struct CertificateConfiguration(Vec<(Vec<u8>, Vec<u8>)>, Option<Vec<u8>>);

impl CertificateConfiguration {
    fn tls(&self, requires_client: bool) -> ServerTlsConfig {
        let mut tls = ServerTlsConfig::new();
        for (index, (key, chain)) in self.0.iter().enumerate() {
            let identity = Identity::from_pem(chain, key);
            tls = if index == 0 { tls.identity(identity) } else { tls.identity_for_its_names(identity) };
        }
        // A client is not asked for a certificate that it need not have, as in grpcio.
        match &self.1 {
            Some(roots) if requires_client => tls.client_ca_root(Certificate::from_pem(roots)),
            _ => tls,
        }
    }
}

#[pymethods]
impl ServerCredentials {
    #[staticmethod]
    fn insecure() -> Self {
        Self(ServerSecurity::Insecure)
    }

    #[staticmethod]
    fn local(is_uds: bool) -> Self {
        Self(ServerSecurity::Local(LocalKind::new(is_uds)))
    }

    /// Creates credentials of TLS. `fetcher`, if given, is called without arguments before each handshake, on a thread
    /// of its own, and returns a configuration like `initial`, or `None` to keep the current one.
    #[staticmethod]
    #[pyo3(signature = (initial, requires_client, fetcher = None))]
    fn ssl(initial: CertificateConfiguration, requires_client: bool, fetcher: Option<Py<PyAny>>) -> Self {
        Self(ServerSecurity::Tls(Box::new(TlsSource { initial, fetcher, requires_client })))
    }
}

impl ServerCredentials {
    pub(crate) fn security(&self) -> &ServerSecurity {
        &self.0
    }
}

impl TlsSource {
    /// Returns the settings for the engine.
    pub(crate) fn config(&self, py: Python<'_>, handshake_timeout: Duration) -> ServerTlsConfig {
        let tls = self.initial.tls(self.requires_client).timeout(handshake_timeout);
        let Some(fetcher) = &self.fetcher else { return tls };
        let (fetcher, requires_client) = (fetcher.clone_ref(py), self.requires_client);
        let fetcher = Arc::new(fetcher);
        tls.renew_with(move || {
            let fetcher = Arc::clone(&fetcher);
            async move {
                // The GIL is not taken on an I/O thread.
                let fetched = tokio::task::spawn_blocking(move || {
                    Python::try_attach(|py| fetch(py, &fetcher)).flatten()
                });
                let configuration = fetched.await.ok().flatten()?;
                Some(configuration.tls(requires_client))
            }
        })
    }
}

/// Calls the fetcher. It has logged its own exceptions.
fn fetch(py: Python<'_>, fetcher: &Py<PyAny>) -> Option<CertificateConfiguration> {
    let configuration = fetcher.call0(py).and_then(|result| result.extract(py));
    configuration.unwrap_or_else(|error| {
        error.write_unraisable(py, Some(fetcher.bind(py)));
        None
    })
}

/// Reports that a server cannot use its credentials.
pub(crate) fn unusable(error: impl std::fmt::Display) -> PyErr {
    PyRuntimeError::new_err(format!("the server's credentials cannot be used: {error}"))
}

/// Returns whether a client of a server with local credentials is on this machine.
pub(crate) fn is_local(connection: &ConnectionInfo) -> bool {
    connection.remote_addr().is_none_or(|address| address.ip().to_canonical().is_loopback())
}

/// Router of connections that a server with local credentials refuses.
#[derive(Debug)]
pub(crate) struct NotLocal;

impl Router for NotLocal {
    fn find(&self, _: &[u8]) -> Result<Arc<ServerMethod>, Status> {
        Err(Status::new(
            Code::Unavailable,
            "the server's local credentials accept connections of its machine only",
        ))
    }
}

/// A property of an authenticated connection, and its values.
pub(crate) type Property = (String, Vec<Vec<u8>>);

/// Properties of connections under local credentials.
pub(crate) fn local_auth_context() -> Vec<Property> {
    vec![property("transport_security_type", "local"), property("security_level", PRIVATE)]
}

const PRIVATE: &str = "TSI_PRIVACY_AND_INTEGRITY";

/// Returns the properties of a server's connection by grpcio's names: its security, and with mTLS those of the client's
/// certificate.
pub(crate) fn auth_context(connection: &ConnectionInfo) -> Vec<Property> {
    let Some(tls) = connection.tls() else {
        return vec![
            property("transport_security_type", "insecure"),
            property("security_level", "TSI_SECURITY_NONE"),
        ];
    };
    let mut properties = vec![property("transport_security_type", "ssl")];
    add_certificates(&mut properties, tls);
    properties.push(property("security_level", PRIVATE));
    properties.push(property("ssl_session_reused", if tls.is_resumed() { "true" } else { "false" }));
    if let Some(name) = tls.server_name() {
        properties.push(property("ssl_requested_server_name", name));
    }
    properties.push(property("ssl_tls_version", tls.version()));
    if !tls.key_exchange().is_empty() {
        properties.push(property("ssl_negotiated_key_exchange_group", tls.key_exchange()));
    }
    properties
}

fn property(name: &str, value: &str) -> Property {
    (name.to_owned(), vec![value.as_bytes().to_vec()])
}

fn add_certificates(properties: &mut Vec<Property>, tls: &TlsInfo) {
    let Some(chain) = tls.peer_certificates() else { return };
    let Some((_, certificate)) = chain.first().and_then(|der| X509Certificate::from_der(der).ok()) else {
        return;
    };
    properties.push(property("x509_subject", &subject(&certificate)));
    if let Some(name) = certificate.subject().iter_common_name().last() {
        properties.push(("x509_common_name".to_owned(), vec![name.as_slice().to_vec()]));
    }
    properties.push(property("x509_pem_cert", &pem(chain[0].as_ref())));
    if chain.len() > 1 {
        let all: String = chain.iter().map(|der| pem(der.as_ref())).collect();
        properties.push(property("x509_pem_cert_chain", &all));
    }
    let mut names = Names::default();
    if let Ok(Some(extension)) = certificate.subject_alternative_name() {
        extension.value.general_names.iter().for_each(|name| names.add(name));
    }
    names.add_to(properties);
}

/// Returns the subject as RFC 4514 writes it: the most specific part first.
fn subject(certificate: &X509Certificate<'_>) -> String {
    let text = certificate.subject().to_string();
    let mut parts: Vec<_> = text.split(", ").collect();
    parts.reverse();
    parts.join(",")
}

/// The names in a certificate.
#[derive(Default)]
struct Names {
    all: Vec<Vec<u8>>,
    by_kind: [Vec<Vec<u8>>; 4],
}

/// Properties with the names of one kind.
const KINDS: [&str; 4] = ["peer_dns", "peer_ip", "peer_uri", "peer_email"];
const SPIFFE: &[u8] = b"spiffe://";

impl Names {
    fn add(&mut self, name: &GeneralName<'_>) {
        let (kind, text) = match name {
            GeneralName::DNSName(name) => (0, (*name).to_owned()),
            GeneralName::IPAddress(octets) => match ip(octets) {
                Some(ip) => (1, ip.to_string()),
                None => return,
            },
            GeneralName::URI(uri) => (2, (*uri).to_owned()),
            GeneralName::RFC822Name(address) => (3, (*address).to_owned()),
            _ => return,
        };
        self.all.push(text.clone().into_bytes());
        self.by_kind[kind].push(text.into_bytes());
    }

    fn add_to(self, properties: &mut Vec<Property>) {
        if !self.all.is_empty() {
            properties.push(("x509_subject_alternative_name".to_owned(), self.all));
        }
        let uris = &self.by_kind[2];
        // A SPIFFE certificate has exactly one URI.
        let spiffe = (uris.len() == 1 && uris[0].starts_with(SPIFFE)).then(|| uris.clone());
        for (kind, names) in KINDS.into_iter().zip(self.by_kind) {
            if !names.is_empty() {
                properties.push((kind.to_owned(), names));
            }
        }
        if let Some(spiffe) = spiffe {
            properties.push(("peer_spiffe_id".to_owned(), spiffe));
        }
    }
}

fn ip(octets: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(octets).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(octets).map(IpAddr::from)).ok()
}

/// Length of a line of PEM (RFC 7468 §2).
const PEM_LINE_LEN: usize = 64;

fn pem(der: &[u8]) -> String {
    use base64::Engine as _;

    let text = base64::engine::general_purpose::STANDARD.encode(der);
    let mut pem = "-----BEGIN CERTIFICATE-----\n".to_owned();
    for start in (0..text.len()).step_by(PEM_LINE_LEN) {
        pem.push_str(&text[start..text.len().min(start + PEM_LINE_LEN)]);
        pem.push('\n');
    }
    pem.push_str("-----END CERTIFICATE-----\n");
    pem
}
