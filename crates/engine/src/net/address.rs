//! Addresses in text form.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// Address that a server listens on: `HOST:PORT`, `unix:PATH` or `unix-abstract:NAME`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ListenAddress {
    /// Host name or IP address, and port. With port 0 the system chooses one.
    Tcp(String),
    /// Path of a UNIX domain socket.
    Unix(PathBuf),
    /// Name of a UNIX domain socket in Linux's abstract namespace, without the leading NUL.
    UnixAbstract(String),
}

impl FromStr for ListenAddress {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        let invalid = |reason| InvalidAddress { address: text.to_owned(), reason, instead: FORMS.to_owned() };
        if let Some(name) = text.strip_prefix("unix-abstract:") {
            if name.is_empty() || name.len() > UNIX_PATH_MAX {
                return Err(invalid("the name of an abstract socket must have 1 to 107 bytes"));
            }
            return Ok(Self::UnixAbstract(name.to_owned()));
        }
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() || path.len() > UNIX_PATH_MAX {
                return Err(invalid("the path of a UNIX socket must have 1 to 107 bytes"));
            }
            return Ok(Self::Unix(path.into()));
        }
        if let Some((_, rest)) = text.split_once("://") {
            // A URL for clients: `http://127.0.0.1:50051/`.
            let bare = rest.trim_start_matches('/').split('/').next().unwrap_or_default();
            let instead =
                bare.parse::<Self>().map_or_else(|_| FORMS.to_owned(), |address| address.to_string());
            let reason = "a listen address must not have a scheme";
            return Err(InvalidAddress { instead, ..invalid(reason) });
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(|| invalid("the port is missing"))?;
        if host.is_empty() {
            return Err(invalid("the host is missing (0.0.0.0 listens on every IPv4 address)"));
        }
        if host.contains(':') && !(host.starts_with('[') && host.ends_with(']')) {
            return Err(invalid("an IPv6 address must be in brackets"));
        }
        port.parse::<u16>().map_err(|_| invalid("the port is not a number from 0 to 65535"))?;
        Ok(Self::Tcp(text.to_owned()))
    }
}

impl From<SocketAddr> for ListenAddress {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address.to_string())
    }
}

impl From<(IpAddr, u16)> for ListenAddress {
    fn from(address: (IpAddr, u16)) -> Self {
        SocketAddr::from(address).into()
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => f.write_str(address),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::UnixAbstract(name) => write!(f, "unix-abstract:{name}"),
        }
    }
}

/// `sockaddr_un` has 108 bytes for the path, including the terminating NUL.
const UNIX_PATH_MAX: usize = 107;

/// The valid forms of addresses.
const FORMS: &str = "HOST:PORT, unix:PATH or unix-abstract:NAME";

/// An invalid listen address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid address `{address}`: {reason}; use {instead}")]
pub struct InvalidAddress {
    address: String,
    reason: &'static str,
    /// The address probably meant, or else the valid forms.
    instead: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listen_addresses() {
        let check = |text: &str, expected: Result<ListenAddress, &str>| {
            let parsed = text.parse::<ListenAddress>();
            match (&parsed, expected) {
                (Ok(address), Ok(expected)) => assert_eq!(*address, expected, "{text}"),
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{text}: {error}"),
                (parsed, expected) => panic!("{text}: {parsed:?}, not {expected:?}"),
            }
        };
        check("127.0.0.1:50051", Ok(ListenAddress::Tcp("127.0.0.1:50051".into())));
        check("[::1]:0", Ok(ListenAddress::Tcp("[::1]:0".into())));
        check("localhost:1", Ok(ListenAddress::Tcp("localhost:1".into())));
        check("unix:/tmp/a", Ok(ListenAddress::Unix("/tmp/a".into())));
        check("unix:///tmp/a", Ok(ListenAddress::Unix("/tmp/a".into())));
        check("unix-abstract:a", Ok(ListenAddress::UnixAbstract("a".into())));
        check("localhost", Err("port is missing"));
        check(":80", Err("host is missing"));
        check("::1:80", Err("brackets"));
        check("localhost:http", Err("not a number"));
        check("localhost:65536", Err("not a number"));
        let bare = "invalid address `http://127.0.0.1:50051`: a listen address must not have a scheme; use \
                    127.0.0.1:50051";
        check("http://127.0.0.1:50051", Err(bare));
        check("https://[::1]:443/path", Err("use [::1]:443"));
        check("dns:///localhost:80", Err("use localhost:80"));
        check("http://localhost", Err("use HOST:PORT, unix:PATH or"));
        check("unix:", Err("1 to 107 bytes"));
        check(&format!("unix:/{}", "x".repeat(107)), Err("1 to 107 bytes"));
    }
    #[test]
    fn socket_addresses_round_trip() {
        let check = |text: &str| {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(Ok(ListenAddress::from(address)), text.parse());
        };
        check("127.0.0.1:50051");
        check("[::1]:0");
        check("[fe80::1%2]:80");
        let (ip, port) = (IpAddr::from([127, 0, 0, 1]), 50051);
        assert_eq!(Ok(ListenAddress::from((ip, port))), "127.0.0.1:50051".parse());
    }
}
