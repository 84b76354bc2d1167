//! The address of a proxy: [`Proxy`].

use std::fmt;
use std::str::FromStr;
#[cfg(feature = "tls")]
use std::sync::Arc;

use http::Uri;

#[cfg(feature = "tls")]
use crate::tls::ClientTlsConfig;
use thalweg_core::percent;

/// A proxy, parsed from its URL: `http://proxy.example:3128`, `http://user:password@proxy.example:3128`,
/// `https://proxy.example:3128` with the feature `tls`, or `socks5://proxy.example:1080` with the feature `socks`.
///
/// Without a scheme it is an HTTP proxy. The default port is 80, for HTTPS 443, for SOCKS5 1080. User and password may
/// be percent-encoded. TLS to the server runs inside the tunnel. With `https://`, the connection to the proxy has TLS
/// of its own, which hides user, password and the server's name from the network.
///
/// ```
/// use thalweg_engine::Proxy;
///
/// let proxy: Proxy = "http://me:secret@proxy.example:3128".parse()?;
/// // Secrets are not shown.
/// assert_eq!(proxy.to_string(), "http://proxy.example:3128");
/// # Ok::<(), thalweg_engine::ProxyError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    pub(super) protocol: Protocol,
    /// Whether the connection to an HTTP proxy uses TLS.
    is_secure: bool,
    /// Settings of that TLS, if they were set.
    #[cfg(feature = "tls")]
    tls: Option<ProxyTls>,
    /// IPv6 addresses are without brackets.
    host: String,
    port: u16,
    pub(super) credentials: Option<Credentials>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    HttpConnect,
    #[cfg(feature = "socks")]
    Socks5,
}

/// Settings of TLS to a proxy. Only clones are equal.
#[cfg(feature = "tls")]
#[derive(Clone)]
struct ProxyTls(Arc<ClientTlsConfig>);

#[cfg(feature = "tls")]
impl PartialEq for ProxyTls {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

#[cfg(feature = "tls")]
impl Eq for ProxyTls {}

#[derive(Clone, PartialEq, Eq)]
pub(super) struct Credentials {
    pub(super) user: String,
    pub(super) password: String,
}

/// An invalid proxy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid proxy `{url}`{variable}: {reason}; use http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT"
)]
pub struct ProxyError {
    /// Without user and password.
    url: String,
    variable: String,
    reason: &'static str,
}

const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;
#[cfg(feature = "socks")]
const SOCKS_PORT: u16 = 1080;

impl Proxy {
    /// Parses the URL in an environment variable, or from elsewhere if its name is empty.
    pub(super) fn parse(url: &str, variable: &str) -> Result<Self, ProxyError> {
        read(url).map_err(|reason| ProxyError {
            url: without_credentials(url).escape_debug().to_string(),
            variable: if variable.is_empty() { String::new() } else { format!(" in {variable}") },
            reason,
        })
    }

    /// Sets the TLS of the connection to an `https://` proxy: the authorities that its certificate is verified against,
    /// by default the platform's, and an identity. The TLS settings of the channel are about its server only.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, config: ClientTlsConfig) -> Self {
        self.tls = Some(ProxyTls(Arc::new(config)));
        self
    }

    /// Returns host and port. IPv6 addresses are without brackets.
    pub(crate) fn host_and_port(&self) -> (&str, u16) {
        (&self.host, self.port)
    }

    /// Returns whether connections to the proxy use TLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// Returns the TLS settings of the connection to the proxy, if it has TLS.
    ///
    /// # Errors
    /// Fails if there are settings, but no TLS.
    #[cfg(feature = "tls")]
    pub(crate) fn client_tls(&self) -> Result<Option<ClientTlsConfig>, ProxyError> {
        match (self.is_secure, &self.tls) {
            (true, Some(ProxyTls(config))) => Ok(Some(ClientTlsConfig::clone(config))),
            (true, None) => Ok(Some(ClientTlsConfig::new())),
            (false, None) => Ok(None),
            (false, Some(_)) => Err(ProxyError {
                url: self.to_string(),
                variable: String::new(),
                reason: "it has TLS settings, but its URL does not use TLS",
            }),
        }
    }
}

fn read(url: &str) -> Result<Proxy, &'static str> {
    let uri: Uri = url.parse().map_err(|_| "it is no URL")?;
    let (protocol, default_port) = match uri.scheme_str() {
        None | Some("http") => (Protocol::HttpConnect, HTTP_PORT),
        Some("https") if cfg!(not(feature = "tls")) => {
            return Err("TLS is not compiled in; enable the feature `tls`");
        }
        Some("https") => (Protocol::HttpConnect, HTTPS_PORT),
        #[cfg(feature = "socks")]
        Some("socks5" | "socks5h") => (Protocol::Socks5, SOCKS_PORT),
        #[cfg(not(feature = "socks"))]
        Some("socks5" | "socks5h") => return Err("SOCKS5 is not compiled in; enable the feature `socks`"),
        Some(_) => return Err("unknown scheme"),
    };
    let authority = uri.authority().ok_or("the host is missing")?;
    if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
        return Err("it has a path");
    }
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() {
        return Err("the host is missing");
    }
    let (_, host_and_port) = authority.as_str().rsplit_once('@').unwrap_or(("", authority.as_str()));
    let port = match host_and_port.strip_prefix(authority.host()) {
        Some("") => default_port,
        Some(port) => port
            .strip_prefix(':')
            .and_then(|port| port.parse().ok())
            .ok_or("the port is not a number from 0 to 65535")?,
        None => return Err("the host is malformed"),
    };
    let credentials = authority.as_str().rsplit_once('@').map(|(credentials, _)| {
        let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
        let decode = |text: &str| percent::decode(text.as_bytes()).into_owned();
        Credentials { user: decode(user), password: decode(password) }
    });
    Ok(Proxy {
        protocol,
        is_secure: uri.scheme_str() == Some("https"),
        #[cfg(feature = "tls")]
        tls: None,
        host: host.to_owned(),
        port,
        credentials,
    })
}

