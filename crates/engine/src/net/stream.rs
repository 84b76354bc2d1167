//! TCP and UNIX domain sockets behind one type.

use std::io::{self, IoSlice};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use thalweg_balance::Address;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use super::round_trip;
use super::tcp_options::TcpOptions;
use crate::scheduler::is_spinning;

/// A connected socket that is not registered with a runtime yet.
#[derive(Debug)]
pub(crate) struct Accepted {
    socket: socket2::Socket,
    is_unix: bool,
    /// Name of the peer in messages.
    pub(crate) peer_name: String,
    /// IP address of the peer, if any.
    pub(crate) peer_address: Option<IpAddr>,
}

/// A connected socket, registered with the runtime that created it.
#[derive(Debug)]
pub(crate) struct Socket {
    /// `None` only while the socket is registered again.
    fd: Option<AsyncFd<socket2::Socket>>,
    write_watch: WriteWatch,
}

/// Whether the runtime watches for write readiness.
#[derive(Debug)]
enum WriteWatch {
    /// Always. TCP reports write readiness only after a write that found the buffer full.
    Watched,
    /// A UNIX socket that was never full. It reports write readiness whenever the peer reads, which wakes a sleeping
    /// thread once more per batch. With one or two calls in flight the thread is then awake when the response arrives
    /// (p50 49 µs instead of 61 µs). With 16 it is a loss (51 k calls/s instead of 66 k). The size of writes
    /// distinguishes the cases.
    Adaptive { is_watched: bool, mean_bytes: usize },
}

/// Send buffer of a UNIX socket, in bytes: twice the bytes framed ahead, so that the reader can read one half while
/// the other is written. A writer that found the buffer full sleeps until three quarters are read. The kernel grants
/// at most `net.core.wmem_max`, which is 208 KiB by default, and includes its own overhead in twice the number. TCP
/// sizes its buffers automatically.
const UNIX_SEND_BUFFER_LEN: usize = 1024 * 1024;

/// Mean write size, in bytes, above which write readiness is not watched: the writes carry many calls. An empty call
/// takes some 45 bytes.
const BATCH_BYTES_MIN: usize = 384;
/// Mean write size below which write readiness is watched again.
const SINGLE_BYTES_MAX: usize = 192;

impl WriteWatch {
    /// Records a write. Returns what to watch from now on, if that changes.
    fn note(&mut self, written: usize) -> Option<Interest> {
        let Self::Adaptive { is_watched, mean_bytes } = self else { return None };
        // Mean of about the last 16 writes. Sizes are capped so that a large message does not look like many: a
        // sixteenth of 64 KiB is 4 KiB.
        *mean_bytes = *mean_bytes - *mean_bytes / 16 + written.min(BATCH_BYTES_MIN * 2) / 16;
        let changes =
            if *is_watched { *mean_bytes > BATCH_BYTES_MIN } else { *mean_bytes < SINGLE_BYTES_MAX };
        if !changes {
            return None;
        }
        *is_watched = !*is_watched;
        Some(if *is_watched { BOTH } else { Interest::READABLE })
    }
}

const BOTH: Interest = Interest::READABLE.add(Interest::WRITABLE);

impl Accepted {
    /// Connects, in the current runtime.
    pub(crate) async fn connect(address: &Address, tcp: &TcpOptions) -> io::Result<Self> {
        match address {
            Address::Tcp(address) => Self::from_tcp(tcp.connect(*address).await?),
            Address::Unix(path) => Self::unix(UnixStream::connect(path).await?.into_std()?.into()),
            Address::Name(name) => {
                Err(io::Error::new(io::ErrorKind::InvalidInput, format!("unresolved name {name}")))
            }
            Address::UnixAbstract(name) => {
                Self::unix(UnixStream::connect(abstract_path(name)).await?.into_std()?.into())
            }
        }
    }

    /// Takes a stream from its runtime.
    pub(crate) fn from_tcp(stream: TcpStream) -> io::Result<Self> {
        let peer = stream.peer_addr().ok();
        Ok(Self::tcp(stream.into_std()?.into(), peer))
    }

