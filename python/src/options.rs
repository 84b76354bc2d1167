//! Arguments of calls, and settings of channels and servers.
//!
//! `thalweg.grpc._options` translates grpcio's options into settings: a dictionary of plain values, applied here to the
//! configuration of the engine.

use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use thalweg_core::Code;
use thalweg_engine::server::ServerConfig;
use thalweg_engine::service_config::PolicyRegistry;
use thalweg_engine::{
    CallOptions, ChannelConfig, DnsResolver, Encoding, EncodingSet, Keepalive, Lanes, Method, ProxyConfig,
    ServiceConfig, ServiceConfigSource, ServiceOptions,
};

/// Compression of messages, by the numbers of grpcio's `Compression`.
const ENCODINGS: [Encoding; 3] = [Encoding::Identity, Encoding::Deflate, Encoding::Gzip];

/// Maximum number of concurrent streams on a connection of a server by default. grpcio has none, which leaves a server
/// without a bound on resets; this is four times the engine's own, for clients with many long streams.
const CONCURRENT_STREAMS_MAX: u32 = 1000;

/// Returns the method at `path`.
pub(crate) fn method(path: &str) -> PyResult<Arc<Method>> {
    Method::from_path(path).map(Arc::new).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Converts seconds to a timeout. No time is left if they are negative.
pub(crate) fn timeout(seconds: Option<f64>) -> PyResult<Option<Duration>> {
    match seconds {
        None => Ok(None),
        Some(seconds) if seconds.is_nan() => Err(PyValueError::new_err("the timeout is not a number")),
        // Also infinite: no deadline.
        Some(seconds) => Ok(Duration::try_from_secs_f64(seconds.max(0.0)).ok()),
    }
}

/// Returns the number of a status code.
pub(crate) fn code(number: i32) -> PyResult<Code> {
    let code = Code::from_i32(number);
    if code as i32 == number {
        return Ok(code);
    }
    Err(PyValueError::new_err(format!("no status code has the number {number}")))
}

/// Returns the encoding with a number of `grpc.Compression`.
pub(crate) fn encoding_of(number: usize) -> Option<Encoding> {
    ENCODINGS.get(number).copied()
}

/// Returns the encoding of a member of `grpc.Compression`, or its number.
pub(crate) fn encoding(compression: &Bound<'_, PyAny>) -> PyResult<Encoding> {
    let number: usize = compression.extract().map_err(|_| {
        PyTypeError::new_err(format!(
            "compression must be a grpc.Compression, not {}",
            type_name(compression)
        ))
    })?;
    encoding_of(number).ok_or_else(|| {
        PyValueError::new_err(format!("unknown compression {number}; use a member of grpc.Compression"))
    })
}

/// Returns the options of one call, on top of those of its channel.
pub(crate) fn call_options(
    channel: &CallOptions,
    timeout_s: Option<f64>,
    wait_for_ready: Option<bool>,
    compression: Option<&Bound<'_, PyAny>>,
) -> PyResult<CallOptions> {
    let mut options = channel.clone();
    options.timeout = timeout(timeout_s)?;
    options.wait_for_ready = wait_for_ready;
    if let Some(compression) = compression.filter(|it| !it.is_none()) {
        options.send_compressed = Some(encoding(compression)?);
    }
    Ok(options)
}

/// Settings of a channel.
#[derive(Debug)]
pub(crate) struct ChannelSettings {
    pub(crate) config: ChannelConfig,
    /// The name that the server's certificate must be valid for; that of the target by default.
    pub(crate) tls_name: Option<String>,
    /// Whether service configs are read from DNS; off by default, as in grpcio.
    reads_service_config: bool,
}

impl ChannelSettings {
    /// Reads the settings of a channel.
    ///
    /// # Errors
    /// Returns `TypeError` or `ValueError` with the name of a setting that is unknown or has a wrong value.
    pub(crate) fn from_python(settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut config = ChannelConfig::default();
        config.proxy = ProxyConfig::Environment;
        // Only the server limits metadata.
        config.call_options.max_sent_metadata_size = usize::MAX;
        // grpcio counts the same way.
        config.http2.max_header_list_size = 16 << 10;
        let mut this = Self { config, tls_name: None, reads_service_config: false };
        let (mut interval, mut keepalive) = (None, Keepalive::every(FOREVER));
        for (name, value) in settings.into_iter().flatten() {
            let value = Setting::new(&name, value)?;
            match value.name.as_str() {
                "keepalive_ms" => interval = value.duration()?,
                "keepalive_timeout_ms" => keepalive.timeout = value.duration_or_forever()?,
                "keepalive_without_calls" => keepalive.without_calls = value.get()?,
                _ => this.apply(&value)?,
            }
        }
        this.config.keepalive = interval.map(|interval| {
            keepalive.interval = interval;
            keepalive
        });
        Ok(this)
    }

    fn apply(&mut self, setting: &Setting<'_>) -> PyResult<()> {
        let Self { config, tls_name, reads_service_config } = self;
        let calls = &mut config.call_options;
        match setting.name.as_str() {
            "max_receive_message_length" => calls.max_decoding_message_size = setting.length()?,
            "max_send_message_length" => calls.max_encoding_message_size = setting.length()?,
            "compression" => calls.send_compressed = Some(encoding(&setting.value)?),
            "accepted_compression" => calls.accept_compressed = encodings(setting.get()?),
            "idle_timeout_ms" => config.idle_timeout = setting.duration()?,
            "backoff_base_ms" => config.backoff.base_delay = setting.duration_or_forever()?,
            "backoff_max_ms" => config.backoff.max_delay = setting.duration_or_forever()?,
            "backoff_multiplier" => config.backoff.multiplier = setting.get()?,
            "connect_timeout_ms" => config.connect_timeout = setting.duration_or_forever()?,
            "grpc.lb_policy_name" => {
                let name: String = setting.get()?;
                let json = format!("{{\"loadBalancingConfig\":[{{{name:?}:{{}}}}]}}");
                let parsed = ServiceConfig::parse(&json, &PolicyRegistry::default());
                let parsed = parsed.map_err(|error| setting.invalid(error))?;
                config.load_balancing = parsed.load_balancing.unwrap_or_default();
            }
            "grpc.service_config" => {
                let json: String = setting.get()?;
                let parsed = ServiceConfig::parse(&json, &PolicyRegistry::default());
                parsed.map_err(|error| setting.invalid(error))?;
                config.service_config = Some(ServiceConfigSource::Json(json));
            }
            "service_config_from_dns" => *reads_service_config = setting.get()?,
            "retries" => config.retries = setting.get()?,
            "retry_buffer_size" => config.call_retry_buffer_size = setting.get()?,
            "user_agent" => config.user_agent = setting.get()?,
            "authority" => config.authority = Some(setting.get()?),
            "tls_name" => *tls_name = Some(setting.get()?),
            "uses_proxies" => {
                let uses_proxies: bool = setting.get()?;
                config.proxy = if uses_proxies { ProxyConfig::Environment } else { ProxyConfig::Off };
            }
            "grpc.http_proxy" => {
                let url: String = setting.get()?;
                let proxy = url.parse().map_err(|error| setting.invalid(error))?;
                config.proxy = ProxyConfig::Through(proxy);
            }
            "resolution_interval_ms" => config.resolution_interval_min = setting.duration_or_forever()?,
            "health_checks" => config.health_checks = setting.get()?,
            "connections_max" => config.lanes = Lanes::adaptive().cap(setting.get()?),
            "max_opened_streams" => config.http2.max_opened_streams = setting.get()?,
            _ => return apply_http2(&mut config.http2, setting),
        }
        Ok(())
    }

    /// Sets the resolver of a target that the system's resolver cannot look up. Returns the target without its name
    /// server.
    ///
    /// # Errors
    /// Returns `ValueError` if the target is invalid.
    pub(crate) fn set_resolver<'a>(&self, target: &'a str, config: &mut ChannelConfig) -> PyResult<&'a str> {
        let with_name_server = target.strip_prefix("dns://").filter(|rest| !rest.starts_with('/'));
        let is_name = target.starts_with("dns:") || !target.contains(':') || is_host_and_port(target);
        if with_name_server.is_some() || self.reads_service_config && is_name {
            let resolver = DnsResolver::new(target);
            let resolver = resolver.map_err(|error| PyValueError::new_err(error.to_string()))?;
            config.set_resolver(resolver.service_config(self.reads_service_config));
        }
        let Some((_, name)) = with_name_server.and_then(|rest| rest.split_once('/')) else {
            return Ok(target);
        };
        config.name = Some(target.to_owned());
        Ok(name)
    }
}

