//! How to reach the API server.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fmt, fs, io};

use http::Uri;
use http::uri::Scheme;
use thalweg_engine::tls::{Certificate, ClientTlsConfig};
use thalweg_engine::{Backoff, Channel, ChannelConfig, ConnectError, Keepalive, Lanes};

use crate::error::KubernetesError;
use crate::target::is_namespace;

/// The API server of a cluster, and how to reach it: TLS, and the token of a service account.
///
/// ```no_run
/// use thalweg_kubernetes::{ApiServer, Certificate, ClientTlsConfig, KubernetesResolver};
///
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let api = ApiServer::new("https://10.0.0.1:6443")
///     .tls(ClientTlsConfig::new().ca_certificate(Certificate::from_file("ca.crt")))
///     .token_file("token");
/// let resolver = KubernetesResolver::with_api_server("orders.shop:grpc", api)?;
/// # drop(resolver);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct ApiServer {
    url: String,
    tls: Option<ClientTlsConfig>,
    token: Option<Token>,
    namespace: Option<String>,
    backoff: Backoff,
    timeout: Duration,
}

#[derive(Clone)]
enum Token {
    Text(String),
    File(PathBuf),
}

/// The folder with the service account of a pod.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Silence before a PING, as in client-go. Watches are silent for minutes.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// Time for the acknowledgement of a PING, as in client-go.
const PING_TIMEOUT: Duration = Duration::from_secs(15);
const USER_AGENT: &str = concat!("thalweg-kubernetes/", env!("CARGO_PKG_VERSION"));

/// Time for a request. It is less than a channel's for a resolution, 20 s, so that errors have details.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Maximum delay between requests after failures, as in client-go.
const DELAY_MAX: Duration = Duration::from_secs(30);

impl ApiServer {
    /// Describes the API server at a URL such as `https://10.0.0.1:6443`. It must support HTTP/2, as every API server
    /// does over TLS; `kubectl proxy` does not.
    pub fn new(url: impl Into<String>) -> Self {
        let backoff = Backoff::default().max_delay(DELAY_MAX);
        Self { url: url.into(), tls: None, token: None, namespace: None, backoff, timeout: TIMEOUT }
    }

    /// Describes the API server as a pod sees it: the environment variables `KUBERNETES_SERVICE_HOST` and
    /// `KUBERNETES_SERVICE_PORT`, and the certificate authority, token and namespace of its service account in
    /// `/var/run/secrets/kubernetes.io/serviceaccount`.
    ///
    /// # Errors
    /// Returns an error if a variable is missing, or a file cannot be read.
    pub fn in_cluster() -> Result<Self, KubernetesError> {
        Self::of_pod(|name| env::var(name).ok(), Path::new(SERVICE_ACCOUNT))
    }

    fn of_pod(
        variable: impl Fn(&str) -> Option<String>,
        service_account: &Path,
    ) -> Result<Self, KubernetesError> {
        let variable = |name| {
            let value = variable(name).filter(|value| !value.is_empty());
            value.ok_or(KubernetesError::NotInCluster { variable: name })
        };
        let (host, port) = (variable("KUBERNETES_SERVICE_HOST")?, variable("KUBERNETES_SERVICE_PORT")?);
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        let read = |name| {
            let path = service_account.join(name);
            let text = fs::read_to_string(&path);
            text.map(|text| (path.clone(), text))
                .map_err(|error| KubernetesError::ServiceAccount { path, error })
        };
        let ((authority, _), (token, _)) = (read("ca.crt")?, read("token")?);
        let (_, namespace) = read("namespace")?;
        Ok(Self::new(format!("https://{host}:{port}"))
            .tls(ClientTlsConfig::new().ca_certificate(Certificate::from_file(authority)))
            .token_file(token)
            .namespace(namespace.trim()))
    }

