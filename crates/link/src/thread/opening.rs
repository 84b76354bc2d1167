//! Accepts connections, and opens their server sides.

use std::cmp::Reverse;
use std::io;
use std::time::{Duration, Instant};

use nix::libc::EINPROGRESS;
use nix::sys::epoll::{EpollEvent, EpollFlags};
use socket2::{Domain, Socket, Type};

use super::{ConnectionKey, LISTENER_TOKEN, LinkThread, SERVER, SIDE_EVENTS, Timer, find, token};
use crate::connection::Connection;
use crate::direction::Direction;

/// Maximum connections accepted in a row.
const ACCEPTS_MAX: usize = 64;
/// Retry interval if accepting fails (no descriptors), or if a UNIX socket's backlog is full.
const RETRY: Duration = Duration::from_millis(5);

impl LinkThread {
    pub(super) fn watch_listener(&mut self) -> io::Result<()> {
        if let Some(listener) = self.listening_socket.listener() {
            self.epoll
                .add(listener, EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, LISTENER_TOKEN))?;
        }
        self.accept_pending = true;
        Ok(())
    }

    /// Accepts waiting connections, up to a limit.
    pub(super) fn accept(&mut self) {
        for _ in 0..ACCEPTS_MAX {
            let Some(listener) = self.listening_socket.listener() else {
                self.accept_pending = false;
                return;
            };
            match listener.accept().and_then(|(socket, _)| self.add_connection(socket)) {
                Ok(()) => {}
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => {}
                    kind => {
                        self.accept_pending = false;
                        if kind != io::ErrorKind::WouldBlock {
                            self.last_error = Some(format!("failed to accept a connection: {error}"));
                            self.timers.push(Reverse((Instant::now() + RETRY, Timer::RetryAccept)));
                        }
                        return;
                    }
                },
            }
        }
    }

    fn add_connection(&mut self, socket: Socket) -> io::Result<()> {
        let now = Instant::now();
        let are_unix = [self.listening_socket.is_unix(), self.to_resolved[0].is_unix()];
        prepare(&socket, are_unix[0])?;
        let handshake = if self.handshake { self.wire.path.delay } else { Duration::ZERO };
        let id = self.accepted;
        let entry = self.connections.vacant_entry();
        let key = ConnectionKey { index: entry.key(), id };
        self.epoll.add(&socket, EpollEvent::new(events(are_unix[0]), token(key, 0)))?;
        entry.insert(Connection::accepted(id, socket, are_unix, now, handshake, self.loss.after_bytes));
        self.accepted += 1;
        self.wire.observer.counts.accepted += 1;
        self.wire.observer.counts.open += 1;

        let random = self.loss.every.map(|mean| self.random.exponential(mean));
        for time in [self.loss.after, random].into_iter().flatten() {
            self.timers.push(Reverse((now + time, Timer::Cut(key))));
        }
        self.enqueue(key, Direction::Up);
        if handshake.is_zero() {
            self.connect(key);
        } else {
            self.timers.push(Reverse((now + handshake, Timer::Connect(key))));
        }
        Ok(())
    }

    /// Connects to the server, at the first address that accepts.
    pub(super) fn connect(&mut self, key: ConnectionKey) {
        if self.wire.stalled {
            self.stalled_connects.push(key);
            return;
        }
        let Some(connection) = find(&mut self.connections, key) else { return };
        if !connection.awaits_server() {
            return;
        }
        let address = &self.to_resolved[connection.attempt];
        let connecting = Socket::new(address.domain(), Type::STREAM.nonblocking(), None).and_then(|socket| {
            prepare(&socket, address.is_unix())?;
            let outcome = socket.connect(address);
            match outcome {
                Ok(()) => Ok((socket, true)),
                Err(error) if error.raw_os_error() == Some(EINPROGRESS) => Ok((socket, false)),
                Err(error) => Err(error),
            }
        });
        let watched = connecting.and_then(|(socket, is_connected)| {
            let event = EpollEvent::new(events(address.is_unix()), token(key, SERVER));
            self.epoll.add(&socket, event)?;
            Ok((socket, is_connected))
        });
        match watched {
            Ok((socket, is_connected)) => {
                connection.set_server(socket);
                if is_connected {
                    self.finish_connect(key);
                }
            }
            // The backlog of the UNIX socket is full.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.timers.push(Reverse((Instant::now() + RETRY, Timer::Connect(key))));
            }
            Err(error) => self.fail_connect(key, &error),
        }
    }

    /// Handles an event of a connecting socket.
    pub(super) fn finish_connect(&mut self, key: ConnectionKey) {
        let Some(connection) = find(&mut self.connections, key) else { return };
        let Some(socket) = &connection.side(SERVER).socket else { return };
        match socket.take_error() {
            Ok(None) => {}
            // The server accepted, and reset since.
            Ok(Some(error)) if error.kind() == io::ErrorKind::ConnectionReset => {
                connection.side(SERVER).failed = true;
            }
            Ok(Some(error)) | Err(error) => return self.fail_connect(key, &error),
        }
        connection.mark_connected(Instant::now());
        self.enqueue(key, Direction::Up);
        self.enqueue(key, Direction::Down);
    }

    fn fail_connect(&mut self, key: ConnectionKey, error: &io::Error) {
        let Some(connection) = find(&mut self.connections, key) else { return };
        if connection.attempt + 1 < self.to_resolved.len() {
            connection.attempt += 1;
            connection.side(SERVER).socket = None;
            self.connect(key);
            return;
        }
        connection.mark_refused(&self.wire, Instant::now());
        self.wire.observer.counts.failed += 1;
        self.last_error = Some(format!("failed to connect to {}: {error}", self.to));
        self.enqueue(key, Direction::Down);
    }
}

/// Returns the events to watch. TCP signals space only after a full write. A UNIX socket signals it whenever its peer
/// reads, so it is only watched when needed.
fn events(is_unix: bool) -> EpollFlags {
    if is_unix { SIDE_EVENTS } else { SIDE_EVENTS | EpollFlags::EPOLLOUT }
}

/// Disables Nagle's algorithm, so that bytes wait only for the link's delay.
fn prepare(socket: &Socket, is_unix: bool) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    if !is_unix {
        // Fails for a client that is already gone, which the first read detects.
        let _ = socket.set_tcp_nodelay(true);
    }
    debug_assert_eq!(is_unix, socket.domain().is_ok_and(|domain| domain == Domain::UNIX));
    Ok(())
}
