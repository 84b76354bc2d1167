//! Target and settings of a channel: [`Endpoint`].

use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Uri};
use hyper::rt::Executor;
use hyper_util::rt::TokioExecutor;
#[cfg(feature = "_tls-any")]
use thalweg_engine::tls::rustls::client::danger::ServerCertVerifier;
use thalweg_engine::{Backoff, ChannelConfig, Keepalive, Lanes, TcpOptions};

use super::layers::{Limits, SharedExecutor};
use super::rate_limit::RateLimit;
#[cfg(feature = "_tls-any")]
use super::tls::ClientTlsConfig;
use crate::transport::error::{BoxError, Error, Kind};
use crate::transport::http2::Http2Options;

/// Target and settings of a [`Channel`](super::Channel).
///
/// ```
/// use std::time::Duration;
/// use thalweg_tonic::transport::Endpoint;
///
/// let _endpoint = Endpoint::from_static("http://[::1]:50051")
///     .connect_timeout(Duration::from_secs(3))
///     .timeout(Duration::from_secs(10));
/// ```
///
/// Defaults are Thalweg's: windows of 1 MiB per stream and 4 MiB per connection, 20 s to connect, and an adaptive
/// number of connections.
#[derive(Clone)]
pub struct Endpoint {
    uri: Uri,
    /// Path of a UNIX domain socket; it takes precedence over the URI.
    socket: Option<String>,
    origin: Option<Uri>,
    user_agent: Option<String>,
    connect_timeout: Option<Duration>,
    #[cfg(feature = "_tls-any")]
    tls: Option<thalweg_engine::tls::ClientTlsConfig>,
    tcp: TcpOptions,
    limits: Limits,
    http2: Http2Options,
    keep_alive_interval: Option<Duration>,
    keep_alive_timeout: Option<Duration>,
    keep_alive_while_idle: bool,
    lanes: Lanes,
    executor: SharedExecutor,
    /// Settings beyond tonic's, in the order in which they were made.
    settings: Vec<Setting>,
}

/// Changes settings of the engine.
pub(super) type Setting = Arc<dyn Fn(&mut ChannelConfig) + Send + Sync>;

/// Backoff after a failed attempt to connect: gRPC's would be 1 s at first, and 2 minutes in the end.
const BACKOFF_BASE: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(1);

/// URI, and thereby default `:authority`, of channels over a UNIX domain socket.
const SOCKET_URI: &str = "http://tonic";

impl Endpoint {
    /// Converts `dst` to an endpoint. An `https://` endpoint without TLS settings gets TLS with all [enabled
    /// roots](ClientTlsConfig::with_enabled_roots). For generated clients.
    ///
    /// # Errors
    /// Returns an error if `dst` is not an endpoint, or TLS cannot be set up.
    #[doc(hidden)]
    pub fn new<D>(dst: D) -> Result<Self, Error>
    where
        D: TryInto<Self>,
        D::Error: Into<BoxError>,
    {
        let endpoint = dst.try_into().map_err(Error::transport)?;
        #[cfg(feature = "_tls-any")]
        if endpoint.tls.is_none() && endpoint.is_https() {
            return endpoint.tls_config(ClientTlsConfig::new().with_enabled_roots());
        }
        Ok(endpoint)
    }

    fn at(uri: Uri, socket: Option<String>) -> Self {
        Self {
            uri,
            socket,
            origin: None,
            user_agent: None,
            connect_timeout: None,
            #[cfg(feature = "_tls-any")]
            tls: None,
            tcp: TcpOptions::default(),
            limits: Limits::default(),
            http2: Http2Options::default(),
            keep_alive_interval: None,
            keep_alive_timeout: None,
            keep_alive_while_idle: false,
            lanes: Lanes::default(),
            executor: Arc::new(TokioExecutor::new()),
            settings: Vec::new(),
        }
    }

