//! Servers, clients and links between them, over real sockets.
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use thalweg_link::{Address, Link, LinkOptions, Stats};

pub(crate) const MS: Duration = Duration::from_millis(1);
/// Timeout for immediate events: machines may pause for seconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A TCP or UNIX stream.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    pub(crate) fn connect(address: &Address) -> io::Result<Self> {
        let stream = match address {
            Address::Unix(path) => Self::Unix(UnixStream::connect(path)?),
            tcp => Self::Tcp(TcpStream::connect(tcp.to_string())?),
        };
        stream.prepared()
    }

    fn prepared(self) -> io::Result<Self> {
        match &self {
            Self::Tcp(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
            }
            Self::Unix(stream) => {
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
            }
        }
        Ok(self)
    }

    pub(crate) fn try_clone(&self) -> Self {
        match self {
            Self::Tcp(stream) => Self::Tcp(stream.try_clone().unwrap()),
            Self::Unix(stream) => Self::Unix(stream.try_clone().unwrap()),
        }
    }

    pub(crate) fn finish(&self) {
        match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Write).unwrap(),
            Self::Unix(stream) => stream.shutdown(Shutdown::Write).unwrap(),
        }
    }

    pub(crate) fn set_nonblocking(&self, nonblocking: bool) {
        match self {
            Self::Tcp(stream) => stream.set_nonblocking(nonblocking).unwrap(),
            Self::Unix(stream) => stream.set_nonblocking(nonblocking).unwrap(),
        }
    }

    /// Makes closing send RST.
    pub(crate) fn reset(self) {
        let Self::Tcp(stream) = self else { panic!("UNIX sockets have no RST") };
        socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
    }

    /// Reads the next `len` bytes.
    pub(crate) fn take(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// Reads to the end.
    pub(crate) fn read_rest(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.read_to_end(&mut bytes).unwrap();
        bytes
    }

    /// Returns whether there is nothing to read now, and no end.
    pub(crate) fn is_quiet(&mut self) -> bool {
        self.set_nonblocking(true);
        let read = self.read(&mut [0]);
        self.set_nonblocking(false);
        read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Reads to the end, and returns how it ended.
    pub(crate) fn read_until_end(&mut self) -> io::Result<()> {
        let mut buffer = [0; 4096];
        while self.read(&mut buffer)? > 0 {}
        Ok(())
    }

    pub(crate) fn is_reset(&mut self) -> bool {
        self.read_until_end().is_err_and(|error| error.kind() == io::ErrorKind::ConnectionReset)
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A server from which the test accepts connections.
#[derive(Debug)]
pub(crate) enum Server {
    Tcp(TcpListener),
    Unix(UnixListener, Address),
}

impl Server {
    pub(crate) fn tcp() -> Self {
        Self::Tcp(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    pub(crate) fn unix(directory: &tempfile::TempDir) -> Self {
        let path = directory.path().join("server");
        Self::Unix(UnixListener::bind(&path).unwrap(), Address::Unix(path))
    }

    pub(crate) fn address(&self) -> Address {
        match self {
            Self::Tcp(listener) => listener.local_addr().unwrap().into(),
            Self::Unix(_, address) => address.clone(),
        }
    }

    pub(crate) fn accept(&self) -> Stream {
        let stream = match self {
            Self::Tcp(listener) => Stream::Tcp(listener.accept().unwrap().0),
            Self::Unix(listener, _) => Stream::Unix(listener.accept().unwrap().0),
        };
        stream.prepared().unwrap()
    }
}

/// A link to a server of the test, and both ends of a connection through it.
pub(crate) struct LinkedPair {
    pub(crate) client: Stream,
    pub(crate) server: Stream,
    pub(crate) link: Link,
    pub(crate) listener: Server,
}

/// Creates a link over TCP, with default options changed by `options`.
pub(crate) fn connect_pair(options: impl FnOnce(LinkOptions) -> LinkOptions) -> LinkedPair {
    connect_pair_to(Server::tcp(), "127.0.0.1:0".parse().unwrap(), options)
}

pub(crate) fn connect_pair_to(
    listener: Server,
    listen: Address,
    options: impl FnOnce(LinkOptions) -> LinkOptions,
) -> LinkedPair {
    let link = Link::start(options(LinkOptions::new(listen, listener.address()))).unwrap();
    let client = Stream::connect(link.address()).unwrap();
    let server = listener.accept();
    LinkedPair { client, server, link, listener }
}

/// Waits until the link's statistics fulfil a condition.
pub(crate) fn wait_until(link: &Link, what: &str, is_reached: impl Fn(&Stats) -> bool) -> Stats {
    let started = Instant::now();
    loop {
        let stats = link.stats();
        if is_reached(&stats) {
            return stats;
        }
        assert!(started.elapsed() < PATIENCE, "it does not come to this: {what}: {stats:#?}");
        std::thread::sleep(MS);
    }
}

/// Returns pseudo-random bytes without nearby repetitions.
pub(crate) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}
