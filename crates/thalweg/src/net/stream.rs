//! TCP and UNIX domain sockets behind one type.

use std::io::{self, IoSlice};
use std::os::unix::net as unix;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::{Endpoint, ListenAddress};

/// A connected socket.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    pub(crate) async fn connect(endpoint: &Endpoint) -> io::Result<Self> {
        match endpoint {
            Endpoint::Tcp(address) => {
                let stream = TcpStream::connect(address).await?;
                // Thalweg batches by itself and flushes when there is nothing more to add: Nagle would only delay.
                stream.set_nodelay(true)?;
                Ok(Self::Tcp(stream))
            }
            Endpoint::Unix(path) => Ok(Self::Unix(UnixStream::connect(path).await?)),
            Endpoint::UnixAbstract(name) => Ok(Self::Unix(UnixStream::connect(abstract_path(name)).await?)),
        }
    }

    pub(crate) fn peer_name(&self) -> String {
        match self {
            Self::Tcp(stream) => {
                stream.peer_addr().map_or_else(|_| "a TCP peer".to_owned(), |at| at.to_string())
            }
            Self::Unix(_) => "a UNIX socket's peer".to_owned(),
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

/// A listening socket. A UNIX socket's file is removed with it.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix { listener: UnixListener, path: Option<PathBuf> },
}

impl Listener {
    pub(crate) async fn bind(address: &ListenAddress) -> io::Result<Self> {
        match address {
            ListenAddress::Tcp(address) => Ok(Self::Tcp(TcpListener::bind(address).await?)),
            ListenAddress::Unix(path) => {
                let listener = match UnixListener::bind(path) {
                    // A socket that nobody listens on is left over from a server that was killed.
                    Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_dead_socket(path) => {
                        std::fs::remove_file(path)?;
                        UnixListener::bind(path)?
                    }
                    bound => bound?,
                };
                Ok(Self::Unix { listener, path: Some(path.clone()) })
            }
            ListenAddress::UnixAbstract(name) => {
                Ok(Self::Unix { listener: UnixListener::bind(abstract_path(name))?, path: None })
            }
        }
    }

    /// The address with the port that the system chose.
    pub(crate) fn local_address(&self, asked: &ListenAddress) -> io::Result<ListenAddress> {
        match self {
            Self::Tcp(listener) => Ok(ListenAddress::Tcp(listener.local_addr()?.to_string())),
            Self::Unix { .. } => Ok(asked.clone()),
        }
    }

    pub(crate) async fn accept(&self) -> io::Result<Socket> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // It fails for a client that is gone already, which the first read finds out.
                let _ = stream.set_nodelay(true);
                Ok(Socket::Tcp(stream))
            }
            Self::Unix { listener, .. } => Ok(Socket::Unix(listener.accept().await?.0)),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix { path: Some(path), .. } = self {
            // Already gone is as good.
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

/// The name of an abstract socket as tokio takes it; only Linux has such sockets, elsewhere it is an error.
fn abstract_path(name: &str) -> String {
    format!("\0{name}")
}
