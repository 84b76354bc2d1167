//! A connection of the bare client.

use std::io::{self, Read, Write};
use std::net::SocketAddr;

use nix::errno::Errno;
use socket2::{Domain, Socket, Type};

use super::bounds::READ_BYTES;
use super::wire::{CompletedCall, Wire, WireError};

#[derive(Debug)]
pub(super) struct Connection<W> {
    pub(super) socket: Socket,
    wire: W,
    pub(super) stage: Stage,
    /// The beginning of an incomplete message or frame.
    unparsed: Vec<u8>,
    /// Bytes the socket did not accept yet.
    unsent: Vec<u8>,
    /// Calls in flight.
    pub(super) in_flight: u32,
    /// Calls completed within the window.
    pub(super) counted: u64,
}

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The kernel is connecting.
    Connecting,
    /// Its first call is in flight.
    Opening,
    /// It has completed a call.
    Open,
    /// It has ended and is not reopened.
    Closed,
}

/// Reason why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum EndReason {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("the server closed a connection")]
    ByPeer,
    #[error("the server violated the protocol: {0}")]
    Wire(#[from] WireError),
}

/// Buffers shared by all connections, of which only one is handled at a time.
#[derive(Debug)]
pub(super) struct Buffers {
    read: Vec<u8>,
    out: Vec<u8>,
}

impl Buffers {
    pub(super) fn new() -> Self {
        // Room for leftover bytes and one read.
        Self { read: vec![0; 2 * READ_BYTES], out: Vec::with_capacity(READ_BYTES) }
    }
}

impl<W: Wire> Connection<W> {
    pub(super) fn begin(address: SocketAddr, wire: W) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM.nonblocking(), None)?;
        socket.set_tcp_nodelay(true)?;
        match socket.connect(&address.into()) {
            Err(error) if error.raw_os_error() != Some(Errno::EINPROGRESS as i32) => return Err(error),
            _ => {}
        }
        let (unparsed, unsent) = (Vec::new(), Vec::new());
        Ok(Self { socket, wire, stage: Stage::Connecting, unparsed, unsent, in_flight: 0, counted: 0 })
    }

    /// Sends the first call, once the socket is writable for the first time.
    pub(super) fn open(&mut self, now_ns: u64, buffers: &mut Buffers) -> Result<(), EndReason> {
        if let Some(error) = self.socket.take_error()? {
            return Err(error.into());
        }
        self.stage = Stage::Opening;
        buffers.out.clear();
        self.wire.begin(&mut buffers.out);
        self.call(1, now_ns, buffers)
    }

    /// Sends `calls` calls, after any bytes already in `buffers.out`.
    fn call(&mut self, calls: u32, now_ns: u64, buffers: &mut Buffers) -> Result<(), EndReason> {
        for _ in 0..calls {
            self.wire.call(now_ns, &mut buffers.out);
        }
        self.in_flight += calls;
        if !buffers.out.is_empty() {
            self.send(&buffers.out)?;
        }
        Ok(())
    }

    pub(super) fn begin_calls(
        &mut self,
        calls: u32,
        now_ns: u64,
        buffers: &mut Buffers,
    ) -> Result<(), EndReason> {
        buffers.out.clear();
        self.call(calls, now_ns, buffers)
    }

    /// Handles received bytes. Starts a new call for each response for which `on_response` returns true.
    pub(super) fn ready(
        &mut self,
        now_ns: impl Fn() -> u64,
        buffers: &mut Buffers,
        mut on_response: impl FnMut(&mut u64, CompletedCall, u64) -> bool,
    ) -> Result<(), EndReason> {
        if !self.unsent.is_empty() {
            let unsent = std::mem::take(&mut self.unsent);
            self.send(&unsent)?;
        }
        loop {
            let Some((read, is_all)) = self.read(&mut buffers.read)? else { return Ok(()) };
            let now_ns = now_ns();
            let (mut responses, mut calls) = (0, 0);
            let counted = &mut self.counted;
            let mut on_completed = |completed| {
                responses += 1;
                calls += u32::from(on_response(counted, completed, now_ns));
            };
            buffers.out.clear();
            let done = self.wire.received(&buffers.read[..read], &mut buffers.out, &mut on_completed)?;
            self.unparsed.clear();
            self.unparsed.extend(&buffers.read[done..read]);
            self.in_flight -= responses;
            if self.stage == Stage::Opening && responses > 0 {
                self.stage = Stage::Open;
            }
            self.call(calls, now_ns, buffers)?;
            if is_all {
                return Ok(());
            }
        }
    }

    /// Reads into `buffer`, after the leftover bytes. Returns the total length and whether the socket is drained, or
    /// `None` if nothing was received.
    fn read(&mut self, buffer: &mut [u8]) -> Result<Option<(usize, bool)>, EndReason> {
        let before = self.unparsed.len();
        buffer[..before].copy_from_slice(&self.unparsed);
        let room = &mut buffer[before..before + READ_BYTES];
        match (&self.socket).read(room) {
            Ok(0) => Err(EndReason::ByPeer),
            Ok(read) => Ok(Some((before + read, read < READ_BYTES))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.unsent.is_empty() {
            self.unsent.extend(bytes);
            return Ok(());
        }
        let sent = match (&self.socket).write(bytes) {
            Ok(sent) => sent,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        self.unsent.extend(&bytes[sent..]);
        Ok(())
    }
}
