//! gRPC target URIs: a channel's addresses, and the server's name.

use std::borrow::Cow;
use std::path::PathBuf;

use thalweg_balance::{Address, Endpoint};

use crate::resolver::{Resolution, Resolver, Resolving, look_up_name};
use crate::server_address::ServerAddress;

/// A parsed gRPC target, in the syntax of gRPC's [naming document].
///
/// | target | addresses |
/// | --- | --- |
/// | `host:port`, `dns:host:port`, `dns:///host:port` | resolved by the system for each connection |
/// | `passthrough:///host:port` | one endpoint, resolved for each connection |
/// | `ipv4:1.2.3.4:80,…`, `ipv6:[::1]:80,…` | these, in this order; at most 1,024 |
/// | `unix:path`, `unix:///absolute/path` | a UNIX domain socket |
/// | `unix-abstract:name` | a socket in Linux's abstract namespace |
///
/// The default port is 443. `http://host:port` and `https://host:port` are accepted as `host:port` without and with
/// TLS, as in tonic. IPv6 addresses may have a zone, `[fe80::1%eth0]:80`, which the system looks up for each
/// connection. It is not part of the `:authority` (RFC 6874 §4).
///
/// [naming document]: https://github.com/grpc/grpc/blob/master/doc/naming.md
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    text: String,
    addresses: Addresses,
    security: Security,
    name: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Addresses {
    Dns { host: String, port: u16 },
    Fixed(Vec<Address>),
}

/// The target's statement about TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Security {
    /// `https://`
    Tls,
    /// `http://`
    Plain,
    /// None: the channel's settings decide.
    Unspecified,
}

/// Default port of a target, as in every gRPC implementation.
const DEFAULT_PORT: u16 = 443;
/// Maximum number of addresses in one `ipv4:` or `ipv6:` target.
const ADDRESSES_MAX: usize = 1024;

/// An invalid target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid target `{target}`: {reason}; use host:port, dns:///host:port, ipv4:…, ipv6:…, unix:PATH or \
     unix-abstract:NAME"
)]
pub struct TargetError {
    target: String,
    reason: Cow<'static, str>,
}

impl TargetError {
    pub(crate) fn new(target: &Target, reason: &'static str) -> Self {
        Self { target: target.text.clone(), reason: reason.into() }
    }
}

impl Target {
    pub(crate) fn parse(text: &str) -> Result<Self, TargetError> {
        let addresses =
            parse_addresses(text).map_err(|reason| TargetError { target: text.to_owned(), reason })?;
        let security = match text {
            text if text.starts_with("https://") => Security::Tls,
            text if text.starts_with("http://") => Security::Plain,
            _ => Security::Unspecified,
        };
        Ok(Self { text: text.to_owned(), addresses, security, name: None })
    }

    /// Sets the name for messages, in place of the text.
    pub(crate) fn rename(&mut self, name: &str) {
        self.name = Some(name.to_owned());
    }

    /// Creates the target of a host and port. IPv6 addresses are without brackets.
    pub(super) fn of_host((host, port): (&str, u16)) -> Self {
        let addresses = Addresses::Dns { host: host.to_owned(), port };
        let mut target = Self { text: String::new(), addresses, security: Security::Unspecified, name: None };
        target.text = target.authority();
        target
    }

    /// Returns host and port, if the target is a `dns` one. IPv6 addresses are without brackets.
    pub(crate) fn host_and_port(&self) -> Option<(&str, u16)> {
        match &self.addresses {
            Addresses::Dns { host, port } => Some((host, *port)),
            Addresses::Fixed(_) => None,
        }
    }

    pub(crate) fn security(&self) -> Security {
        self.security
    }

    /// Returns the target with its scheme, as gRFC A66 requires: `dns:///` if it was given without one.
    pub(crate) fn canonical(&self) -> String {
        if let Some(name) = &self.name {
            return name.clone();
        }
        match &self.addresses {
            Addresses::Dns { .. } if !self.text.starts_with("dns:") => format!("dns:///{}", self.authority()),
            _ => self.text.clone(),
        }
    }

