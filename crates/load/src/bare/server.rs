//! The bare echo: what comes goes back.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use thalweg_measure::interrupt::Interrupt;

use super::bounds::{EVENTS_MAX, READ_BYTES};

/// What the listener's events are told by; connections are told by their places.
const LISTENER: u64 = u64::MAX;
/// How often an interrupt is looked for.
const LOOK_EVERY_MS: u16 = 50;

/// A server of one thread that echoes bytes.
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
    /// What the socket did not take. Until it has, nothing more is read.
    unsent: Vec<u8>,
}

impl EchoServer {
    /// Listens there.
    pub fn bind(address: &str) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        epoll.add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, LISTENER))?;
        let (connections, free) = (Vec::new(), Vec::new());
        Ok(Self { listener, epoll, connections, free, buffer: vec![0; READ_BYTES] })
    }

    /// Where it listens.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Echoes until it is interrupted.
    pub fn serve(mut self, interrupt: &Interrupt) -> io::Result<()> {
        let mut events = vec![EpollEvent::empty(); EVENTS_MAX];
        while !interrupt.is_asked() {
            let count = match self.epoll.wait(&mut events, EpollTimeout::from(LOOK_EVERY_MS)) {
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
                // It is gone already.
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

    /// A connection that fails is at its end, whatever the reason.
    fn echo(&mut self, place: usize) {
        let Some(connection) = self.connections.get_mut(place).and_then(Option::as_mut) else { return };
        if !connection.echo(&mut self.buffer).unwrap_or(false) {
            self.connections[place] = None;
            self.free.push(place);
        }
    }
}

impl Connection {
    /// Echoes what is there. False at the end.
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
