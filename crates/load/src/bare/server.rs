//! The bare echo server.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use thalweg_measure::interrupt::Interrupt;

use super::bounds::{EVENTS_MAX, READ_BYTES};

/// Tag of the listener's events. Connections are tagged by their index.
const LISTENER: u64 = u64::MAX;
/// Interval at which an interrupt is checked for.
const POLL_INTERVAL_MS: u16 = 50;

/// A single-threaded server that echoes bytes.
#[derive(Debug)]
pub struct EchoServer {
    listener: TcpListener,
    epoll: Epoll,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Connection {
    socket: TcpStream,
    /// Bytes the socket did not accept. Nothing more is read until it does.
    unsent: Vec<u8>,
}

impl EchoServer {
    /// Listens on `address`.
    pub fn bind(address: &str) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        epoll.add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, LISTENER))?;
        let (connections, free) = (Vec::new(), Vec::new());
        Ok(Self { listener, epoll, connections, free, buffer: vec![0; READ_BYTES] })
    }

    /// Returns the address it listens on.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Echoes until interrupted.
    pub fn serve(mut self, interrupt: &Interrupt) -> io::Result<()> {
        let mut events = vec![EpollEvent::empty(); EVENTS_MAX];
        while !interrupt.is_requested() {
            let count = match self.epoll.wait(&mut events, EpollTimeout::from(POLL_INTERVAL_MS)) {
                Ok(count) => count,
                Err(Errno::EINTR) => 0,
                Err(error) => return Err(error.into()),
            };
            for event in &events[..count] {
                match event.data() {
                    LISTENER => self.accept()?,
                    place => self.echo(place as usize),
                }
            }
        }
        Ok(())
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            let socket = match self.listener.accept() {
                Ok((socket, _)) => socket,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // The peer has already closed it.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(error),
            };
            socket.set_nonblocking(true)?;
            socket.set_nodelay(true)?;
            let place = self.free.pop().unwrap_or(self.connections.len());
            let watched = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLET;
            self.epoll.add(&socket, EpollEvent::new(watched, place as u64))?;
            let connection = Some(Connection { socket, unsent: Vec::new() });
            if place == self.connections.len() {
                self.connections.push(connection);
            } else {
                self.connections[place] = connection;
            }
        }
    }

    /// Any error ends the connection.
    fn echo(&mut self, place: usize) {
        let Some(connection) = self.connections.get_mut(place).and_then(Option::as_mut) else { return };
        if !connection.echo(&mut self.buffer).unwrap_or(false) {
            self.connections[place] = None;
            self.free.push(place);
        }
    }
}

impl Connection {
    /// Echoes the bytes received so far. Returns false at the end.
    fn echo(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        if !self.unsent.is_empty() {
            let unsent = std::mem::take(&mut self.unsent);
            self.send(&unsent)?;
        }
        while self.unsent.is_empty() {
            let read = match self.socket.read(buffer) {
                Ok(0) => return Ok(false),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            };
            self.send(&buffer[..read])?;
            if read < buffer.len() {
                break;
            }
        }
        Ok(true)
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let sent = match self.socket.write(bytes) {
            Ok(sent) => sent,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        self.unsent.extend(&bytes[sent..]);
        Ok(())
    }
}
