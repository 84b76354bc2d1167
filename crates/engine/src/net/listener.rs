//! Listening sockets, and accepting connections.

use std::io;
use std::os::unix::net as unix;
use std::path::PathBuf;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::{TcpListener, TcpSocket, UnixListener, lookup_host};

use super::address::ListenAddress;
use super::stream::{Accepted, abstract_path, watch};
use super::tcp_keepalive::TcpKeepalive;

/// A listening socket. Removes the file of a UNIX socket on drop.
#[derive(Debug)]
pub(crate) struct Listener {
    fd: AsyncFd<socket2::Socket>,
    kind: ListenerKind,
}

#[derive(Debug)]
enum ListenerKind {
    Tcp { keepalive: Option<TcpKeepalive> },
    Unix { path: Option<PathBuf> },
}

impl Listener {
    /// Binds `address`. With `reuse_port`, other sockets with that option may listen on the same TCP port.
    pub(crate) async fn bind(
        address: &ListenAddress,
        keepalive: Option<TcpKeepalive>,
        reuse_port: bool,
    ) -> io::Result<Self> {
        match address {
            ListenAddress::Tcp(address) => {
                let listener =
                    if reuse_port { bind_shared(address).await? } else { TcpListener::bind(address).await? };
                let socket = socket2::Socket::from(listener.into_std()?);
                // Thalweg batches writes and flushes when there is nothing to add, so Nagle's algorithm would only
                // delay them. Where possible, connections inherit the option from their listener, which saves a system
                // call for each.
                socket.set_tcp_nodelay(true)?;
                if let Some(keepalive) = keepalive {
                    keepalive.apply(&socket)?;
                }
                Self::new(socket, ListenerKind::Tcp { keepalive })
            }
            ListenAddress::Unix(path) => {
                let listener = match UnixListener::bind(path) {
                    // A socket without a listener is left over from a killed server.
                    Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_dead_socket(path) => {
                        std::fs::remove_file(path)?;
                        UnixListener::bind(path)?
                    }
                    bound => bound?,
                };
                Self::new(listener.into_std()?.into(), ListenerKind::Unix { path: Some(path.clone()) })
            }
            ListenAddress::UnixAbstract(name) => {
                let listener = UnixListener::bind(abstract_path(name))?;
                Self::new(listener.into_std()?.into(), ListenerKind::Unix { path: None })
            }
        }
    }

    fn new(socket: socket2::Socket, kind: ListenerKind) -> io::Result<Self> {
        Ok(Self { fd: watch(socket, Interest::READABLE)?, kind })
    }

    /// Returns the address, with the port that the system chose.
    pub(crate) fn local_address(&self, requested: &ListenAddress) -> io::Result<ListenAddress> {
        match self.kind {
            ListenerKind::Tcp { .. } => {
                let local = self.fd.get_ref().local_addr()?.as_socket();
                Ok(local.map_or_else(|| requested.clone(), ListenAddress::from))
            }
            ListenerKind::Unix { .. } => Ok(requested.clone()),
        }
    }

    /// Accepts a connection without registering it. So it is registered only once, with the runtime that serves it.
    pub(crate) async fn accept(&self) -> io::Result<Accepted> {
        let (socket, peer) = self.fd.async_io(Interest::READABLE, accept).await?;
        match self.kind {
            ListenerKind::Tcp { keepalive } => {
                if let Some(keepalive) = keepalive.filter(|_| !INHERITS_KEEPALIVE) {
                    // It fails if the client has already gone, which the first read detects.
                    let _ = keepalive.apply(&socket);
                }
                Ok(Accepted::tcp(socket, peer.as_socket()))
            }
            ListenerKind::Unix { .. } => Accepted::unix(socket),
        }
    }
}

/// Length of the queue of connections to accept, as that of `TcpListener::bind`.
const BACKLOG: u32 = 1024;

/// Listens on the first address of `address` that works, with SO_REUSEPORT.
async fn bind_shared(address: &str) -> io::Result<TcpListener> {
    let mut last_error = io::Error::new(io::ErrorKind::InvalidInput, "the name has no address");
    for address in lookup_host(address).await? {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_reuseaddr(true)?;
        socket.set_reuseport(true)?;
        match socket.bind(address).and_then(|()| socket.listen(BACKLOG)) {
            Ok(listener) => return Ok(listener),
            Err(error) => last_error = error,
        }
    }
    Err(last_error)
}

