//! The server that a client connects to, parsed from user settings.

use crate::executor::ExecutorError;
use crate::grpc::user_agent::{self, InvalidUserAgent};
use thalweg_balance::service_config::ServiceConfigError;

use crate::lanes::{Security, Target, TargetError};
use crate::proxy::{Proxy, ProxyConfig, ProxyError, ReadyProxy};
#[cfg(feature = "tls")]
use crate::tls::{ClientTls, ClientTlsConfig, TlsError};

/// The server that a client connects to, with the names used in its requests.
#[derive(Debug)]
pub(crate) struct Destination {
    pub(crate) target: Target,
    /// The `:scheme` of calls.
    pub(crate) scheme: &'static str,
    pub(crate) authority: String,
    pub(crate) user_agent: String,
    pub(crate) proxy: Option<ReadyProxy>,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<ClientTls>,
}

/// User settings of a destination besides the target.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DestinationSettings<'a> {
    pub(crate) authority: Option<&'a str>,
    /// The application's `user-agent` part.
    pub(crate) user_agent: &'a str,
    pub(crate) proxy: &'a ProxyConfig,
    /// Whether the names of `dns` targets are looked up in DNS.
    pub(crate) is_in_dns: bool,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<&'a ClientTlsConfig>,
}

impl Destination {
    pub(crate) fn new(target: &str, settings: DestinationSettings<'_>) -> Result<Self, ConnectError> {
        let target = Target::parse(target)?;
        #[cfg(feature = "tls")]
        let (tls, tls_name) = {
            let config = tls_for(&target, settings.tls)?;
            let name = config.as_ref().and_then(|tls| tls.name().map(str::to_owned));
            (config, name)
        };
        #[cfg(not(feature = "tls"))]
        let tls_name = no_tls_for(&target)?;
        let authority = settings.authority.map(str::to_owned).or(tls_name);
        let authority = authority.unwrap_or_else(|| target.authority());
        #[cfg(feature = "tls")]
        let tls = tls.map(|tls| tls.prepare(host_of(&authority))).transpose()?;
        #[cfg(feature = "tls")]
        let scheme = if tls.is_some() { "https" } else { "http" };
        #[cfg(not(feature = "tls"))]
        let scheme = "http";
        let legal = |b: u8| b.is_ascii_graphic() && b != b'/';
        if authority.is_empty() || !authority.bytes().all(legal) {
            return Err(ConnectError::Authority(authority));
        }
        let name = target.host_and_port().filter(|_| settings.is_in_dns);
        Ok(Self {
            proxy: settings.proxy.choose(name)?.map(ready).transpose()?,
            target,
            scheme,
            authority,
            user_agent: user_agent::for_application(settings.user_agent)?,
            #[cfg(feature = "tls")]
            tls,
        })
    }
}

/// Reason why a channel cannot be created or connected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The target is invalid.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The authority is invalid.
    #[error("invalid authority `{0}`; use host:port")]
    Authority(String),
    /// The user agent is invalid.
    #[error(transparent)]
    UserAgent(#[from] InvalidUserAgent),
    /// The service config is invalid.
    #[error(transparent)]
    ServiceConfig(#[from] ServiceConfigError),
    /// The proxy is invalid.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    /// The channel's threads cannot be started.
    #[error("failed to set up the channel's threads: {0}")]
    Threads(#[from] ExecutorError),
    /// The channel's protocol cannot be used with these settings.
    #[error("{0}")]
    Protocol(&'static str),
    /// TLS cannot be set up.
    #[cfg(feature = "tls")]
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// None of the target's addresses is reachable.
    #[error("{0}")]
    Unavailable(String),
}

/// Returns the TLS settings of connections to `target`, or `None` for plaintext.
#[cfg(feature = "tls")]
fn tls_for(
    target: &Target,
    configured: Option<&ClientTlsConfig>,
) -> Result<Option<ClientTlsConfig>, TargetError> {
    match (target.security(), configured) {
        (Security::Tls, configured) => Ok(Some(configured.cloned().unwrap_or_default())),
        (Security::Plain, Some(_)) => Err(TargetError::new(
            target,
            "http:// does not use TLS, but the channel has TLS settings; use https://",
        )),
        (Security::Plain | Security::Unspecified, configured) => Ok(configured.cloned()),
    }
}

#[cfg(not(feature = "tls"))]
fn no_tls_for(target: &Target) -> Result<Option<String>, TargetError> {
    match target.security() {
        Security::Tls => Err(TargetError::new(target, "TLS is not compiled in; enable the feature `tls`")),
        Security::Plain | Security::Unspecified => Ok(None),
    }
}

/// Reads the TLS settings of a proxy.
fn ready(proxy: Proxy) -> Result<ReadyProxy, ConnectError> {
    Ok(ReadyProxy {
        #[cfg(feature = "tls")]
        tls: proxy.client_tls()?.map(|tls| tls.prepare(proxy.host_and_port().0)).transpose()?,
        proxy,
    })
}

/// Strips the port from an authority.
#[cfg(feature = "tls")]
fn host_of(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        // An IPv6 address has its colons in brackets.
        Some((host, port)) if !port.contains(']') => host,
        _ => authority,
    }
}