    /// Creates an endpoint at `scheme://host:port`, or at `unix:path`, the path of a UNIX domain socket.
    ///
    /// # Panics
    /// Panics if `s` is not a valid URI.
    pub fn from_static(s: &'static str) -> Self {
        match socket_of(s) {
            Some(path) => Self::at(Uri::from_static(SOCKET_URI), Some(path.to_owned())),
            None => Uri::from_static(s).into(),
        }
    }

    /// Creates an endpoint like [`from_static`](Self::from_static), from a string built at run time.
    ///
    /// # Errors
    /// Returns an error if `s` is not a valid URI.
    pub fn from_shared(s: impl Into<Bytes>) -> Result<Self, Error> {
        let bytes = s.into();
        let invalid = || Error::new(Kind::InvalidUri);
        let text = str::from_utf8(&bytes).map_err(|error| invalid().with(error))?;
        match socket_of(text) {
            Some(path) => Ok(Self::at(Uri::from_static(SOCKET_URI), Some(path.to_owned()))),
            None => Ok(Uri::from_maybe_shared(bytes).map_err(|error| invalid().with(error))?.into()),
        }
    }

    /// Sets the application's part of `user-agent`, which precedes Thalweg's own; empty by default.
    ///
    /// # Errors
    /// Returns an error if it contains characters other than printable ASCII.
    pub fn user_agent<T>(self, user_agent: T) -> Result<Self, Error>
    where
        T: TryInto<HeaderValue>,
    {
        let invalid = || Error::new(Kind::InvalidUserAgent);
        let value = user_agent.try_into().map_err(|_| invalid())?;
        let text = value.to_str().map_err(|error| invalid().with(error))?;
        Ok(Self { user_agent: Some(text.to_owned()), ..self })
    }

    /// Sets the `:authority` of calls; by default that of the URI. For a server behind a proxy. TLS still verifies the
    /// URI's host, or the name set with `ClientTlsConfig::domain_name`.
    pub fn origin(self, origin: Uri) -> Self {
        Self { origin: Some(origin), ..self }
    }

    /// Sets the time limit for the response headers of each call; none by default. On expiry the call ends with
    /// CANCELLED. Unlike [`Request::set_timeout`](crate::Request::set_timeout), it is not sent to the server. If both
    /// are set, the shorter applies.
    pub fn timeout(mut self, dur: Duration) -> Self {
        self.limits.timeout = Some(dur);
        self
    }

    /// Sets the time limit of one connection attempt,
    /// [`ChannelConfig::connect_timeout`](thalweg_engine::ChannelConfig::connect_timeout); 20 s by default.
    pub fn connect_timeout(self, dur: Duration) -> Self {
        Self { connect_timeout: Some(dur), ..self }
    }

    /// Sets the silence after which the kernel probes the server,
    /// [`TcpOptions::keepalive`](thalweg_engine::TcpOptions::keepalive); off by default.
    pub fn tcp_keepalive(mut self, tcp_keepalive: Option<Duration>) -> Self {
        self.tcp.keepalive = tcp_keepalive;
        self
    }

    /// Sets the time between two TCP keepalive probes,
    /// [`TcpOptions::keepalive_interval`](thalweg_engine::TcpOptions::keepalive_interval); the system's by default.
    pub fn tcp_keepalive_interval(mut self, tcp_keepalive_interval: Option<Duration>) -> Self {
        self.tcp.keepalive_interval = tcp_keepalive_interval;
        self
    }

    /// Sets the number of unacknowledged probes that end a connection,
    /// [`TcpOptions::keepalive_retries`](thalweg_engine::TcpOptions::keepalive_retries); the system's by default.
    pub fn tcp_keepalive_retries(mut self, tcp_keepalive_retries: Option<u32>) -> Self {
        self.tcp.keepalive_retries = tcp_keepalive_retries;
        self
    }

