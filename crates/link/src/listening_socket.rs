//! The listening socket of a link.

use std::fs;
use std::io;
use std::path::Path;

use socket2::{Domain, SockAddr, Socket, Type};

use crate::address::Address;

/// Maximum number of connections waiting to be accepted. The kernel limits it to net.core.somaxconn.
const BACKLOG: i32 = 4096;

/// Listens, or reserves the address while connections are refused.
#[derive(Debug)]
pub(crate) struct ListeningSocket {
    /// Address with the port that the system chose.
    pub(crate) address: Address,
    bound: SockAddr,
    listener: Option<Socket>,
    /// Reserves a TCP port while the link does not listen. Bound but never listening, so that connecting is refused.
    _placeholder: Option<Socket>,
}

impl ListeningSocket {
    pub(crate) fn open(address: &Address) -> io::Result<Self> {
        let mut outcome = Err(io::ErrorKind::NotFound.into());
        for resolved in address.resolve()? {
            outcome = Self::open_at(address, &resolved);
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }

    fn open_at(address: &Address, resolved: &SockAddr) -> io::Result<Self> {
        let listener = match bind(resolved) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_dead_socket(address) => {
                remove_file(address);
                bind(resolved)?
            }
            bound => bound?,
        };
        listener.listen(BACKLOG)?;
        let bound = listener.local_addr()?;
        let placeholder = if bound.is_unix() { None } else { Some(bind(&bound)) };
        Ok(Self {
            address: bound.as_socket().map_or_else(|| address.clone(), Address::from),
            bound,
            listener: Some(listener),
            // Fails if another process listens on this port, too; listening works nevertheless.
            _placeholder: placeholder.and_then(Result::ok),
        })
    }

    pub(crate) fn listener(&self) -> Option<&Socket> {
        self.listener.as_ref()
    }

    /// Refuses new connections, and resets those waiting to be accepted.
    pub(crate) fn close(&mut self) {
        self.listener = None;
    }

    /// Listens again. Returns false if it already listens.
    pub(crate) fn reopen(&mut self) -> io::Result<bool> {
        if self.listener.is_some() {
            return Ok(false);
        }
        remove_file(&self.address);
        let listener = bind(&self.bound)?;
        listener.listen(BACKLOG)?;
        self.listener = Some(listener);
        Ok(true)
    }

    pub(crate) fn is_unix(&self) -> bool {
        self.bound.is_unix()
    }
}

impl Drop for ListeningSocket {
    fn drop(&mut self) {
        remove_file(&self.address);
    }
}

fn bind(address: &SockAddr) -> io::Result<Socket> {
    let socket = Socket::new(address.domain(), Type::STREAM.nonblocking(), None)?;
    if address.domain() != Domain::UNIX {
        socket.set_reuse_address(true)?;
    }
    socket.bind(address)?;
    Ok(socket)
}

fn remove_file(address: &Address) {
    if let Address::Unix(path) = address {
        // The file may already be gone.
        let _ = fs::remove_file(path);
    }
}

/// Returns whether the path is a socket that a killed process left behind.
fn is_dead_socket(address: &Address) -> bool {
    use std::os::unix::fs::FileTypeExt;
    use std::os::unix::net::UnixStream;
    let refuses = |path: &Path| {
        UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    };
    match address {
        Address::Unix(path) => {
            fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket()) && refuses(path)
        }
        _ => false,
    }
}