fn is_host_and_port(target: &str) -> bool {
    target.split_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok())
}

/// Settings of a server.
#[derive(Debug)]
pub(crate) struct ServerSettings {
    pub(crate) config: ServerConfig,
    pub(crate) service: ServiceOptions,
    /// Timeout of TLS handshakes; 120 s by default, as in grpcio.
    pub(crate) handshake_timeout: Duration,
}

impl ServerSettings {
    /// Reads the settings of a server.
    ///
    /// # Errors
    /// Returns `TypeError` or `ValueError` with the name of a setting that is unknown or has a wrong value.
    pub(crate) fn from_python(settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut config = ServerConfig::default();
        config.busy_poll = Some(Duration::ZERO);
        config.connection_info = Some(true);
        config.reuse_port = true;
        config.http2.max_concurrent_streams = CONCURRENT_STREAMS_MAX;
        config.http2.max_header_list_size = 16 << 10;
        // `stop` cancels calls itself.
        config.shutdown_grace = Duration::from_secs(365 * 24 * 60 * 60);
        let (service, handshake_timeout) = (ServiceOptions::default(), Duration::from_secs(120));
        let mut this = Self { config, service, handshake_timeout };
        let (mut interval, mut timeout) = (None, None);
        for (name, value) in settings.into_iter().flatten() {
            let value = Setting::new(&name, value)?;
            match value.name.as_str() {
                "keepalive_ms" => interval = value.duration()?,
                "keepalive_timeout_ms" => timeout = Some(value.duration_or_forever()?),
                _ => this.apply(&value)?,
            }
        }
        if interval.is_some() || timeout.is_some() {
            let keepalive = Keepalive::every(interval.unwrap_or(Duration::from_secs(2 * 60 * 60)));
            let timeout = timeout.unwrap_or(keepalive.timeout);
            this.config.keepalive = Some(keepalive.timeout(timeout).without_calls(true));
        }
        Ok(this)
    }