    /// Creates it from a TCP socket. `peer` is the peer's address, if known.
    pub(super) fn tcp(socket: socket2::Socket, peer: Option<SocketAddr>) -> Self {
        let peer_name = peer.map_or_else(|| "a TCP peer".to_owned(), |at| at.to_string());
        // An IPv4 client of a dual-stack listener has the same address as elsewhere.
        let peer_address = peer.map(|at| at.ip().to_canonical());
        Self { socket, is_unix: false, peer_name, peer_address }
    }

    pub(super) fn unix(socket: socket2::Socket) -> io::Result<Self> {
        socket.set_send_buffer_size(UNIX_SEND_BUFFER_LEN)?;
        let peer_name = "a UNIX socket's peer".to_owned();
        Ok(Self { socket, is_unix: true, peer_name, peer_address: None })
    }

    #[cfg(test)]
    pub(super) fn socket(&self) -> &socket2::Socket {
        &self.socket
    }

    /// Returns the peer's and the local address of a TCP connection.
    pub(crate) fn addresses(&self) -> (Option<SocketAddr>, Option<SocketAddr>) {
        let of_ip = |address: io::Result<socket2::SockAddr>| address.ok()?.as_socket();
        (of_ip(self.socket.peer_addr()), of_ip(self.socket.local_addr()))
    }

    /// Returns the shortest round trip on the network so far, if known.
    pub(crate) fn round_trip(&self) -> Option<Duration> {
        round_trip::shortest(&self.socket)
    }

    /// Sets how long sent data may remain unacknowledged (TCP_USER_TIMEOUT). Does nothing on UNIX sockets, and on
    /// systems without the option.
    pub(crate) fn set_user_timeout(&self, timeout: Duration) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        if !self.is_unix {
            self.socket.set_tcp_user_timeout(Some(timeout.min(USER_TIMEOUT_MAX)))?;
        }
        #[cfg(not(target_os = "linux"))]
        let _ = timeout;
        Ok(())
    }

    /// Registers the socket with the current runtime.
    pub(crate) fn watch(self) -> io::Result<Socket> {
        let write_watch = if self.is_unix {
            WriteWatch::Adaptive { is_watched: true, mean_bytes: 0 }
        } else {
            WriteWatch::Watched
        };
        Ok(Socket { fd: Some(watch(self.socket, BOTH)?), write_watch })
    }
}

/// Maximum of TCP_USER_TIMEOUT, in Linux a positive `int` of milliseconds: 24 days.
#[cfg(target_os = "linux")]
const USER_TIMEOUT_MAX: Duration = Duration::from_millis(i32::MAX as u64);