    /// Sets how many calls may wait for response headers at a time; others are queued. Unlimited by default.
    pub fn concurrency_limit(mut self, limit: usize) -> Self {
        self.limits.concurrency = Some(limit);
        self
    }

    /// Sets how many calls may start per `duration`; others are queued. Unlimited by default.
    pub fn rate_limit(mut self, limit: u64, duration: Duration) -> Self {
        self.limits.rate = Some((limit, duration));
        self
    }

    /// Sets the flow-control window of a stream,
    /// [`Config::stream_window`](field@thalweg_engine::http2::Config::stream_window). `None` is the default, 1 MiB.
    pub fn initial_stream_window_size(mut self, sz: impl Into<Option<u32>>) -> Self {
        self.http2.stream_window = sz.into();
        self
    }

    /// Sets the flow-control window of a connection,
    /// [`Config::connection_window`](field@thalweg_engine::http2::Config::connection_window). `None` is the default, 4
    /// MiB.
    pub fn initial_connection_window_size(mut self, sz: impl Into<Option<u32>>) -> Self {
        self.http2.connection_window = sz.into();
        self
    }

    /// Sets how many calls may wait before the channel is not ready for more; 1,024 by default. They wait for a
    /// connection or a free stream, or under [`concurrency_limit`](Self::concurrency_limit) or
    /// [`rate_limit`](Self::rate_limit).
    pub fn buffer_size(mut self, sz: impl Into<Option<usize>>) -> Self {
        self.limits.buffer = sz.into();
        self
    }

    /// Sets TLS for an `https://` endpoint.
    ///
    /// # Errors
    /// Returns an error if certificates or keys are unusable, the name is invalid, or the endpoint is a UNIX domain
    /// socket.
    #[cfg(feature = "_tls-any")]
    pub fn tls_config(self, tls_config: ClientTlsConfig) -> Result<Self, Error> {
        let tls = tls_config.into_engine(self.tls_uri()?)?;
        Ok(Self { tls: Some(tls), ..self })
    }

    /// Sets TLS for an `https://` endpoint, with the application's own verifier of server certificates. `tls_config`
    /// must then contain no certificates, trust anchors or roots. A verifier that accepts too much defeats TLS.
    ///
    /// # Errors
    /// Returns the errors of [`tls_config`](Self::tls_config), and an error if `tls_config` contains certificates,
    /// anchors or roots.
    #[cfg(feature = "_tls-any")]
    pub fn tls_config_with_verifier(
        self,
        tls_config: ClientTlsConfig,
        verifier: Arc<dyn ServerCertVerifier>,
    ) -> Result<Self, Error> {
        let tls = tls_config.into_engine_with(self.tls_uri()?, verifier)?;
        Ok(Self { tls: Some(tls), ..self })
    }

    #[cfg(feature = "_tls-any")]
    fn tls_uri(&self) -> Result<&Uri, Error> {
        match self.socket {
            None => Ok(&self.uri),
            Some(_) => Err(Error::new(Kind::InvalidTlsConfigForUds)),
        }
    }

    /// Sets TCP_NODELAY, [`TcpOptions::nodelay`](thalweg_engine::TcpOptions::nodelay); set by default.
    pub fn tcp_nodelay(mut self, enabled: bool) -> Self {
        self.tcp.nodelay = enabled;
        self
    }

    /// Sets the silence after which the channel sends the server a PING,
    /// [`ChannelConfig::keepalive`](thalweg_engine::ChannelConfig::keepalive); never by default.
    pub fn http2_keep_alive_interval(self, interval: Duration) -> Self {
        Self { keep_alive_interval: Some(interval), ..self }
    }

    /// Sets how long the server may take to acknowledge a PING,
    /// [`Keepalive::timeout`](field@thalweg_engine::Keepalive::timeout); 20 s by default.
    pub fn keep_alive_timeout(self, duration: Duration) -> Self {
        Self { keep_alive_timeout: Some(duration), ..self }
    }

