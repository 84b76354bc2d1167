//! The proxy that environment variables name.

use super::no_proxy::NoProxy;
use super::url::{Proxy, ProxyError};

/// Environment variables about proxies.
#[derive(Debug)]
pub(super) struct ProxyEnvironment {
    /// Name and value of the variable with the proxy.
    proxy: Option<(&'static str, String)>,
    no_proxy: NoProxy,
}

/// Variables of a proxy's URL, as in grpc-go, in the order of curl. `http_proxy` is for unencrypted HTTP without a
/// tunnel, which gRPC does not use.
const PROXY: [&str; 2] = ["https_proxy", "HTTPS_PROXY"];
const NO_PROXY: [&str; 2] = ["no_proxy", "NO_PROXY"];

impl ProxyEnvironment {
    /// Reads the variables of this process.
    pub(super) fn read() -> Self {
        Self::new(|name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
    }

    /// Takes the variables from `get`. Empty ones count as unset.
    fn new(get: impl Fn(&str) -> Option<String>) -> Self {
        let first = |names: [&'static str; 2]| {
            names
                .into_iter()
                .find_map(|name| Some((name, get(name).filter(|value| !value.trim().is_empty())?)))
        };
        let no_proxy = first(NO_PROXY).map(|(_, list)| NoProxy::parse(&list)).unwrap_or_default();
        Self { proxy: first(PROXY), no_proxy }
    }

    /// Returns the proxy to a server, unless it needs none.
    pub(super) fn proxy(&self, host: &str, port: u16) -> Result<Option<Proxy>, ProxyError> {
        let Some((variable, url)) = &self.proxy else { return Ok(None) };
        if self.no_proxy.applies_to(host, port) {
            return Ok(None);
        }
        Proxy::parse(url.trim(), variable).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_choose_the_proxy() {
        let check = |variables: &[(&str, &str)], host: &str, expected: Option<&str>| {
            let get = |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            };
            let proxy = ProxyEnvironment::new(get).proxy(host, 443);
            let shown = proxy.map(|proxy| proxy.map(|proxy| proxy.to_string()));
            assert_eq!(
                shown.map_err(|error| error.to_string()),
                Ok(expected.map(str::to_owned)),
                "{variables:?}"
            );
        };
        let (a, b) = ("http://a:1", "http://b:2");
        check(&[], "server", None);
        check(&[("https_proxy", a)], "server", Some(a));
        check(&[("HTTPS_PROXY", b)], "server", Some(b));
        check(&[("https_proxy", a), ("HTTPS_PROXY", b)], "server", Some(a));
        check(&[("https_proxy", " "), ("HTTPS_PROXY", b)], "server", Some(b));
        check(&[("http_proxy", a), ("HTTP_PROXY", b), ("grpc_proxy", a), ("all_proxy", a)], "server", None);
        check(&[("https_proxy", a), ("no_proxy", "server")], "server", None);
        check(&[("https_proxy", a), ("NO_PROXY", "server")], "server", None);
        check(&[("https_proxy", a), ("no_proxy", "other"), ("NO_PROXY", "server")], "server", Some(a));
        check(&[("https_proxy", a)], "localhost", None);
        // An invalid proxy is no reason to fail if it is not used.
        check(&[("https_proxy", "ftp://a")], "localhost", None);
    }

    #[test]
    fn invalid_proxies_name_their_variable() {
        let environment = ProxyEnvironment::new(|name| (name == "HTTPS_PROXY").then(|| "ftp://a".to_owned()));
        let error = environment.proxy("server", 1).unwrap_err().to_string();
        assert_eq!(
            error,
            "invalid proxy `ftp://a` in HTTPS_PROXY: unknown scheme; use http://HOST:PORT, https://HOST:PORT or \
             socks5://HOST:PORT"
        );
    }
}
