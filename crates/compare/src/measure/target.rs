//! Addresses of servers.

use std::fmt;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::Duration;

use thalweg_measure::target;

/// Placeholder for a free port, in a command or a target.
const PORT: &str = "{port}";
/// Target of a server that gets only a port.
const TARGET_DEFAULT: &str = "127.0.0.1:{port}";
/// Timeout of one connection attempt.
const CONNECT_PATIENCE: Duration = Duration::from_secs(1);

/// A target in the syntax of [`target::parse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target(String);

/// A server's address cannot be determined.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// Neither a port nor a target is given.
    #[error(
        "unknown address of `{0}`; write {{port}} for its port in the command, or name the address with --target, \
         --a-target or --b-target"
    )]
    Unknown(String),
    /// There is no free port.
    #[error("no free port: {0}")]
    NoPort(#[from] io::Error),
}

/// Reserves free ports, all different.
#[derive(Debug, Default)]
pub(super) struct FreePorts(Vec<TcpListener>);

impl FreePorts {
    /// Reserves a port chosen by the system, until `self` is dropped.
    fn take(&mut self) -> io::Result<u16> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        self.0.push(listener);
        Ok(port)
    }
}

impl Target {
    /// Returns the server's target, and the command with `{port}` replaced.
    ///
    /// # Errors
    ///
    /// Returns an error if the command has no `{port}` and no target is given.
    pub(super) fn of(
        command: &str,
        target: Option<&str>,
        ports: &mut FreePorts,
    ) -> Result<(Self, String), TargetError> {
        let target = match target {
            Some(target) => target,
            None if command.contains(PORT) => TARGET_DEFAULT,
            None => return Err(TargetError::Unknown(command.to_owned())),
        };
        if !command.contains(PORT) && !target.contains(PORT) {
            return Ok((Self(target.to_owned()), command.to_owned()));
        }
        let port = ports.take()?.to_string();
        Ok((Self(target.replace(PORT, &port)), command.replace(PORT, &port)))
    }

    /// Returns whether something accepts connections there now. Returns an error if the target is invalid, so that
    /// waiting is pointless.
    pub(super) fn accepts_connections(&self) -> io::Result<bool> {
        if let Some(path) = self.0.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return Ok(UnixStream::connect(path).is_ok());
        }
        if let Some(name) = self.0.strip_prefix("unix-abstract:") {
            let address = SocketAddr::from_abstract_name(name);
            return Ok(address.and_then(|address| UnixStream::connect_addr(&address)).is_ok());
        }
        let takes = |address| TcpStream::connect_timeout(address, CONNECT_PATIENCE).is_ok();
        match target::addresses(&self.0) {
            Ok(addresses) => Ok(addresses.iter().any(takes)),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Err(error),
            // The name may resolve later.
            Err(_) => Ok(false),
        }
    }

    /// Returns the target's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn port_placeholder_is_replaced_by_free_port() {
        let mut ports = FreePorts::default();
        let (one, command) = Target::of("serve --port {port}", None, &mut ports).unwrap();
        let port = one.as_str().strip_prefix("127.0.0.1:").unwrap();
        assert_eq!(command, format!("serve --port {port}"));
        let (other, _) = Target::of("serve {port}", Some("https://localhost:{port}"), &mut ports).unwrap();
        assert!(other.as_str().starts_with("https://localhost:") && !other.as_str().ends_with(port));
        let (fixed, command) = Target::of("serve", Some("unix:/a/b"), &mut ports).unwrap();
        assert_eq!((fixed.as_str(), command.as_str()), ("unix:/a/b", "serve"));
        let error = Target::of("serve", None, &mut ports).unwrap_err().to_string();
        assert!(error.contains("write {port} for its port"), "{error}");
    }

    #[test]
    fn listener_is_detected_for_every_kind_of_target() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        for target in ["127.0.0.1:", "dns:///127.0.0.1:", "http://127.0.0.1:", "ipv4:127.0.0.1:"] {
            assert!(Target(format!("{target}{port}")).accepts_connections().unwrap(), "{target}");
        }
        assert!(Target(format!("https://localhost:{port}/")).accepts_connections().unwrap());
        assert!(Target(format!("ipv4:127.0.0.2:1,127.0.0.1:{port}")).accepts_connections().unwrap());
        assert!(Target("ipv4:hello".to_owned()).accepts_connections().is_err());
        // Port 1, because another process may already use a port that was just released.
        assert!(!Target("127.0.0.1:1".to_owned()).accepts_connections().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        assert!(!Target(format!("unix:{}", path.display())).accepts_connections().unwrap());
        let _listener = UnixListener::bind(&path).unwrap();
        assert!(Target(format!("unix:{}", path.display())).accepts_connections().unwrap());
        assert!(Target(format!("unix://{}", path.display())).accepts_connections().unwrap());
    }
}