    /// Sets whether PINGs are sent without calls in flight,
    /// [`Keepalive::without_calls`](field@thalweg_engine::Keepalive::without_calls); off by default.
    pub fn keep_alive_while_idle(self, enabled: bool) -> Self {
        Self { keep_alive_while_idle: enabled, ..self }
    }

    /// Has no effect: windows always follow the reader, within the connection's memory budget.
    pub fn http2_adaptive_window(self, _enabled: bool) -> Self {
        self
    }

    /// Sets the size of the HPACK table that the server's encoder may use,
    /// [`Config::header_table_size`](field@thalweg_engine::http2::Config::header_table_size); 4,096 bytes by default.
    pub fn http2_header_table_size(mut self, size: u32) -> Self {
        self.http2.header_table_size = Some(size);
        self
    }

    /// Sets the maximum size of a received header list,
    /// [`Config::max_header_list_size`](field@thalweg_engine::http2::Config::max_header_list_size); 16 KiB by default.
    pub fn http2_max_header_list_size(mut self, size: u32) -> Self {
        self.http2.max_header_list_size = Some(size);
        self
    }

    /// Has no effect: reset streams are recognised without storing them.
    #[must_use]
    pub fn http2_max_concurrent_reset_streams(self, _max: usize) -> Self {
        self
    }

    /// Has no effect, like [`http2_max_concurrent_reset_streams`](Self::http2_max_concurrent_reset_streams).
    #[must_use]
    pub fn http2_reset_stream_duration(self, _duration: Duration) -> Self {
        self
    }

    /// Sets how many stream resets the server may provoke before the connection ends with ENHANCE_YOUR_CALM. By default
    /// 1,000, replenished by 33 per second; `None` is unlimited.
    #[must_use]
    pub fn http2_max_local_error_reset_streams(mut self, max: impl Into<Option<usize>>) -> Self {
        self.http2.max_provoked_resets = Some(max.into().unwrap_or(usize::MAX));
        self
    }

    /// Sets the maximum size of a received frame,
    /// [`Config::max_frame_size`](field@thalweg_engine::http2::Config::max_frame_size). `None` is the default, 128 KiB.
    #[must_use]
    pub fn max_frame_size(mut self, frame_size: impl Into<Option<u32>>) -> Self {
        self.http2.max_frame_size = frame_size.into();
        self
    }

    /// Sets the number of connections: fixed, or [adaptive](Lanes::adaptive) within bounds, the default. Not part of
    /// tonic's API.
    ///
    /// ```
    /// use thalweg_tonic::transport::Endpoint;
    /// use thalweg_tonic::transport::channel::Lanes;
    ///
    /// let one = Endpoint::from_static("http://[::1]:50051").lanes(1);
    /// let some = Endpoint::from_static("http://[::1]:50051").lanes(Lanes::adaptive().floor(2).cap(8));
    /// # drop((one, some));
    /// ```
    #[must_use]
    pub fn lanes(self, lanes: impl Into<Lanes>) -> Self {
        Self { lanes: lanes.into(), ..self }
    }

    /// Sets the executor of the task that queues calls; tokio by default. Connections run on the runtime in which they
    /// are created.
    pub fn executor<E>(self, executor: E) -> Self
    where
        E: Executor<Pin<Box<dyn Future<Output = ()> + Send>>> + Send + Sync + 'static,
    {
        Self { executor: Arc::new(executor), ..self }
    }

    /// Sets the local address to connect from,
    /// [`TcpOptions::local_address`](thalweg_engine::TcpOptions::local_address); the system's choice by default.
    pub fn local_address(mut self, addr: Option<IpAddr>) -> Self {
        self.tcp.local_address = addr;
        self
    }

    /// Returns the URI; `http://tonic` for a UNIX domain socket.
    pub fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Returns the value of [`tcp_nodelay`](Self::tcp_nodelay).
    pub fn get_tcp_nodelay(&self) -> bool {
        self.tcp.nodelay
    }