    /// Returns the default `:authority` of calls.
    pub(crate) fn authority(&self) -> String {
        match &self.addresses {
            Addresses::Dns { host, port } => name_of(without_zone(host), *port),
            Addresses::Fixed(endpoints) => match endpoints.first() {
                Some(Address::Tcp(address)) => name_of(&address.ip().to_string(), address.port()),
                Some(Address::Name(name)) => match parse_host(name) {
                    Ok((host, port)) => name_of(without_zone(host), port),
                    Err(_) => name.clone(),
                },
                // gRFCs and other implementations use this for UNIX sockets.
                _ => "localhost".to_owned(),
            },
        }
    }

    /// Returns the server's address.
    pub(crate) fn server(&self) -> ServerAddress {
        let (address, port) = match &self.addresses {
            Addresses::Dns { host, port } => (host.clone(), Some(*port)),
            Addresses::Fixed(endpoints) => match endpoints.first() {
                Some(Address::Tcp(address)) => (address.ip().to_string(), Some(address.port())),
                Some(Address::Unix(path)) => (path.display().to_string(), None),
                Some(Address::UnixAbstract(name)) => (name.clone(), None),
                Some(Address::Name(name)) => match parse_host(name) {
                    Ok((host, port)) => (host.to_owned(), Some(port)),
                    Err(_) => (name.clone(), None),
                },
                None => (self.text.clone(), None),
            },
        };
        ServerAddress { address, port }
    }

    /// Returns the addresses without resolving a name.
    pub(crate) fn unresolved(&self) -> Vec<Address> {
        match &self.addresses {
            Addresses::Dns { host, port } => vec![Address::Name(name_of(host, *port))],
            Addresses::Fixed(addresses) => addresses.clone(),
        }
    }

    /// Returns whether a name has to be resolved.
    pub(crate) fn is_name(&self) -> bool {
        match &self.addresses {
            Addresses::Fixed(_) => false,
            Addresses::Dns { host, .. } => without_zone(host).parse::<std::net::IpAddr>().is_err(),
        }
    }
}

impl Resolver for Target {
    fn resolve(&self) -> Resolving<'_> {
        Box::pin(async {
            match &self.addresses {
                Addresses::Fixed(addresses) => {
                    Ok(Resolution::new(addresses.iter().cloned().map(Endpoint::new)))
                }
                Addresses::Dns { host, port } => {
                    let addresses = look_up_name(&name_of(host, *port)).await?;
                    Ok(Resolution::new(addresses.into_iter().map(Endpoint::new)))
                }
            }
        })
    }

    fn looks_up(&self) -> bool {
        self.is_name()
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name.as_ref().unwrap_or(&self.text))
    }
}

/// Returns `host:port`, with brackets around IPv6 addresses.
fn name_of(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// Removes the zone of an IPv6 address, which has a meaning on this machine only.
fn without_zone(host: &str) -> &str {
    match host.split_once('%') {
        Some((address, _)) if address.contains(':') => address,
        _ => host,
    }
}

fn parse_addresses(text: &str) -> Result<Addresses, Cow<'static, str>> {
    if let Some(name) = text.strip_prefix("unix-abstract:") {
        return match name {
            "" => Err("the name of the abstract socket is missing".into()),
            name => Ok(Addresses::Fixed(vec![Address::UnixAbstract(name.to_owned())])),
        };
    }
    if let Some(path) = text.strip_prefix("unix:") {
        let path = path.strip_prefix("//").unwrap_or(path);
        return match path {
            "" => Err("the path of the UNIX socket is missing".into()),
            list if list.contains(",unix:") => {
                Err("it has several UNIX sockets; give them to an EndpointList".into())
            }
            path => Ok(Addresses::Fixed(vec![Address::Unix(PathBuf::from(path))])),
        };
    }
    if let Some(list) = text.strip_prefix("ipv4:") {
        return parse_fixed(list, IpVersion::V4);
    }
    if let Some(list) = text.strip_prefix("ipv6:") {
        return parse_fixed(list, IpVersion::V6);
    }
    if let Some(name) = text.strip_prefix("passthrough:") {
        let (host, port) = parse_host(without_slashes(name))?;
        return Ok(Addresses::Fixed(vec![Address::Name(name_of(host, port))]));
    }
    let web = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let name = match (web, text.strip_prefix("dns:")) {
        (Some(web), _) => web.trim_end_matches('/'),
        (None, None) => text,
        // `dns://authority/host:port` names a DNS server.
        (None, Some(dns)) => match without_slashes(dns) {
            name if name.starts_with("//") => {
                return Err(
                    "the system's resolver has its own DNS server; use a DnsResolver (feature `dns`)".into(),
                );
            }
            name => name,
        },
    };
    let (host, port) = parse_host(name)?;
    Ok(Addresses::Dns { host: host.to_owned(), port })
}