    fn apply(&mut self, setting: &Setting<'_>) -> PyResult<()> {
        let Self { config, service, handshake_timeout } = self;
        match setting.name.as_str() {
            "max_receive_message_length" => service.max_decoding_message_size = setting.length()?,
            "max_send_message_length" => service.max_encoding_message_size = setting.length()?,
            "compression" => service.send_compressed = Some(encoding(&setting.value)?),
            "accepted_compression" => service.accept_compressed = encodings(setting.get()?),
            "max_concurrent_streams" => config.http2.max_concurrent_streams = setting.get()?,
            "max_connections" => config.max_connections = Some(setting.get()?),
            "idle_ms" => config.max_connection_idle = setting.duration()?,
            "age_ms" => config.max_connection_age = setting.duration()?,
            "age_grace_ms" => config.max_connection_age_grace = setting.duration()?,
            "ping_interval_min_ms" => {
                config.keepalive_policy.interval_min = setting.duration_or_forever()?;
            }
            "pings_without_calls" => {
                config.keepalive_policy = config.keepalive_policy.without_calls(setting.get()?);
            }
            "handshake_timeout_ms" => *handshake_timeout = setting.duration_or_forever()?,
            "reuse_port" => config.reuse_port = setting.get()?,
            _ => return apply_http2(&mut config.http2, setting),
        }
        Ok(())
    }
}

fn apply_http2(http2: &mut thalweg_engine::http2::Config, setting: &Setting<'_>) -> PyResult<()> {
    match setting.name.as_str() {
        "max_header_list_size" => http2.max_header_list_size = setting.get()?,
        "header_table_size" => http2.header_table_size = setting.get()?,
        "max_frame_size" => http2.max_frame_size = setting.get()?,
        "stream_window" => {
            http2.stream_window = setting.get()?;
            http2.connection_window = http2.connection_window.max(http2.stream_window);
        }
        "settings_timeout_ms" => http2.settings_timeout = setting.duration_or_forever()?,
        name => return Err(PyValueError::new_err(format!("unknown setting `{name}`"))),
    }
    Ok(())
}

/// Returns the encodings in a bit set by the numbers of grpcio's `Compression`.
fn encodings(bits: u32) -> EncodingSet {
    let is_in = |number: &usize| bits & 1 << number != 0;
    (0..ENCODINGS.len()).filter(is_in).fold(EncodingSet::IDENTITY, |set, number| set.with(ENCODINGS[number]))
}

/// Times from which nothing ends, in milliseconds: grpcio's greatest integer.
const FOREVER_MS: u64 = i32::MAX as u64;
/// The same where a time is needed: ten years, which can be added to any instant.
const FOREVER: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// A setting and its value.
struct Setting<'py> {
    name: String,
    value: Bound<'py, PyAny>,
}

impl<'py> Setting<'py> {
    fn new(name: &Bound<'py, PyAny>, value: Bound<'py, PyAny>) -> PyResult<Self> {
        Ok(Self { name: name.cast::<PyString>()?.to_str()?.to_owned(), value })
    }

    fn get<T>(&self) -> PyResult<T>
    where
        T: for<'a> FromPyObject<'a, 'py>,
    {
        self.value.extract().map_err(|error: <T as FromPyObject<'_, 'py>>::Error| {
            let error: PyErr = error.into();
            PyTypeError::new_err(format!("setting `{}`: {}", self.name, error.value(self.value.py())))
        })
    }

    /// Returns a time in milliseconds, or `None` if it is unlimited.
    fn duration(&self) -> PyResult<Option<Duration>> {
        let ms: u64 = self.get()?;
        Ok((ms < FOREVER_MS).then(|| Duration::from_millis(ms)))
    }

    fn duration_or_forever(&self) -> PyResult<Duration> {
        Ok(self.duration()?.unwrap_or(FOREVER))
    }

    /// Returns a length in bytes; unlimited if it is negative.
    fn length(&self) -> PyResult<usize> {
        let length: i64 = self.get()?;
        Ok(usize::try_from(length).unwrap_or(usize::MAX))
    }

    fn invalid(&self, error: impl std::fmt::Display) -> PyErr {
        PyValueError::new_err(format!("option {}: {error}", self.name))
    }
}

fn type_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "it".to_owned(), |name| name.to_string())
}