    /// Returns the value of [`connect_timeout`](Self::connect_timeout), if set.
    pub fn get_connect_timeout(&self) -> Option<Duration> {
        self.connect_timeout
    }

    /// Returns the value of [`tcp_keepalive`](Self::tcp_keepalive), if set.
    pub fn get_tcp_keepalive(&self) -> Option<Duration> {
        self.tcp.keepalive
    }

    /// Returns the value of [`tcp_keepalive_interval`](Self::tcp_keepalive_interval), if set.
    pub fn get_tcp_keepalive_interval(&self) -> Option<Duration> {
        self.tcp.keepalive_interval
    }

    /// Returns the value of [`tcp_keepalive_retries`](Self::tcp_keepalive_retries), if set.
    pub fn get_tcp_keepalive_retries(&self) -> Option<u32> {
        self.tcp.keepalive_retries
    }

    /// Adds a setting of the engine.
    pub(super) fn with_setting(mut self, set: Setting) -> Self {
        self.settings.push(set);
        self
    }

    /// Returns a key that identifies the endpoint in a list.
    pub(super) fn key(&self) -> String {
        self.socket.as_ref().map_or_else(|| self.uri.to_string(), |path| format!("unix:{path}"))
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(super) fn shared_executor(&self) -> &SharedExecutor {
        &self.executor
    }

    fn is_https(&self) -> bool {
        self.socket.is_none() && self.uri.scheme_str() == Some("https")
    }

    /// Returns the target and the settings of the engine's channel, without [`Limits`].
    pub(super) fn config(&self) -> Result<(String, ChannelConfig), Error> {
        let mut config = ChannelConfig::default();
        let target = if let Some(path) = &self.socket {
            format!("unix:{path}")
        } else {
            let (host, port) = self.host_and_port()?;
            // With the scheme, since a host may be named `dns` or `unix`.
            format!("dns:///{host}:{port}")
        };
        let authority = self.origin.as_ref().unwrap_or(&self.uri).authority();
        config.authority = Some(authority.ok_or_else(|| invalid_uri(NO_AUTHORITY))?.to_string());
        config.user_agent = self.user_agent.clone().unwrap_or_default();
        config.connect_timeout = self.connect_timeout.unwrap_or(config.connect_timeout);
        // tonic has no backoff: a server that is back takes calls at once.
        config.backoff = Backoff::default().base_delay(BACKOFF_BASE).max_delay(BACKOFF_MAX);
        config.tcp = self.tcp.clone();
        config.lanes = self.lanes.clone();
        config.keepalive = self.keep_alive_interval.map(|interval| {
            let keepalive = Keepalive::every(interval).without_calls(self.keep_alive_while_idle);
            self.keep_alive_timeout.map_or(keepalive, |timeout| keepalive.timeout(timeout))
        });
        self.http2.apply(&mut config.http2);
        #[cfg(feature = "_tls-any")]
        if self.is_https() {
            config.tls = Some(self.tls.clone().ok_or_else(|| Error::transport(NO_TLS))?);
        }
        #[cfg(not(feature = "_tls-any"))]
        if self.is_https() {
            return Err(Error::transport(NO_TLS));
        }
        for set in &self.settings {
            set(&mut config);
        }
        Ok((target, config))
    }

    /// Returns the endpoint as one of a balanced channel. There its concurrency limit is the stream limit of its only
    /// connection, its rate limit is an attribute, and its timeout applies once a call is sent to it.
    pub(super) fn member(&self) -> Result<thalweg_engine::Endpoint, String> {
        let (target, mut config) = self.config().map_err(|error| error_text(&error))?;
        if let Some(concurrency) = self.limits.concurrency {
            config.lanes = Lanes::fixed(1);
            config.http2.max_opened_streams = u32::try_from(concurrency).unwrap_or(u32::MAX).max(1);
        }
        config.call_options.timeout = self.limits.timeout;
        let endpoint = config.endpoint(&target).map_err(|error| error.to_string())?;
        Ok(match self.limits.rate {
            None => endpoint,
            Some((calls, period)) => endpoint.attribute(RateLimit::new(calls, period)),
        })
    }

    fn host_and_port(&self) -> Result<(&str, u16), Error> {
        let host = self.uri.host().filter(|host| !host.is_empty());
        let host = host.ok_or_else(|| invalid_uri(NO_AUTHORITY))?;
        let default = match self.uri.scheme_str() {
            Some("https") => 443,
            Some(_) => 80,
            None => return Err(invalid_uri(NO_SCHEME)),
        };
        Ok((host, self.uri.port_u16().unwrap_or(default)))
    }
}

const NO_SCHEME: &str = "missing scheme; use http://host:port or https://host:port";
const NO_AUTHORITY: &str = "missing host; use http://host:port or https://host:port";
const NO_TLS: &str = "an https:// endpoint needs TLS; enable the feature `tls-ring` or `tls-aws-lc`, and set \
                      `Endpoint::tls_config`";

/// Returns the error and its causes.
fn error_text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

fn invalid_uri(reason: &'static str) -> Error {
    Error::new(Kind::InvalidUri).with(reason)
}

/// Returns the path in `unix:path` or `unix://path`.
fn socket_of(text: &str) -> Option<&str> {
    let path = text.strip_prefix("unix:")?;
    Some(path.strip_prefix("//").unwrap_or(path))
}

impl From<Uri> for Endpoint {
    fn from(uri: Uri) -> Self {
        Self::at(uri, None)
    }
}

impl TryFrom<Bytes> for Endpoint {
    type Error = Error;

