//! Servers that need no proxy: `no_proxy`.

use core::net::IpAddr;

/// A list of servers that are reached without a proxy, in the syntax of Go's `httpproxy`, which grpc-go uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NoProxy(Vec<Rule>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    server: Server,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Server {
    All,
    Address(IpAddr),
    /// The addresses whose first bits are these.
    Network {
        first: IpAddr,
        bits: u32,
    },
    /// The subdomains of a domain in lower case, and that itself unless it began with a dot.
    Domain {
        name: String,
        includes_itself: bool,
    },
}

impl NoProxy {
    /// Parses a list. Any text is valid: what is no address is a name.
    pub(super) fn parse(list: &str) -> Self {
        let entries = list.split(|c: char| c == ',' || c.is_whitespace()).filter(|entry| !entry.is_empty());
        Self(entries.filter_map(Rule::parse).collect())
    }

    /// Returns whether a server needs no proxy: by the list, or because it is this machine. IPv6 addresses have no
    /// brackets.
    pub(super) fn applies_to(&self, host: &str, port: u16) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let address = host.parse().ok().map(|address: IpAddr| address.to_canonical());
        host == "localhost"
            || address.is_some_and(|address| address.is_loopback())
            || self
                .0
                .iter()
                .any(|rule| rule.port.is_none_or(|only| only == port) && rule.server.includes(&host, address))
    }
}

impl Rule {
    fn parse(entry: &str) -> Option<Self> {
        let of = |server| Some(Self { server, port: None });
        if entry == "*" {
            return of(Server::All);
        }
        if let Some((first, bits)) = entry.split_once('/')
            && let (Ok(first), Ok(bits)) = (first.parse::<IpAddr>(), bits.parse())
        {
            return of(Server::Network { first, bits });
        }
        if let Ok(address) = entry.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            return of(Server::Address(address.to_canonical()));
        }
        let (host, port) = match entry.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse().ok()?)),
            None => (entry, None),
        };
        if let Ok(address) = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            return Some(Self { server: Server::Address(address.to_canonical()), port });
        }
        let name = host.strip_prefix('*').unwrap_or(host).trim_end_matches('.').to_ascii_lowercase();
        let (name, includes_itself) = match name.strip_prefix('.') {
            Some(parent) => (parent.to_owned(), false),
            None => (name, true),
        };
        (!name.is_empty()).then_some(Self { server: Server::Domain { name, includes_itself }, port })
    }
}

impl Server {
    fn includes(&self, host: &str, address: Option<IpAddr>) -> bool {
        match self {
            Self::All => true,
            Self::Address(own) => address.as_ref() == Some(own),
            Self::Network { first, bits } => address.is_some_and(|address| is_in(address, *first, *bits)),
            Self::Domain { name, includes_itself } => match host.strip_suffix(name.as_str()) {
                Some("") => *includes_itself,
                Some(below) => below.ends_with('.'),
                None => false,
            },
        }
    }
}

/// Returns whether the first `bits` of two addresses of the same version are equal.
fn is_in(address: IpAddr, first: IpAddr, bits: u32) -> bool {
    let shifted =
        |difference: u128, len: u32| difference.checked_shr(len.saturating_sub(bits)).unwrap_or(0) == 0;
    match (address, first) {
        (IpAddr::V4(a), IpAddr::V4(b)) => shifted(u128::from(a.to_bits() ^ b.to_bits()), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => shifted(a.to_bits() ^ b.to_bits(), 128),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_without_a_proxy() {
        let check = |list: &str, expected: bool, servers: &[(&str, u16)]| {
            for &(host, port) in servers {
                assert_eq!(NoProxy::parse(list).applies_to(host, port), expected, "{list}: {host}:{port}");
            }
        };
        // This machine.
        check(
            "",
            true,
            &[("localhost", 1), ("LOCALHOST.", 1), ("127.0.0.1", 1), ("127.9.9.9", 1), ("::1", 1)],
        );
        check("", true, &[("::ffff:127.0.0.1", 1)]);
        check(
            "",
            false,
            &[("example.com", 1), ("10.0.0.1", 1), ("2001:db8::1", 1), ("localhost.example", 1)],
        );
        check("*", true, &[("example.com", 1), ("10.0.0.1", 1), ("2001:db8::1", 443)]);
        // Names.
        check("example.com", true, &[("example.com", 1), ("a.example.com", 1), ("B.A.Example.COM", 1)]);
        check("example.com", true, &[("example.com.", 1)]);
        check("example.com.", true, &[("a.example.com", 1)]);
        check("example.com", false, &[("notexample.com", 1), ("example.com.org", 1), ("com", 1)]);
        for list in [".example.com", "*.example.com"] {
            check(list, true, &[("a.example.com", 1), ("b.a.example.com", 1)]);
            check(list, false, &[("example.com", 1), ("aexample.com", 1)]);
        }
        check("EXAMPLE.com", true, &[("example.com", 1)]);
        // Ports.
        check("example.com:443", true, &[("example.com", 443), ("a.example.com", 443)]);
        check("example.com:443", false, &[("example.com", 80)]);
        check("10.0.0.1:80, [2001:db8::1]:80", true, &[("10.0.0.1", 80), ("2001:db8::1", 80)]);
        check("10.0.0.1:80, [2001:db8::1]:80", false, &[("10.0.0.1", 443), ("2001:db8::1", 443)]);
        check("example.com:http", false, &[("example.com", 80)]);
        // Addresses.
        check("10.0.0.1", true, &[("10.0.0.1", 1), ("::ffff:10.0.0.1", 1)]);
        check("10.0.0.1", false, &[("10.0.0.11", 1), ("110.0.0.1", 1), ("a.10.0.0.1.example", 1)]);
        check("2001:db8::1", true, &[("2001:db8::1", 1), ("2001:db8:0::1", 1)]);
        check("[2001:db8::1]", true, &[("2001:db8::1", 1)]);
        // Networks.
        check("10.0.0.0/8", true, &[("10.0.0.1", 1), ("10.255.255.255", 1)]);
        check("10.0.0.0/8", false, &[("11.0.0.1", 1), ("2001:db8::1", 1), ("example.com", 1)]);
        check("10.1.2.3/31", true, &[("10.1.2.2", 1), ("10.1.2.3", 1)]);
        check("10.1.2.3/31", false, &[("10.1.2.4", 1)]);
        check("0.0.0.0/0", true, &[("9.9.9.9", 1)]);
        check("2001:db8::/32", true, &[("2001:db8:ffff::1", 1)]);
        check("2001:db8::/32", false, &[("2001:db9::1", 1)]);
        check("::/0", true, &[("2001:db8::1", 1)]);
        // Lists.
        check(
            "a.test, b.test,c.test d.test,,",
            true,
            &[("a.test", 1), ("b.test", 1), ("c.test", 1), ("d.test", 1)],
        );
        check("a.test,b.test", false, &[("e.test", 1)]);
        check(".,*.,:80,[]", false, &[("a.test", 80)]);
    }
}
