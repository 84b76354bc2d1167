//! Addresses of a link's ends.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

use socket2::SockAddr;

/// One end of a link: `HOST:PORT`, `unix:PATH` or `unix-abstract:NAME`, as in `thalweg serve`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// A host name or address, and a port.
    Tcp(String),
    /// The path of a UNIX domain socket.
    Unix(PathBuf),
    /// The name of a UNIX domain socket in Linux's abstract namespace, without the leading NUL.
    UnixAbstract(String),
}

/// `sockaddr_un` has 108 bytes for the path, including the terminating NUL.
const UNIX_PATH_MAX: usize = 107;

/// A text that is not a valid address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid address `{address}`: {reason}; use HOST:PORT, unix:PATH or unix-abstract:NAME")]
pub struct InvalidAddress {
    address: String,
    reason: &'static str,
}

impl FromStr for Address {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        let invalid = |reason| InvalidAddress { address: text.to_owned(), reason };
        let fits = |name: &str| (1..=UNIX_PATH_MAX).contains(&name.len());
        if let Some(name) = text.strip_prefix("unix-abstract:") {
            let name = fits(name).then(|| name.to_owned());
            return name
                .map(Self::UnixAbstract)
                .ok_or_else(|| invalid("the name of an abstract socket must have 1 to 107 bytes"));
        }
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            let path = fits(path).then(|| PathBuf::from(path));
            return path
                .map(Self::Unix)
                .ok_or_else(|| invalid("the path of a UNIX socket must have 1 to 107 bytes"));
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(|| invalid("the port is missing"))?;
        if host.is_empty() {
            return Err(invalid("the host is missing"));
        }
        if host.contains(':') && !(host.starts_with('[') && host.ends_with(']')) {
            return Err(invalid("an IPv6 address must be in brackets"));
        }
        port.parse::<u16>().map_err(|_| invalid("the port is not a number from 0 to 65535"))?;
        Ok(Self::Tcp(text.to_owned()))
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address.to_string())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => f.write_str(address),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::UnixAbstract(name) => write!(f, "unix-abstract:{name}"),
        }
    }
}

impl Address {
    /// Resolves to socket addresses, several for some host names. Blocks on the resolver.
    pub(crate) fn resolve(&self) -> io::Result<Vec<SockAddr>> {
        let resolved: Vec<SockAddr> = match self {
            Self::Tcp(address) => address.to_socket_addrs()?.map(SockAddr::from).collect(),
            Self::Unix(path) => vec![SockAddr::unix(path)?],
            Self::UnixAbstract(name) => vec![SockAddr::unix(format!("\0{name}"))?],
        };
        if resolved.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
        }
        Ok(resolved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_and_formatted() {
        let check = |text: &str, expected: Result<Address, &str>| {
            let parsed = text.parse::<Address>();
            match (&parsed, expected) {
                (Ok(address), Ok(expected)) => assert_eq!(*address, expected, "{text}"),
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{text}: {error}"),
                (parsed, expected) => panic!("{text}: {parsed:?}, not {expected:?}"),
            }
            let formatted = parsed.map(|address| address.to_string());
            assert!(
                formatted.is_err() || formatted.as_deref() == Ok(&text.replace("///", "/")),
                "{text}: {formatted:?}"
            );
        };
        check("127.0.0.1:50051", Ok(Address::Tcp("127.0.0.1:50051".into())));
        check("[::1]:0", Ok(Address::Tcp("[::1]:0".into())));
        check("unix:/tmp/a", Ok(Address::Unix("/tmp/a".into())));
        check("unix:///tmp/a", Ok(Address::Unix("/tmp/a".into())));
        check("unix-abstract:a", Ok(Address::UnixAbstract("a".into())));
        check("localhost", Err("port is missing"));
        check(":80", Err("host is missing"));
        check("::1:80", Err("brackets"));
        check("localhost:65536", Err("not a number"));
        check("unix:", Err("1 to 107 bytes"));
        check("unix-abstract:", Err("1 to 107 bytes"));
        check(&format!("unix:/{}", "x".repeat(107)), Err("1 to 107 bytes"));
    }
}