    fn try_from(bytes: Bytes) -> Result<Self, Error> {
        Self::from_shared(bytes)
    }
}

impl TryFrom<String> for Endpoint {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        Self::from_shared(text)
    }
}

impl TryFrom<&'static str> for Endpoint {
    type Error = Error;

    fn try_from(text: &'static str) -> Result<Self, Error> {
        Self::from_shared(text)
    }
}

impl FromStr for Endpoint {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::from_shared(text.to_owned())
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("at", &self.key()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    fn config(endpoint: &Endpoint) -> ChannelConfig {
        endpoint.config().unwrap().1
    }

    #[test]
    fn targets_and_authorities_follow_from_uris() {
        let check = |uri: &'static str, expected: Result<(&str, &str), &str>| {
            let actual = Endpoint::from_static(uri).config();
            match (actual, expected) {
                (Ok((target, config)), Ok((expected_target, authority))) => {
                    assert_eq!(
                        (target.as_str(), config.authority.as_deref()),
                        (expected_target, Some(authority)),
                        "{uri}"
                    );
                }
                (Err(error), Err(part)) => {
                    let source = error.source().unwrap().to_string();
                    assert!(source.contains(part), "{uri}: {source}");
                }
                (actual, expected) => panic!("{uri}: {actual:?}, not {expected:?}"),
            }
        };
        check("http://example.com", Ok(("dns:///example.com:80", "example.com")));
        check("http://example.com:50051", Ok(("dns:///example.com:50051", "example.com:50051")));
        check("http://127.0.0.1:1/path?query", Ok(("dns:///127.0.0.1:1", "127.0.0.1:1")));
        check("http://[::1]:50051", Ok(("dns:///[::1]:50051", "[::1]:50051")));
        check("http://dns:50051", Ok(("dns:///dns:50051", "dns:50051")));
        check("unix:/run/shop.sock", Ok(("unix:/run/shop.sock", "tonic")));
        check("unix:///run/shop.sock", Ok(("unix:/run/shop.sock", "tonic")));
        check("unix:shop.sock", Ok(("unix:shop.sock", "tonic")));
        check("127.0.0.1:50051", Err("missing scheme"));
        check("/path", Err("missing host"));
        check("https://example.com", Err("needs TLS"));
    }