impl Socket {
    fn fd(&self) -> io::Result<&AsyncFd<socket2::Socket>> {
        self.fd.as_ref().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    fn watch_for(&mut self, interest: Interest, cx: &Context<'_>) -> io::Result<()> {
        if let Some(fd) = self.fd.take() {
            self.fd = Some(watch(fd.into_inner(), interest)?);
            // The old registration's read waker is lost, so the task has to poll again.
            cx.waker().wake_by_ref();
        }
        Ok(())
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        if let WriteWatch::Adaptive { is_watched, .. } = self.write_watch {
            if let Some(written) = unless_it_would_block(send(self.fd()?.get_ref(), slices))? {
                return Poll::Ready(Ok(written));
            }
            self.write_watch = WriteWatch::Watched;
            if !is_watched {
                self.watch_for(BOTH, cx)?;
            }
        }
        let fd = self.fd()?;
        loop {
            let mut writable = ready!(fd.poll_write_ready(cx))?;
            if let Ok(outcome) = writable.try_io(|fd| send(fd.get_ref(), slices)) {
                return Poll::Ready(outcome);
            }
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let fd = self.fd()?;
        // The runtime learns of received data only when it polls.
        if is_spinning() && unless_it_would_block(receive(fd.get_ref(), buf))?.is_some() {
            return Poll::Ready(Ok(()));
        }
        loop {
            let mut readable = ready!(fd.poll_read_ready(cx))?;
            let capacity = buf.remaining();
            match readable.try_io(|fd| receive(fd.get_ref(), buf)) {
                Ok(Ok(read)) => {
                    if 0 < read && read < capacity {
                        // The socket is drained: detecting that by another read would cost a system call.
                        readable.clear_ready();
                    }
                    return Poll::Ready(Ok(()));
                }
                Ok(Err(error)) => return Poll::Ready(Err(error)),
                Err(_would_block) => {}
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(self.poll_send(cx, slices))?;
        if let Some(interest) = self.write_watch.note(written) {
            self.watch_for(interest, cx)?;
        }
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.fd()?.get_ref().shutdown(Shutdown::Write) {
            // The peer has already closed the connection.
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Poll::Ready(Ok(())),
            outcome => Poll::Ready(outcome),
        }
    }
}

pub(super) fn watch(socket: socket2::Socket, interest: Interest) -> io::Result<AsyncFd<socket2::Socket>> {
    // SAFETY: the socket owns its descriptor, which is open and the same until the socket is dropped; `AsyncFd` owns
    // the socket, and lends it out by `&` only, through which it can't be closed or replaced.
    Ok(unsafe { AsyncFd::register_with_interest(socket, interest) }?)
}

/// Reads into uninitialized memory: clearing it first would cost as much as the copy itself.
fn receive(socket: &socket2::Socket, buf: &mut ReadBuf<'_>) -> io::Result<usize> {
    // SAFETY: `recv` writes bytes there or leaves them unchanged.
    let read = socket.recv(unsafe { buf.unfilled_mut() })?;
    // SAFETY: the first `read` bytes have been written.
    unsafe { buf.assume_init(read) };
    buf.advance(read);
    Ok(read)
}

/// Makes a lost peer an error instead of SIGPIPE, which would end a process with the default signal handling.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
const NO_SIGNAL: i32 = libc::MSG_NOSIGNAL;
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
const NO_SIGNAL: i32 = 0;

fn send(socket: &socket2::Socket, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    match slices {
        [slice] => socket.send_with_flags(slice, NO_SIGNAL),
        slices => socket.send_vectored_with_flags(slices, NO_SIGNAL),
    }
}

fn unless_it_would_block(moved: io::Result<usize>) -> io::Result<Option<usize>> {
    match moved {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        moved => moved.map(Some),
    }
}

/// Returns the name of an abstract socket in tokio's form. On systems other than Linux it is an error.
pub(super) fn abstract_path(name: &str) -> String {
    format!("\0{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A blocked signal stays pending for the thread that caused it, even if the process ignores it, as Rust programs
    /// do and others do not.
    #[cfg(target_os = "linux")]
    #[test]
    fn write_to_closed_peer_raises_no_signal() {
        let (ours, theirs) =
            socket2::Socket::pair(socket2::Domain::UNIX, socket2::Type::STREAM, None).unwrap();
        drop(theirs);
        let pending = || {
            // SAFETY: a set is plain numbers, which `sigpending` writes.
            let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
            // SAFETY: both get a valid set.
            unsafe {
                libc::sigpending(&raw mut set) == 0 && libc::sigismember(&raw const set, libc::SIGPIPE) == 1
            }
        };
        // SAFETY: a set is plain numbers; all calls get a valid one, and the old mask is not asked for.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGPIPE);
            assert_eq!(libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()), 0);
        }
        let hello = IoSlice::new(b"hello");
        for slices in [&[hello][..], &[hello, hello][..]] {
            assert_eq!(send(&ours, slices).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
            assert!(!pending());
        }
        // Without the flag there is a signal.
        ours.send(b"hello").unwrap_err();
        assert!(pending());
    }

    #[test]
    fn space_is_watched_while_writes_are_small() {
        let mut watch = WriteWatch::Adaptive { is_watched: true, mean_bytes: 0 };
        let mut check = |writes: usize, bytes: usize, expected: Option<Interest>| {
            let changes: Vec<Interest> = (0..writes).filter_map(|_| watch.note(bytes)).collect();
            assert_eq!(changes, Vec::from_iter(expected), "{writes} writes of {bytes} bytes");
        };
        check(100, 45, None);
        check(1, 1 << 20, None);
        check(100, 45, None);
        check(100, 720, Some(Interest::READABLE));
        check(100, 720, None);
        // Between the two thresholds nothing changes.
        check(100, 300, None);
        check(100, 45, Some(BOTH));
        check(100, 300, None);

        let mut full = WriteWatch::Watched;
        assert!((0..100).all(|_| full.note(720).is_none()), "one that was full is watched for good");
    }
}