/// Removes the slashes before a URI's path: `dns:///name`, `dns:/name` and `dns:name` are equivalent.
fn without_slashes(rest: &str) -> &str {
    match rest.strip_prefix("///").or_else(|| rest.strip_prefix('/')) {
        // An authority.
        Some(path) if path.starts_with('/') => rest,
        Some(path) => path,
        None => rest,
    }
}

/// Parses `host:port` or `host`. Returns IPv6 addresses without brackets.
fn parse_host(name: &str) -> Result<(&str, u16), Cow<'static, str>> {
    let (host, port) = match name.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or("the closing bracket is missing")?;
            (
                host,
                rest.strip_prefix(':')
                    .or(rest.is_empty().then_some("443"))
                    .ok_or("a port must follow the bracket")?,
            )
        }
        None => match name.split_once(':') {
            None => (name, "443"),
            Some((_, port)) if port.contains(':') => {
                return Err("an IPv6 address must be in brackets".into());
            }
            Some(pair) => pair,
        },
    };
    if host.is_empty() {
        return Err("the host is missing".into());
    }
    if host.bytes().any(|b| !b.is_ascii_graphic() || b == b'/' || b == b'@') {
        return Err("invalid character in the host".into());
    }
    let port = port.parse().map_err(|_| "the port is not a number from 0 to 65535")?;
    Ok((host, port))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum IpVersion {
    V4,
    V6,
}

/// Parses the list of an `ipv4:` or `ipv6:` target.
fn parse_fixed(list: &str, version: IpVersion) -> Result<Addresses, Cow<'static, str>> {
    let mut addresses = Vec::new();
    for text in without_slashes(list).split(',') {
        if addresses.len() == ADDRESSES_MAX {
            return Err(format!("it has more than {ADDRESSES_MAX} addresses").into());
        }
        addresses.push(parse_ip(text, version)?);
    }
    Ok(Addresses::Fixed(addresses))
}