    #[test]
    fn engine_understands_the_targets() {
        for uri in ["http://example.com", "http://[::1]:1", "http://dns:1", "unix:/run/shop.sock"] {
            let (target, config) = Endpoint::from_static(uri).config().unwrap();
            assert!(thalweg_engine::Channel::new(&target, config).is_ok(), "{uri}");
        }
    }

    #[test]
    fn valid_texts_become_endpoints() {
        let check = |text: &'static str, expected: Result<&str, &str>| {
            let endpoints = [
                Endpoint::from_shared(text),
                Endpoint::try_from(text),
                Endpoint::try_from(text.to_owned()),
                Endpoint::try_from(Bytes::from_static(text.as_bytes())),
                text.parse(),
            ];
            for endpoint in endpoints {
                match (endpoint, expected) {
                    (Ok(endpoint), Ok(uri)) => assert_eq!(endpoint.uri().to_string(), uri),
                    (Err(error), Err(part)) => {
                        assert_eq!(error.to_string(), "invalid URI");
                        assert!(error.source().unwrap().to_string().contains(part), "{error:?}");
                    }
                    (endpoint, expected) => panic!("{text}: {endpoint:?}, not {expected:?}"),
                }
            }
        };
        check("http://[::1]:50051", Ok("http://[::1]:50051/"));
        check("unix:/run/shop.sock", Ok("http://tonic/"));
        check("http://a b", Err("invalid uri character"));
        check("", Err("empty string"));
        let error = Endpoint::from_shared(&b"http://\xff"[..]).unwrap_err();
        assert_eq!(error.to_string(), "invalid URI");
        let error = Endpoint::new("http://a b").unwrap_err();
        assert_eq!(error.to_string(), "transport error");
        assert_eq!(error.source().unwrap().to_string(), "invalid URI");
    }

    #[test]
    fn origin_without_path_is_accepted() {
        let endpoint =
            Endpoint::from_static("http://proxy:1").origin(Uri::from_static("http://shop.example"));
        let (target, config) = endpoint.config().unwrap();
        assert_eq!((target.as_str(), config.authority.as_deref()), ("dns:///proxy:1", Some("shop.example")));
        let error = endpoint.origin(Uri::from_static("/")).config().unwrap_err();
        assert_eq!(error.to_string(), "invalid URI");
    }

    #[test]
    fn user_agent_is_validated() {
        let endpoint = || Endpoint::from_static("http://a:1");
        assert_eq!(config(&endpoint()).user_agent, "");
        assert_eq!(config(&endpoint().user_agent("shop/1").unwrap()).user_agent, "shop/1");
        for agent in ["a\nb", "caf\u{e9}"] {
            let error = endpoint().user_agent(agent).unwrap_err();
            assert_eq!(error.to_string(), "user agent is not a valid header value");
        }
    }

    #[test]
    fn timeouts_and_keepalive_reach_the_engine() {
        let endpoint = || Endpoint::from_static("http://a:1");
        let seconds = Duration::from_secs;
        let unset = config(&endpoint());
        assert_eq!(
            (unset.connect_timeout, unset.keepalive),
            (ChannelConfig::default().connect_timeout, None)
        );
        assert_eq!(unset.call_options.timeout, None);
        let set = endpoint().connect_timeout(seconds(3));
        assert_eq!((config(&set).connect_timeout, set.get_connect_timeout()), (seconds(3), Some(seconds(3))));
        // It is local to this side, so it is not the engine's deadline, which is sent.
        let timed = endpoint().timeout(seconds(5));
        assert_eq!((config(&timed).call_options.timeout, timed.limits().timeout), (None, Some(seconds(5))));
        let with_keepalive = endpoint().http2_keep_alive_interval(seconds(30));
        assert_eq!(config(&with_keepalive).keepalive, Some(Keepalive::every(seconds(30))));
        let with_keepalive = with_keepalive.keep_alive_timeout(seconds(7)).keep_alive_while_idle(true);
        let expected = Keepalive::every(seconds(30)).timeout(seconds(7)).without_calls(true);
        assert_eq!(config(&with_keepalive).keepalive, Some(expected));
        let without_interval = endpoint().keep_alive_timeout(seconds(7)).keep_alive_while_idle(true);
        assert_eq!(config(&without_interval).keepalive, None);
    }

    #[test]
    fn http2_settings_reach_the_engine() {
        let check = |endpoint: Endpoint, expected: fn(&mut thalweg_engine::http2::Config)| {
            let mut expected_target = ChannelConfig::default().http2;
            expected(&mut expected_target);
            assert_eq!(format!("{:?}", config(&endpoint).http2), format!("{expected_target:?}"));
        };
        let endpoint = || Endpoint::from_static("http://a:1");
        check(endpoint().http2_adaptive_window(true), |_| {});
        check(endpoint().http2_max_concurrent_reset_streams(1), |_| {});
        check(endpoint().http2_reset_stream_duration(Duration::ZERO), |_| {});
        check(endpoint().initial_stream_window_size(99_000), |http2| http2.stream_window = 99_000);
        check(endpoint().initial_stream_window_size(99_000).initial_stream_window_size(None), |_| {});
        check(endpoint().initial_connection_window_size(99_000), |http2| http2.connection_window = 99_000);
        check(endpoint().http2_header_table_size(99), |http2| http2.header_table_size = 99);
        check(endpoint().http2_max_header_list_size(99), |http2| http2.max_header_list_size = 99);
        check(endpoint().max_frame_size(99_000), |http2| http2.max_frame_size = 99_000);
        check(endpoint().http2_max_local_error_reset_streams(7), |http2| http2.limits.glitches = 70);
        check(endpoint().http2_max_local_error_reset_streams(None), |http2| http2.limits.glitches = u32::MAX);
    }

    #[test]
    fn socket_options_reach_the_engine() {
        let unset = Endpoint::from_static("http://a:1");
        assert!(unset.get_tcp_nodelay());
        assert_eq!(config(&unset).tcp, TcpOptions::default());
        let local: IpAddr = "127.0.0.2".parse().unwrap();
        let set = unset
            .tcp_keepalive(Some(Duration::from_secs(1)))
            .tcp_keepalive_interval(Some(Duration::from_secs(2)))
            .tcp_keepalive_retries(Some(3))
            .local_address(Some(local))
            .tcp_nodelay(false);
        assert_eq!(set.get_tcp_keepalive(), Some(Duration::from_secs(1)));
        assert_eq!(set.get_tcp_keepalive_interval(), Some(Duration::from_secs(2)));
        assert_eq!((set.get_tcp_keepalive_retries(), set.get_tcp_nodelay()), (Some(3), false));
        let tcp = config(&set).tcp;
        assert_eq!((tcp.nodelay, tcp.local_address), (false, Some(local)));
        let seconds = [tcp.keepalive, tcp.keepalive_interval].map(|time| time.map(|time| time.as_secs()));
        assert_eq!((seconds, tcp.keepalive_retries), ([Some(1), Some(2)], Some(3)));
    }

    #[test]
    fn limits_are_stored() {
        let set =
            Endpoint::from_static("http://a:1").concurrency_limit(2).rate_limit(3, Duration::from_secs(4));
        let set = set.buffer_size(5);
        let limits = set.limits();
        assert_eq!((limits.concurrency, limits.rate), (Some(2), Some((3, Duration::from_secs(4)))));
        assert_eq!((limits.buffer, set.buffer_size(None).limits().buffer), (Some(5), None));
    }
}
