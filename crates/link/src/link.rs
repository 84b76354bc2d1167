//! Handle of a link.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::address::Address;
use crate::command::Command;
use crate::listening_socket::ListeningSocket;
use crate::options::{Cut, Jitter, LinkOptions, TIME_MAX};
use crate::rate::Rate;
use crate::stats::Stats;
use crate::thread::{LinkThread, Request};

/// A running link, stopped on drop. Commands have taken effect when a method returns. That takes some microseconds, so
/// methods may be called from asynchronous code.
#[derive(Debug)]
pub struct Link {
    address: Address,
    requests: Sender<Request>,
    wake: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

/// Error of a link.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// Listening failed.
    #[error("failed to listen on {address}: {source}")]
    Listen {
        /// The requested address.
        address: Address,
        /// The system's error.
        source: io::Error,
    },
    /// The server's name cannot be resolved. Whether it is reachable is only known per connection.
    #[error("failed to resolve {address}: {source}")]
    Resolve {
        /// The requested address.
        address: Address,
        /// The system's error.
        source: io::Error,
    },
    /// Listening again failed, because the address is meanwhile in use.
    #[error("failed to listen again: {0}")]
    ListenAgain(io::Error),
    /// A time is longer than a year.
    #[error("{0} is longer than a year")]
    TooLong(&'static str),
    /// The system provides no thread, or no descriptor to wait with.
    #[error("failed to start the link's thread: {0}")]
    Start(io::Error),
}

impl Link {
    /// Listens and starts forwarding. Blocks until names are resolved.
    pub fn start(options: LinkOptions) -> Result<Self, LinkError> {
        if let Some(what) = options.too_long() {
            return Err(LinkError::TooLong(what));
        }
        let to = options
            .to
            .resolve()
            .map_err(|source| LinkError::Resolve { address: options.to.clone(), source })?;
        let listening_socket = ListeningSocket::open(&options.listen)
            .map_err(|source| LinkError::Listen { address: options.listen.clone(), source })?;
        let address = listening_socket.address.clone();
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        let wake = Arc::new(EventFd::from_flags(flags).map_err(|error| LinkError::Start(error.into()))?);
        let (requests, request_receiver) = channel();
        let link_thread = LinkThread::new(options, listening_socket, to, request_receiver, Arc::clone(&wake))
            .map_err(LinkError::Start)?;
        let thread = std::thread::Builder::new().name("link".to_owned()).spawn(|| link_thread.run());
        let thread = Some(thread.map_err(LinkError::Start)?);
        Ok(Self { address, requests, wake, thread })
    }

    /// Returns the listening address, with the port that the system chose.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Stops both directions until [`resume`](Self::resume). Connections stay open; new ones are accepted after the
    /// stall.
    pub fn stall(&self) {
        self.command(Command::Stall(None));
    }

    /// Stops both directions for this time.
    pub fn stall_for(&self, time: Duration) {
        self.command(Command::Stall(Some(time.min(TIME_MAX))));
    }

    /// Ends a stall, without loss.
    pub fn resume(&self) {
        self.command(Command::Resume);
    }

    /// Cuts all open connections, and returns their number.
    pub fn cut(&self, how: Cut) -> usize {
        self.command(Command::Cut(how))
    }

    /// Refuses new connections, as if nothing listened. Open connections are not affected.
    pub fn refuse(&self) {
        self.command(Command::Refuse);
    }

    /// Accepts new connections again.
    pub fn accept(&self) -> Result<(), LinkError> {
        self.execute(Command::Accept).map(drop)
    }

    /// Sets the one-way delay of bytes that arrive from now on.
    pub fn set_delay(&self, one_way: Duration) {
        self.command(Command::Delay(one_way.min(TIME_MAX)));
    }

    /// Sets the jitter of bytes that arrive from now on.
    pub fn set_jitter(&self, jitter: Jitter) {
        self.command(Command::Jitter(jitter.limited()));
    }

    /// Sets the rate of each direction from now on.
    pub fn set_rate(&self, rate: Option<Rate>) {
        self.command(Command::Rate(rate));
    }

    /// Returns the statistics since the start, or since [`reset_stats`](Self::reset_stats).
    pub fn stats(&self) -> Stats {
        *self.request(Request::Stats)
    }

    /// Restarts all statistics.
    pub fn reset_stats(&self) {
        self.command(Command::Reset);
    }

    /// Executes a command, and returns the number of connections affected.
    pub fn execute(&self, command: Command) -> Result<usize, LinkError> {
        self.request(|response| Request::Command(command, response)).map_err(LinkError::ListenAgain)
    }

    fn command(&self, command: Command) -> usize {
        self.execute(command).expect("only a repeated listen can fail")
    }

    fn request<T>(&self, request: impl FnOnce(SyncSender<T>) -> Request) -> T {
        const THREAD_RUNS: &str = "the link's thread runs until it is dropped";
        let (sender, response) = sync_channel(1);
        self.requests.send(request(sender)).expect(THREAD_RUNS);
        self.wake();
        response.recv().expect(THREAD_RUNS)
    }

    fn wake(&self) {
        // Fails only if 2^64 wake-ups are pending, which wake the thread anyway.
        let _ = self.wake.write(1);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // Fails if the thread has panicked; the panic has already been reported.
        let _ = self.requests.send(Request::Quit);
        self.wake();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