/// Returns a URL without user and password, which must not get into logs.
fn without_credentials(url: &str) -> String {
    match (url.rsplit_once('@'), url.split_once("://")) {
        (None, _) => url.to_owned(),
        (Some((_, host)), Some((scheme, _))) => format!("{scheme}://{host}"),
        (Some((_, host)), None) => host.to_owned(),
    }
}

impl FromStr for Proxy {
    type Err = ProxyError;

    fn from_str(url: &str) -> Result<Self, ProxyError> {
        Self::parse(url, "")
    }
}

/// Shows the URL without user and password.
impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.protocol {
            Protocol::HttpConnect if self.is_secure => "https",
            Protocol::HttpConnect => "http",
            #[cfg(feature = "socks")]
            Protocol::Socks5 => "socks5",
        };
        let Self { host, port, .. } = self;
        if host.contains(':') {
            write!(f, "{scheme}://[{host}]:{port}")
        } else {
            write!(f, "{scheme}://{host}:{port}")
        }
    }
}

/// Shows the URL without user and password.
impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let check = |url: &str, shown: &str, credentials: Option<(&str, &str)>| {
            let proxy: Proxy = url.parse().unwrap();
            assert_eq!((proxy.to_string().as_str(), format!("{proxy:?}").as_str()), (shown, shown), "{url}");
            let found =
                proxy.credentials.as_ref().map(|found| (found.user.as_str(), found.password.as_str()));
            assert_eq!(found, credentials, "{url}");
        };
        check("http://proxy:3128", "http://proxy:3128", None);
        check("http://proxy:3128/", "http://proxy:3128", None);
        check("http://proxy", "http://proxy:80", None);
        check("proxy:3128", "http://proxy:3128", None);
        check("proxy", "http://proxy:80", None);
        check("http://10.0.0.1:1", "http://10.0.0.1:1", None);
        check("http://[2001:db8::1]:1", "http://[2001:db8::1]:1", None);
        check("http://[2001:db8::1]", "http://[2001:db8::1]:80", None);
        check("http://me:secret@proxy:1", "http://proxy:1", Some(("me", "secret")));
        check("http://me@proxy:1", "http://proxy:1", Some(("me", "")));
        check("http://m%40e:a%3Ab%25@proxy:1", "http://proxy:1", Some(("m@e", "a:b%")));
        check("me:secret@proxy:1", "http://proxy:1", Some(("me", "secret")));
        #[cfg(feature = "tls")]
        check("https://me:secret@proxy", "https://proxy:443", Some(("me", "secret")));
        #[cfg(feature = "tls")]
        check("https://[2001:db8::1]:3128", "https://[2001:db8::1]:3128", None);
        #[cfg(feature = "socks")]
        check("socks5://me:secret@proxy", "socks5://proxy:1080", Some(("me", "secret")));
        #[cfg(feature = "socks")]
        check("socks5h://proxy:9", "socks5://proxy:9", None);
    }

    #[test]
    fn invalid_urls_are_named_without_secrets() {
        let check = |url: &str, expected: &str| {
            let error = url.parse::<Proxy>().unwrap_err().to_string();
            let shown = error.strip_suffix("; use http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT");
            assert_eq!(shown, Some(expected), "{url}");
        };
        check("", "invalid proxy ``: it is no URL");
        check("a b", "invalid proxy `a b`: it is no URL");
        check("http://", "invalid proxy `http://`: it is no URL");
        check("/path", "invalid proxy `/path`: the host is missing");
        check("http://proxy/path", "invalid proxy `http://proxy/path`: it has a path");
        check("ftp://me:secret@proxy", "invalid proxy `ftp://proxy`: unknown scheme");
        #[cfg(not(feature = "tls"))]
        check(
            "https://proxy:1",
            "invalid proxy `https://proxy:1`: TLS is not compiled in; enable the feature `tls`",
        );
        check("me:\u{1b}@proxy\u{1b}", "invalid proxy `proxy\\u{1b}`: it is no URL");
        let port = "the port is not a number from 0 to 65535";
        check("http://proxy:99999", &format!("invalid proxy `http://proxy:99999`: {port}"));
        check("http://me:secret@proxy:x", &format!("invalid proxy `http://proxy:x`: {port}"));
        #[cfg(not(feature = "socks"))]
        check(
            "socks5://proxy",
            "invalid proxy `socks5://proxy`: SOCKS5 is not compiled in; enable the feature `socks`",
        );
    }
    #[cfg(feature = "tls")]
    #[test]
    fn tls_settings_need_an_https_proxy() {
        let with_tls = |url: &str| url.parse::<Proxy>().unwrap().tls(ClientTlsConfig::new()).client_tls();
        assert!(with_tls("https://proxy").is_ok_and(|tls| tls.is_some()));
        let error = with_tls("http://proxy").unwrap_err().to_string();
        let expected =
            "invalid proxy `http://proxy:80`: it has TLS settings, but its URL does not use TLS; use";
        assert!(error.starts_with(expected), "{error}");
        assert_eq!("https://proxy".parse::<Proxy>(), "https://proxy:443".parse());
    }
}
