//! Names in DNS, with service configs in TXT records (gRFC A2): [`DnsResolver`].

use std::fmt;
use std::sync::{Mutex, PoisonError};

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::RData;
use thalweg_balance::service_config::{ServiceConfig, ServiceConfigError, TxtClient};
use thalweg_balance::{Address, Endpoint};

use crate::lanes::Target;
use crate::random::random_unit;
use crate::resolver::{Resolution, ResolveError, Resolver, Resolving};
use crate::service_config_source::ServiceConfigSource;

/// Looks up a name in DNS by itself, instead of by the system's resolver, and reads the service's
/// [service config](Resolution::service_config) in the TXT record of `_grpc_config.` and the name (gRFC A2).
///
/// Each address is a server. The name servers are those of `/etc/resolv.conf`, or the one in the target. `/etc/hosts`
/// is read, other sources of nsswitch are not. Results are not cached: the channel decides when to resolve again.
///
/// ```no_run
/// # use thalweg_engine::{Channel, ChannelConfig, DnsResolver};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut config = ChannelConfig::default();
/// config.set_resolver(DnsResolver::new("dns://10.0.0.53:5353/orders.example:50051")?);
/// let channel = Channel::new("orders.example", config)?;
/// # drop(channel);
/// # Ok(()) }
/// ```
pub struct DnsResolver {
    host: String,
    port: u16,
    resolver: TokioResolver,
    reads_config: bool,
    host_name: String,
    /// A random number from 0 to 99, for choices with a percentage.
    percent: u32,
    /// The result of the last successful look-up of the TXT record.
    last_config: Mutex<Option<Found>>,
}

type Found = Result<ServiceConfigSource, ServiceConfigError>;

/// Prefix of the name with the TXT record.
const CONFIG_NAME: &str = "_grpc_config.";
/// Start of the TXT record. Others at the same name are ignored.
const CONFIG_ATTRIBUTE: &[u8] = b"grpc_config=";
/// Default port of name servers.
const DNS_PORT: u16 = 53;

impl DnsResolver {
    /// Creates a resolver for `host:port`, `dns:///host:port`, or `dns://ADDRESS:PORT/host:port` with the address of a
    /// name server, whose default port is 53.
    ///
    /// # Errors
    /// Returns an error if the target is invalid, or `/etc/resolv.conf` cannot be read.
    pub fn new(target: &str) -> Result<Self, ResolveError> {
        let invalid = |why: &str| {
            let usage = "use host:port or dns://ADDRESS:PORT/host:port";
            ResolveError::new(format!("invalid name `{target}`: {why}; {usage}"))
        };
        let (server, name) = match target.strip_prefix("dns://") {
            None => ("", target.strip_prefix("dns:").unwrap_or(target)),
            Some(rest) => rest.split_once('/').ok_or_else(|| invalid("the host is missing"))?,
        };
        let parsed = Target::parse(&format!("dns:///{name}")).map_err(|error| invalid(&error.to_string()))?;
        let Some((host, port)) = parsed.host_and_port() else { return Err(invalid("it is no name")) };
        let failed = |error: NetError| ResolveError::new(format!("failed to read the DNS settings: {error}"));
        let mut builder = if server.is_empty() {
            TokioResolver::builder_tokio().map_err(failed)?
        } else {
            let server =
                name_server(server).ok_or_else(|| invalid("the name server has no valid address"))?;
            let config = ResolverConfig::from_name_servers(vec![server]);
            TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
        };
        builder.options_mut().cache_size = 0;
        Ok(Self {
            host: host.to_owned(),
            port,
            resolver: builder.build().map_err(failed)?,
            reads_config: true,
            host_name: host_name(),
            percent: (random_unit() * 100.0).min(99.0) as u32,
            last_config: Mutex::default(),
        })
    }

    /// Sets whether it reads service configs; true by default.
    pub fn service_config(mut self, reads_config: bool) -> Self {
        self.reads_config = reads_config;
        self
    }

    /// Sets the name of this host, which the choices of a TXT record may name (`clientHostname`); the system's by
    /// default.
    pub fn host_name(mut self, name: impl Into<String>) -> Self {
        self.host_name = name.into();
        self
    }

    async fn addresses(&self) -> Result<Vec<Endpoint>, ResolveError> {
        let found = self.resolver.lookup_ip(self.host.as_str()).await;
        let found = found.map_err(|error| {
            ResolveError::new(format!("{error} (check the name and its DNS records, and the name servers)"))
        })?;
        let endpoint = |ip| Endpoint::new(Address::Tcp(core::net::SocketAddr::new(ip, self.port)));
        Ok(found.iter().map(endpoint).collect())
    }

