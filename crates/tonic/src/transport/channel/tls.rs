//! TLS of clients, with tonic's API.

use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use thalweg_engine::tls as engine;
use thalweg_engine::tls::rustls::client::danger::ServerCertVerifier;
use thalweg_engine::tls::rustls::pki_types::TrustAnchor;

use crate::transport::error::{Error, Kind};
use crate::transport::tls::{Certificate, Identity};

/// TLS settings of a client: trusted authorities, its own identity, and the name to verify.
///
/// It trusts no server until an authority or a set of roots is added.
#[derive(Clone, Debug, Default)]
pub struct ClientTlsConfig {
    domain: Option<String>,
    authorities: Vec<Certificate>,
    anchors: Vec<TrustAnchor<'static>>,
    identity: Option<Identity>,
    assume_http2: bool,
    roots: Roots,
    logs_keys: bool,
    timeout: Option<Duration>,
}

/// Sets of roots to trust.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Roots {
    native: bool,
    webpki: bool,
}

impl ClientTlsConfig {
    /// Creates a configuration that trusts no authority and has no identity.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the name that the server's certificate must match, which is also sent as SNI. By default the host of the
    /// endpoint's URI. It does not change the `:authority` of calls.
    pub fn domain_name(self, domain_name: impl Into<String>) -> Self {
        Self { domain: Some(domain_name.into()), ..self }
    }

    /// Adds a trusted authority.
    pub fn ca_certificate(self, ca_certificate: Certificate) -> Self {
        self.ca_certificates([ca_certificate])
    }

    /// Adds trusted authorities.
    pub fn ca_certificates(mut self, ca_certificates: impl IntoIterator<Item = Certificate>) -> Self {
        self.authorities.extend(ca_certificates);
        self
    }

    /// Adds a trusted authority, given by name and key.
    pub fn trust_anchor(self, trust_anchor: TrustAnchor<'static>) -> Self {
        self.trust_anchors([trust_anchor])
    }

    /// Adds trusted authorities, given by name and key.
    pub fn trust_anchors(mut self, trust_anchors: impl IntoIterator<Item = TrustAnchor<'static>>) -> Self {
        self.anchors.extend(trust_anchors);
        self
    }

    /// Sets the client's certificate, for servers that request one (mTLS).
    pub fn identity(self, identity: Identity) -> Self {
        Self { identity: Some(identity), ..self }
    }

    /// Accepts a server that does not negotiate HTTP/2 by ALPN, unless it chooses another protocol; off by default.
    pub fn assume_http2(self, assume_http2: bool) -> Self {
        Self { assume_http2, ..self }
    }

    /// Writes each connection's secrets to the file named by the environment variable `SSLKEYLOGFILE`; off by default.
    pub fn use_key_log(self) -> Self {
        Self { logs_keys: true, ..self }
    }

    /// Also trusts the platform's authorities.
    #[cfg(feature = "tls-native-roots")]
    pub fn with_native_roots(mut self) -> Self {
        self.roots.native = true;
        self
    }

    /// Also trusts Mozilla's authorities, which are compiled in.
    #[cfg(feature = "tls-webpki-roots")]
    pub fn with_webpki_roots(mut self) -> Self {
        self.roots.webpki = true;
        self
    }

    /// Trusts all roots with enabled features: `tls-native-roots`, `tls-webpki-roots`. Without either, it adds none.
    pub fn with_enabled_roots(self) -> Self {
        let roots =
            Roots { native: cfg!(feature = "tls-native-roots"), webpki: cfg!(feature = "tls-webpki-roots") };
        Self { roots, ..self }
    }

    /// Sets the time limit of the handshake; by default only the endpoint's connect timeout applies.
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// Converts to the engine's configuration for an endpoint at `uri`; validates certificates, keys and names.
    pub(super) fn into_engine(self, uri: &Uri) -> Result<engine::ClientTlsConfig, Error> {
        let host = uri.host().ok_or_else(|| Error::transport(Error::new(Kind::InvalidUri)))?;
        let mut config = engine::ClientTlsConfig::new()
            // Set even if empty: otherwise the engine trusts the platform's authorities.
            .trust_anchors(self.anchors)
            .ca_certificates(self.authorities.iter().map(Certificate::to_engine))
            .domain_name(self.domain.as_deref().unwrap_or(host))
            .assume_http2(self.assume_http2);
        if self.roots.native {
            config = config.with_native_roots();
        }
        #[cfg(feature = "tls-webpki-roots")]
        if self.roots.webpki {
            config = config.with_webpki_roots();
        }
        if let Some(identity) = &self.identity {
            config = config.identity(identity.to_engine());
        }
        if let Some(timeout) = self.timeout {
            config = config.timeout(timeout);
        }
        if self.logs_keys {
            config = config.use_key_log();
        }
        config.check(host).map_err(Error::transport)?;
        Ok(config)
    }