/// Whether connections inherit keepalive from their listener, which saves a system call for each.
const INHERITS_KEEPALIVE: bool = cfg!(any(target_os = "linux", target_os = "android", target_os = "freebsd"));

/// Accepts a non-blocking socket by one system call. Returns it with its peer's address.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
fn accept(listener: &socket2::Socket) -> io::Result<(socket2::Socket, socket2::SockAddr)> {
    use std::os::fd::{AsRawFd, FromRawFd};

    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: `storage` is for an address of any kind and of `len` bytes; `accept4` writes an address there, and its
    // length.
    let accepted = unsafe {
        socket2::SockAddr::try_init(|storage, len| {
            match libc::accept4(listener.as_raw_fd(), storage.cast(), len, flags) {
                -1 => Err(io::Error::last_os_error()),
                fd => Ok(fd),
            }
        })
    };
    let (fd, peer) = accepted?;
    // SAFETY: the descriptor is new, open, and owned by nothing else.
    Ok((unsafe { socket2::Socket::from_raw_fd(fd) }, peer))
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
fn accept(listener: &socket2::Socket) -> io::Result<(socket2::Socket, socket2::SockAddr)> {
    let (socket, peer) = listener.accept()?;
    socket.set_nonblocking(true)?;
    // It fails on other kinds of sockets, and if the client has already gone, which the first read detects.
    let _ = socket.set_tcp_nodelay(true);
    Ok((socket, peer))
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let ListenerKind::Unix { path: Some(path) } = &self.kind {
            // The file may already be gone.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn is_dead_socket(path: &PathBuf) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket());
    is_socket
        && unix::UnixStream::connect(path)
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn accepted_sockets_have_driver_options() {
        let listener = Listener::bind(
            &ListenAddress::Tcp("127.0.0.1:0".to_owned()),
            Some(TcpKeepalive::default()),
            false,
        )
        .await
        .unwrap();
        let ListenAddress::Tcp(address) = listener.local_address(&ListenAddress::Tcp(String::new())).unwrap()
        else {
            panic!("a TCP listener has another address");
        };
        let client = std::net::TcpStream::connect(address).unwrap();
        let accepted = listener.accept().await.unwrap();
        let socket = accepted.socket();
        assert!(socket.tcp_nodelay().unwrap(), "from its listener");
        assert!(socket.nonblocking().unwrap());
        assert!(socket.keepalive().unwrap(), "from its listener");
        assert_eq!(socket.tcp_keepalive_time().unwrap().as_secs(), 60);
        assert_eq!(socket.tcp_keepalive_interval().unwrap().as_secs(), 15);
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), 4);
        accepted.set_user_timeout(std::time::Duration::MAX).unwrap();
        let days = socket.tcp_user_timeout().unwrap().map(|timeout| timeout.as_secs() / 86_400);
        assert_eq!(days, Some(24), "the longest that the system has");
        assert_eq!(accepted.peer_name, client.local_addr().unwrap().to_string());
        assert_eq!(accepted.peer_address, Some(client.local_addr().unwrap().ip()));
    }

    #[tokio::test]
    async fn port_is_shared_only_if_all_sockets_allow_it() {
        let bind = |address: ListenAddress, reuse_port| async move {
            let listener = Listener::bind(&address, None, reuse_port).await?;
            let local = listener.local_address(&address)?;
            io::Result::Ok((listener, local))
        };
        let any = ListenAddress::Tcp("127.0.0.1:0".to_owned());
        let (_first, address) = bind(any.clone(), true).await.unwrap();
        let (_second, same) = bind(address.clone(), true).await.unwrap();
        assert_eq!(same, address);
        assert_eq!(bind(address, false).await.unwrap_err().kind(), io::ErrorKind::AddrInUse);
        let (_alone, address) = bind(any, false).await.unwrap();
        assert_eq!(bind(address, true).await.unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }
}
