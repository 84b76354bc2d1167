//! Addresses in the contract's notation: `HOST:PORT`, `unix:PATH`, `unix-abstract:NAME`.

use std::fmt;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Host and port; tokio resolves the host.
    Tcp(String),
    Unix(PathBuf),
    /// A name in Linux's abstract namespace.
    Abstract(String),
}

impl Address {
    /// Returns the address of a Unix socket; `None` for TCP.
    pub fn unix(&self) -> Option<io::Result<SocketAddr>> {
        match self {
            Self::Tcp(_) => None,
            Self::Unix(path) => Some(SocketAddr::from_pathname(path)),
            Self::Abstract(name) => Some(SocketAddr::from_abstract_name(name)),
        }
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(name) = text.strip_prefix("unix-abstract:").filter(|name| !name.is_empty()) {
            return Ok(Self::Abstract(name.to_owned()));
        }
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Self::Unix(path.into()));
        }
        match text.rsplit_once(':') {
            Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => {
                Ok(Self::Tcp(text.to_owned()))
            }
            _ => Err("expected HOST:PORT, unix:PATH or unix-abstract:NAME".to_owned()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => f.write_str(address),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Abstract(name) => write!(f, "unix-abstract:{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<Address>) {
        assert_eq!(text.parse().ok(), expected, "{text}");
        if let Some(address) = expected {
            assert_eq!(address.to_string(), text);
        }
    }

    #[test]
    fn all_address_kinds_parse() {
        check("127.0.0.1:0", Some(Address::Tcp("127.0.0.1:0".to_owned())));
        check("[::1]:50051", Some(Address::Tcp("[::1]:50051".to_owned())));
        check("unix:/tmp/a b", Some(Address::Unix("/tmp/a b".into())));
        check("unix-abstract:name", Some(Address::Abstract("name".to_owned())));
        for wrong in ["", "localhost", ":1", "host:65536", "unix:", "unix-abstract:"] {
            check(wrong, None);
        }
    }
}