/// Parses one IP address with or without a port. A zone stays a name, since its interface may change.
fn parse_ip(text: &str, version: IpVersion) -> Result<Address, Cow<'static, str>> {
    let malformed = || match text {
        "" => Cow::from("an address is empty"),
        text => format!("`{text}` is not an IP address with a port").into(),
    };
    let default_port = || {
        let ip = text.trim_matches(['[', ']']).parse();
        ip.map(|ip| std::net::SocketAddr::new(ip, DEFAULT_PORT))
    };
    let parsed: Result<std::net::SocketAddr, _> = text.parse().or_else(|_| default_port());
    let (address, version_found) = if let Ok(address) = parsed {
        (Address::Tcp(address), if address.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 })
    } else {
        let (host, port) = parse_host(text).map_err(|_| malformed())?;
        let zone = host.split_once('%').filter(|(_, zone)| !zone.is_empty());
        if zone.is_none_or(|(ip, _)| ip.parse::<std::net::Ipv6Addr>().is_err()) {
            return Err(malformed());
        }
        (Address::Name(name_of(host, port)), IpVersion::V6)
    };
    if version_found == version {
        Ok(address)
    } else {
        Err(format!("`{text}` has the wrong IP version").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers() {
        let check = |target: &str, address: &str, port: Option<u16>, is_name: bool| {
            let target = Target::parse(target).unwrap();
            assert_eq!(target.server(), ServerAddress { address: address.to_owned(), port });
            assert_eq!(target.is_name(), is_name, "{target}");
        };
        check("localhost:50051", "localhost", Some(50051), true);
        check("dns:///a.test", "a.test", Some(443), true);
        check("127.0.0.1:80", "127.0.0.1", Some(80), false);
        check("[::1]:80", "::1", Some(80), false);
        check("ipv4:1.2.3.4:80,1.2.3.5:81", "1.2.3.4", Some(80), false);
        check("[fe80::1%eth0]:80", "fe80::1%eth0", Some(80), false);
        check("ipv6:[fe80::1%eth0]:80", "fe80::1%eth0", Some(80), false);
        check("unix:///run/a.sock", "/run/a.sock", None, false);
        check("unix-abstract:a", "a", None, false);
    }

    #[test]
    fn targets() {
        let check = |text: &str, expected: Result<(&str, usize), &str>| match (Target::parse(text), expected)
        {
            (Ok(target), Ok((authority, fixed))) => {
                let endpoints = match &target.addresses {
                    Addresses::Fixed(endpoints) => endpoints.len(),
                    Addresses::Dns { .. } => 0,
                };
                assert_eq!((target.authority().as_str(), endpoints), (authority, fixed), "{text}");
            }
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{text}: {error}"),
            (parsed, expected) => panic!("{text}: {parsed:?}, not {expected:?}"),
        };
        check("localhost:50051", Ok(("localhost:50051", 0)));
        check("localhost", Ok(("localhost:443", 0)));
        check("dns:///localhost:1", Ok(("localhost:1", 0)));
        check("dns:localhost:1", Ok(("localhost:1", 0)));
        check("http://127.0.0.1:80/", Ok(("127.0.0.1:80", 0)));
        check("[::1]:80", Ok(("[::1]:80", 0)));
        check("[::1]", Ok(("[::1]:443", 0)));
        check("ipv4:1.2.3.4:5,1.2.3.4", Ok(("1.2.3.4:5", 2)));
        check("ipv6:[::1]:5", Ok(("[::1]:5", 1)));
        check("ipv6:[::1]", Ok(("[::1]:443", 1)));
        check("passthrough:///host:1", Ok(("host:1", 1)));
        check("passthrough:[::1]", Ok(("[::1]:443", 1)));
        check("unix:relative/path", Ok(("localhost", 1)));
        check("unix:///tmp/a", Ok(("localhost", 1)));
        check("unix-abstract:a", Ok(("localhost", 1)));
        check("", Err("host is missing"));
        check(":1", Err("host is missing"));
        check("a:b", Err("not a number"));
        check("a b:1", Err("character"));
        check("::1:80", Err("brackets"));
        check("[::1:80", Err("closing bracket"));
        check("[::1]80", Err("must follow"));
        check("ipv4:[::1]:5", Err("`[::1]:5` has the wrong IP version"));
        check("ipv4:127.0.0.1:1,bad", Err("`bad` is not an IP address with a port"));
        check("ipv4:127.0.0.1:1,", Err("an address is empty"));
        check("ipv4:1.2.3.4%eth0:5", Err("`1.2.3.4%eth0:5` is not an IP address"));
        check("ipv6:[::1%]:5", Err("`[::1%]:5` is not an IP address"));
        check("ipv4:/1.2.3.4:5", Ok(("1.2.3.4:5", 1)));
        check("dns://8.8.8.8/a:1", Err("use a DnsResolver"));
        check("dns:/localhost:1", Ok(("localhost:1", 0)));
        check("passthrough:/host:1", Ok(("host:1", 1)));
        // The zone is not sent.
        check("[fe80::1%lo]:80", Ok(("[fe80::1]:80", 0)));
        check("ipv6:[fe80::1%lo]:80", Ok(("[fe80::1]:80", 1)));
        check("ipv6:[fe80::1%1]:80,[fe80::1%lo]", Ok(("[fe80::1]:80", 2)));
        check("passthrough:[fe80::1%lo]:80", Ok(("[fe80::1]:80", 1)));
        check("unix:/a,unix:/b", Err("several UNIX sockets"));
        check("unix:/a,b", Ok(("localhost", 1)));
        check("https://a:1", Ok(("a:1", 0)));
        check("https://a/", Ok(("a:443", 0)));
        check("https://a/path", Err("character"));
        check("unix:", Err("path"));
    }
}
