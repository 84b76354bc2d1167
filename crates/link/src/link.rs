//! The handle of a link.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::address::Address;
use crate::control::Control;
use crate::door::Door;
use crate::options::{Cut, Jitter, LinkOptions, TIME_MAX};
use crate::rate::Rate;
use crate::stats::Stats;
use crate::thread::{LinkThread, Request};

/// A link that runs, until this is dropped. What it is told has been done when the call returns, which takes some
/// microseconds: it may be called from asynchronous code.
#[derive(Debug)]
pub struct Link {
    address: Address,
    requests: Sender<Request>,
    wake: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

/// Why there is no link.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The address to listen at cannot be had.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// As it was asked for.
        address: Address,
        /// What the system said.
        source: io::Error,
    },
    /// The name of the other end is not known. Whether somebody is there is asked for each connection.
    #[error("cannot resolve {address}: {source}")]
    Resolve {
        /// As it was asked for.
        address: Address,
        /// What the system said.
        source: io::Error,
    },
    /// It cannot listen again: the address was taken in the meantime.
    #[error("cannot listen again: {0}")]
    ListenAgain(io::Error),
    /// A time is longer than a year.
    #[error("{0} is longer than a year")]
    TooLong(&'static str),
    /// The system gives no thread, or none of the descriptors that it waits with.
    #[error("cannot start the link's thread: {0}")]
    Start(io::Error),
}

impl Link {
    /// Listens, and forwards what comes. Names are resolved now, and waited for.
    pub fn start(options: LinkOptions) -> Result<Self, LinkError> {
        if let Some(what) = options.too_long() {
            return Err(LinkError::TooLong(what));
        }
        let to = options
            .to
            .resolve()
            .map_err(|source| LinkError::Resolve { address: options.to.clone(), source })?;
        let door = Door::open(&options.listen)
            .map_err(|source| LinkError::Listen { address: options.listen.clone(), source })?;
        let address = door.address.clone();
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        let wake = Arc::new(EventFd::from_flags(flags).map_err(|error| LinkError::Start(error.into()))?);
        let (requests, asked) = channel();
        let runs = LinkThread::new(options, door, to, asked, Arc::clone(&wake)).map_err(LinkError::Start)?;
        let thread = std::thread::Builder::new().name("link".to_owned()).spawn(|| runs.run());
        let thread = Some(thread.map_err(LinkError::Start)?);
        Ok(Self { address, requests, wake, thread })
    }

    /// Where it listens, with the port that the system chose.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Nothing moves any more, until [`resume`](Self::resume). Connections stay open; those that come are accepted
    /// later.
    pub fn stall(&self) {
        self.tell(Control::Stall(None));
    }

    /// Nothing moves any more for so long.
    pub fn stall_for(&self, time: Duration) {
        self.tell(Control::Stall(Some(time.min(TIME_MAX))));
    }

    /// A stall ends. Nothing was lost.
    pub fn resume(&self) {
        self.tell(Control::Resume);
    }

    /// Cuts all connections that are there; how many.
    pub fn cut(&self, how: Cut) -> usize {
        self.tell(Control::Cut(how))
    }

    /// New connections are refused, as if nobody listened. Those that are there go on.
    pub fn refuse(&self) {
        self.tell(Control::Refuse);
    }

    /// New connections are accepted again.
    pub fn accept(&self) -> Result<(), LinkError> {
        self.control(Control::Accept).map(drop)
    }

    /// The one-way time of what comes from now on.
    pub fn set_delay(&self, one_way: Duration) {
        self.tell(Control::Delay(one_way.min(TIME_MAX)));
    }

    /// By how much the one-way times of what comes from now on differ.
    pub fn set_jitter(&self, jitter: Jitter) {
        self.tell(Control::Jitter(jitter.limited()));
    }

    /// What each direction carries from now on.
    pub fn set_rate(&self, rate: Option<Rate>) {
        self.tell(Control::Rate(rate));
    }

    /// What the link has done so far, or since [`reset_stats`](Self::reset_stats).
    pub fn stats(&self) -> Stats {
        *self.ask(Request::Stats)
    }

    /// What is counted and measured begins anew.
    pub fn reset_stats(&self) {
        self.tell(Control::Reset);
    }

    /// Does what a control says; how many connections are concerned.
    pub fn control(&self, control: Control) -> Result<usize, LinkError> {
        self.ask(|answer| Request::Control(control, answer)).map_err(LinkError::ListenAgain)
    }

    fn tell(&self, control: Control) -> usize {
        self.control(control).expect("only listening again can fail")
    }

    fn ask<T>(&self, request: impl FnOnce(SyncSender<T>) -> Request) -> T {
        const RUNS: &str = "the link's thread runs until it is dropped";
        let (sender, answer) = sync_channel(1);
        self.requests.send(request(sender)).expect(RUNS);
        self.wake();
        answer.recv().expect(RUNS)
    }

    fn wake(&self) {
        // It fails when 2^64 wake-ups have not been taken, and then there is one.
        let _ = self.wake.write(1);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // It fails when the thread has panicked, which it has said.
        let _ = self.requests.send(Request::Quit);
        self.wake();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