    /// Converts like [`into_engine`](Self::into_engine), with the application's verifier instead of any trusted
    /// authorities.
    pub(super) fn into_engine_with(
        self,
        uri: &Uri,
        verifier: Arc<dyn ServerCertVerifier>,
    ) -> Result<engine::ClientTlsConfig, Error> {
        let has_no_authorities = self.authorities.is_empty() && self.anchors.is_empty();
        if !has_no_authorities || self.roots != Roots::default() {
            return Err(Error::transport(
                "a custom verifier replaces certificates, trust anchors and roots; do not set them",
            ));
        }
        Ok(self.into_engine(uri)?.verifier(verifier))
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use thalweg_engine::tls::rustls::client::WebPkiServerVerifier;
    use thalweg_engine::tls::rustls::pki_types::CertificateDer;
    use thalweg_engine::tls::rustls::{RootCertStore, pki_types};

    use super::*;
    use crate::transport::Endpoint;
    use crate::transport::tls::tests::pair;

    fn anchor() -> TrustAnchor<'static> {
        let (certificate, _) = pair();
        let der: CertificateDer<'_> =
            pki_types::pem::PemObject::from_pem_slice(certificate.as_bytes()).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(der).unwrap();
        roots.roots.remove(0)
    }

    /// Checks the error, if any, of `config` for an endpoint at `uri`.
    fn check(uri: &'static str, config: ClientTlsConfig, expected: Result<(), &str>) {
        match (Endpoint::from_static(uri).tls_config(config), expected) {
            (Ok(endpoint), Ok(())) => drop(endpoint.config().unwrap()),
            (Err(error), Err(part)) => {
                let chain = format!("{error}: {:?}", error.source().map(ToString::to_string));
                assert!(chain.contains(part), "{uri}: {chain}");
            }
            (endpoint, expected) => panic!("{uri}: {endpoint:?}, not {expected:?}"),
        }
    }

    #[test]
    fn invalid_tls_config_is_an_error() {
        let new = ClientTlsConfig::new;
        let (certificate, key) = pair();
        check("https://a.test", new(), Ok(()));
        check("https://192.168.1.1:443", new(), Ok(()));
        check("https://[::1]:443", new(), Ok(()));
        check("https://[::1]:443", new().domain_name("a.test"), Ok(()));
        check("https://a.test", new().domain_name("a b"), Err("invalid certificate name"));
        check("/", new(), Err("invalid URI"));
        check("unix:/run/a", new(), Err("cannot apply TLS config for unix domain socket"));
        let authority = |pem: &str| Certificate::from_pem(pem);
        check("https://a.test", new().ca_certificate(authority(&certificate)), Ok(()));
        check("https://a.test", new().ca_certificate(authority(&key)), Err("no certificate"));
        let two = [authority(&certificate), authority("")];
        check("https://a.test", new().ca_certificates(two), Err("no certificate"));
        check("https://a.test", new().identity(Identity::from_pem(&certificate, &key)), Ok(()));
        check("https://a.test", new().identity(Identity::from_pem(&key, &certificate)), Err("swapped"));
        check("https://a.test", new().trust_anchor(anchor()).trust_anchors([anchor()]), Ok(()));
    }

    #[test]
    fn settings_reach_the_engine() {
        let uri = Uri::from_static("https://a.test:1");
        let engine_config = |config: ClientTlsConfig| format!("{:?}", config.into_engine(&uri).unwrap());
        let new = ClientTlsConfig::new;
        for (config, part) in [
            (new(), "domain_name: Some(\"a.test\")"),
            // No authority is trusted; the engine's own default would be the platform's.
            (new(), "anchors: Some([])"),
            (new().domain_name("b.test"), "domain_name: Some(\"b.test\")"),
            (new().assume_http2(true), "assume_http2: true"),
            (new().use_key_log(), "logs_keys: true"),
            (new().timeout(Duration::from_secs(7)), "timeout: Some(7s)"),
            (new().trust_anchor(anchor()), "anchors: Some([TrustAnchor"),
            #[cfg(feature = "tls-native-roots")]
            (new().with_native_roots(), "platform: true"),
            #[cfg(feature = "tls-webpki-roots")]
            (new().with_webpki_roots(), "webpki: true"),
        ] {
            assert!(engine_config(config.clone()).contains(part), "{}", engine_config(config));
        }
    }

    #[test]
    fn verifier_excludes_trusted_roots() {
        let (certificate, _) = pair();
        let mut roots = RootCertStore::empty();
        roots.roots.push(anchor());
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), engine::provider().unwrap());
        let verifier = verifier.build().unwrap();
        let with = |config| {
            Endpoint::from_static("https://a.test").tls_config_with_verifier(config, verifier.clone())
        };
        assert!(with(ClientTlsConfig::new().domain_name("b.test")).is_ok());
        for config in [
            ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&certificate)),
            ClientTlsConfig::new().trust_anchor(anchor()),
        ] {
            let error = with(config).unwrap_err();
            assert!(error.source().unwrap().to_string().contains("do not set them"), "{error:?}");
        }
    }

    #[test]
    fn https_endpoint_has_tls() {
        assert!(Endpoint::new("https://a.test").unwrap().config().unwrap().1.tls.is_some());
        assert!(Endpoint::new("http://a.test").unwrap().config().unwrap().1.tls.is_none());
        // Same without TLS: a URI of another scheme never uses it.
        let plain = Endpoint::from_static("http://a.test").tls_config(ClientTlsConfig::new()).unwrap();
        assert!(plain.config().unwrap().1.tls.is_none());
    }
}