    /// Sets certificate authorities and a client certificate; by default the platform's authorities are trusted. Files
    /// are re-read when a connection starts.
    pub fn tls(mut self, tls: ClientTlsConfig) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Sets the token to authenticate with; none by default.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(Token::Text(token.into()));
        self
    }

    /// Sets the file with the token to authenticate with; none by default. It is read for each request, since the
    /// kubelet renews it.
    pub fn token_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.token = Some(Token::File(path.into()));
        self
    }

    /// Sets the namespace of targets that name none; by default it is the pod's.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Sets the delay between requests after failures. By default it is gRPC's with a maximum of 30 s: 1 s, then 1.6
    /// times as long each time, with ±20 % jitter.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Sets the time for a connection and a list, or for a connection and the start of a watch; 15 s by default.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    pub(crate) fn request_timeout(&self) -> Duration {
        self.timeout
    }

    pub(crate) fn backoff_settings(&self) -> Backoff {
        self.backoff
    }

    /// Returns the namespace of `service`, which its target may name.
    pub(crate) fn namespace_of(
        &self,
        service: &str,
        named: Option<String>,
    ) -> Result<String, KubernetesError> {
        let namespace = named.or_else(|| self.namespace.clone());
        let namespace =
            namespace.ok_or_else(|| KubernetesError::Namespace { service: service.to_owned() })?;
        if is_namespace(&namespace) {
            Ok(namespace)
        } else {
            Err(KubernetesError::InvalidNamespace(namespace))
        }
    }

    /// Returns the URL without its path, and the path.
    pub(crate) fn origin(&self) -> Result<(String, String), KubernetesError> {
        let invalid = |reason: String| KubernetesError::Url { url: self.url.clone(), reason };
        let url: Uri = self.url.parse().map_err(|error: http::uri::InvalidUri| invalid(error.to_string()))?;
        let scheme = url.scheme().filter(|scheme| [Scheme::HTTP, Scheme::HTTPS].contains(scheme));
        let Some((scheme, authority)) = scheme.zip(url.authority()) else {
            return Err(invalid("the scheme or host is missing".to_owned()));
        };
        if url.query().is_some() {
            return Err(invalid("it has a query".to_owned()));
        }
        Ok((format!("{scheme}://{authority}"), url.path().trim_end_matches('/').to_owned()))
    }

    /// Creates a channel to `origin`, with one connection.
    pub(crate) fn channel(&self, origin: &str) -> Result<Channel, ConnectError> {
        let mut config = ChannelConfig::default();
        config.lanes = Lanes::fixed(1);
        config.keepalive = Some(Keepalive::every(PING_INTERVAL).timeout(PING_TIMEOUT));
        USER_AGENT.clone_into(&mut config.user_agent);
        config.tls = self.tls.clone().filter(|_| origin.starts_with("https:"));
        Channel::new(origin, config)
    }

    /// Returns the current token, if there is one.
    pub(crate) fn current_token(&self) -> io::Result<Option<String>> {
        match &self.token {
            None => Ok(None),
            Some(Token::Text(token)) => Ok(Some(token.clone())),
            Some(Token::File(path)) => match fs::read_to_string(path) {
                Ok(text) => Ok(Some(text.trim().to_owned())),
                Err(error) => Err(io::Error::new(error.kind(), format!("{}: {error}", path.display()))),
            },
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("Text(..)"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(folder: &Path, variables: &[(&str, &str)]) -> Result<ApiServer, String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(other, _)| *other == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        ApiServer::of_pod(variable, folder).map_err(|error| error.to_string())
    }

    #[test]
    fn pods_find_their_api_server() {
        let folder = tempfile::tempdir().expect("a folder");
        let address = [("KUBERNETES_SERVICE_HOST", "fd00::1"), ("KUBERNETES_SERVICE_PORT", "443")];
        let missing = |error: Result<ApiServer, String>, part: &str| {
            let error = error.expect_err("something is missing");
            assert!(error.contains(part), "{error}");
        };
        missing(pod(folder.path(), &[]), "KUBERNETES_SERVICE_HOST is not set");
        missing(pod(folder.path(), &address[..1]), "KUBERNETES_SERVICE_PORT is not set");
        for (file, text) in [("ca.crt", "authority"), ("token", "first\n"), ("namespace", "shop\n")] {
            missing(pod(folder.path(), &address), &folder.path().join(file).display().to_string());
            fs::write(folder.path().join(file), text).expect("a file");
        }
        let found = pod(folder.path(), &address).expect("a complete pod");
        assert_eq!(found.origin().expect("a URL"), ("https://[fd00::1]:443".to_owned(), String::new()));
        assert_eq!(found.namespace_of("orders", None).expect("the pod's"), "shop");
        assert_eq!(found.namespace_of("orders", Some("other".to_owned())).expect("the target's"), "other");
        assert_eq!(found.current_token().expect("a file").as_deref(), Some("first"));
        fs::write(folder.path().join("token"), "second").expect("a file");
        assert_eq!(found.current_token().expect("a file").as_deref(), Some("second"));
    }

    #[test]
    fn urls_and_namespaces_are_checked() {
        let check = |url: &str, expected: Result<(&str, &str), &str>| {
            let found = ApiServer::new(url).origin();
            match expected {
                Ok((origin, path)) => assert_eq!(found.expect(url), (origin.to_owned(), path.to_owned())),
                Err(part) => assert!(found.expect_err(url).to_string().contains(part), "{url}"),
            }
        };
        check("https://10.0.0.1:6443", Ok(("https://10.0.0.1:6443", "")));
        check(
            "https://rancher.example/k8s/clusters/c-1/",
            Ok(("https://rancher.example", "/k8s/clusters/c-1")),
        );
        check("10.0.0.1:6443", Err("the scheme or host is missing"));
        check("ftp://10.0.0.1", Err("the scheme or host is missing"));
        check("https://10.0.0.1?a=b", Err("it has a query"));
        let api = ApiServer::new("https://10.0.0.1").namespace("../x");
        assert!(matches!(api.namespace_of("orders", None), Err(KubernetesError::InvalidNamespace(_))));
    }

    #[test]
    fn tokens_are_not_printed() {
        let text = format!("{:?}", ApiServer::new("https://10.0.0.1").token("secret"));
        assert!(!text.contains("secret"), "{text}");
    }
}