    /// Looks up the service config. If the look-up fails, the last result stays: a name server that does not respond
    /// must not change the settings of calls.
    async fn config(&self) -> Option<Found> {
        if !self.reads_config || self.host.parse::<core::net::IpAddr>().is_ok() {
            return None;
        }
        let found = match self.resolver.txt_lookup(format!("{CONFIG_NAME}{}", self.host)).await {
            Ok(found) => found,
            Err(error) if error.is_no_records_found() => {
                return self.keep(None);
            }
            Err(error) => {
                tracing::debug!(name = %self.host, why = %error, "failed to look up the service config");
                return self.last_config.lock().unwrap_or_else(PoisonError::into_inner).clone();
            }
        };
        let records = found.answers().iter().filter_map(|record| match &record.data {
            RData::TXT(txt) => Some(txt.txt_data.concat()),
            _ => None,
        });
        let record = records.into_iter().find(|record| record.starts_with(CONFIG_ATTRIBUTE));
        let client = TxtClient { host_name: &self.host_name, random_percent: self.percent };
        let choose = |record: Vec<u8>| {
            let chosen = ServiceConfig::json_from_txt(&String::from_utf8_lossy(&record), client);
            chosen.map(|json| json.map(ServiceConfigSource::Json)).transpose()
        };
        self.keep(record.and_then(choose))
    }

    fn keep(&self, found: Option<Found>) -> Option<Found> {
        self.last_config.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&found);
        found
    }
}

impl Resolver for DnsResolver {
    fn gives_service_config(&self) -> bool {
        self.reads_config
    }

    fn resolve(&self) -> Resolving<'_> {
        Box::pin(async {
            let (addresses, config) = tokio::join!(self.addresses(), self.config());
            let mut resolution = Resolution::new(addresses?);
            resolution.service_config = config;
            Ok(resolution)
        })
    }
}

impl fmt::Debug for DnsResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, .. } = self;
        f.debug_struct("DnsResolver").field("host", host).field("port", port).finish_non_exhaustive()
    }
}

/// Parses `ADDRESS` or `ADDRESS:PORT`.
fn name_server(text: &str) -> Option<NameServerConfig> {
    let with_port = text.parse::<core::net::SocketAddr>();
    let alone = || text.trim_start_matches('[').trim_end_matches(']').parse();
    let at = with_port.or_else(|_| alone().map(|ip| core::net::SocketAddr::new(ip, DNS_PORT))).ok()?;
    let connection = |mut connection: ConnectionConfig| {
        connection.port = at.port();
        connection
    };
    let connections = vec![connection(ConnectionConfig::udp()), connection(ConnectionConfig::tcp())];
    Some(NameServerConfig::new(at.ip(), true, connections))
}

/// Returns the system's host name; empty if it is unknown.
fn host_name() -> String {
    #[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
    {
        // Longer than any system's names (HOST_NAME_MAX).
        let mut name = [0; 256];
        // SAFETY: it writes at most as many bytes as `name` has.
        let outcome = unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len()) };
        if let (0, Ok(name)) = (outcome, std::ffi::CStr::from_bytes_until_nul(&name)) {
            return name.to_string_lossy().into_owned();
        }
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn targets() {
        let check = |target: &str, expected: Result<(&str, u16), &str>| {
            let parsed = DnsResolver::new(target);
            let found = parsed.as_ref().map(|resolver| (resolver.host.as_str(), resolver.port));
            let text = found.map_err(ToString::to_string);
            match expected {
                Ok(expected) => assert_eq!(text, Ok(expected), "{target}"),
                Err(part) => {
                    assert!(text.clone().is_err_and(|text| text.contains(part)), "{target}: {text:?}");
                }
            }
        };
        check("dns://127.0.0.1:5353/orders.example:50051", Ok(("orders.example", 50051)));
        check("dns://127.0.0.1/orders.example", Ok(("orders.example", 443)));
        check("dns://[::1]:5353/orders.example:1", Ok(("orders.example", 1)));
        check("dns://[::1]/orders.example:1", Ok(("orders.example", 1)));
        check("dns://server/orders.example:1", Err("the name server has no valid address"));
        check("dns://127.0.0.1", Err("the host is missing"));
        check("dns://127.0.0.1/", Err("the host is missing"));
        check("dns://127.0.0.1/a:b", Err("the port is not a number"));
    }
}
