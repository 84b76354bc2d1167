//! The link's thread. Waits for kernel events, timers and requests from the handle, and pumps one direction after the
//! other.

mod commands;
mod opening;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::EventFd;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use slab::Slab;
use socket2::{SockAddr, Socket};

use crate::address::Address;
use crate::command::Command;
use crate::connection::{CloseReason, Connection, Wire};
use crate::direction::Direction;
use crate::listening_socket::ListeningSocket;
use crate::observe::Observer;
use crate::options::{LinkOptions, Loss, StallPlan};
use crate::queue::BlockPool;
use crate::shape::{Propagation, Random, Transmitter};
use crate::stats::Stats;

/// A request of the handle.
pub(crate) enum Request {
    Command(Command, SyncSender<io::Result<usize>>),
    Stats(SyncSender<Box<Stats>>),
    Quit,
}

/// A timed event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// A direction has bytes or an end to forward.
    Due(ConnectionKey, Direction),
    /// The transmitter accepts more.
    TransmitterReady(Direction),
    /// The SYN of a new connection arrives.
    Connect(ConnectionKey),
    /// A connection is to be cut.
    Cut(ConnectionKey),
    /// A planned stall starts.
    StallStarts,
    /// This stall ends, unless it already has.
    StallEnds(u64),
    /// Retry after accepting failed.
    RetryAccept,
}

/// A connection's table index, and its id, because indices are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ConnectionKey {
    index: usize,
    id: u64,
}

const TIMER_TOKEN: u64 = 0;
const WAKE_TOKEN: u64 = 1;
const LISTENER_TOKEN: u64 = 2;
/// From here on, a connection's client side has an even token, its server side the next one.
const FIRST_SIDE_TOKEN: u64 = 4;

/// Events watched on each side's socket, besides writability. Edge-triggered: readers continue until nothing is left.
const SIDE_EVENTS: EpollFlags = EpollFlags::EPOLLIN.union(EpollFlags::EPOLLRDHUP).union(EpollFlags::EPOLLET);

/// Index of the server side.
const SERVER: usize = 1;

const EVENTS_MAX: usize = 256;

pub(crate) struct LinkThread {
    epoll: Epoll,
    timer: TimerFd,
    /// Time that `timer` is set to.
    armed: Option<Instant>,
    requests: Receiver<Request>,
    wake: Arc<EventFd>,
    has_requests: bool,
    listening_socket: ListeningSocket,
    /// Whether connections may be waiting to be accepted.
    accept_pending: bool,
    to: Address,
    to_resolved: Vec<SockAddr>,
    handshake: bool,
    spin: Duration,
    loss: Loss,
    stall: Option<StallPlan>,
    /// Id of the last stall.
    stall_id: u64,
    /// Connections to open after the stall.
    stalled_connects: Vec<ConnectionKey>,
    random: Random,
    connections: Slab<Connection>,
    /// Number of accepted connections: the next id.
    accepted: u64,
    timers: BinaryHeap<Reverse<(Instant, Timer)>>,
    /// Directions that are due, pumped first.
    due: VecDeque<(ConnectionKey, Direction)>,
    /// The ready queue, pumped in order.
    ready: VecDeque<(ConnectionKey, Direction)>,
    /// Connections that wait for a transmitter.
    waiting: [Vec<ConnectionKey>; 2],
    wire: Wire,
    last_error: Option<String>,
}

impl LinkThread {
    pub(crate) fn new(
        options: LinkOptions,
        listening_socket: ListeningSocket,
        to_resolved: Vec<SockAddr>,
        requests: Receiver<Request>,
        wake: Arc<EventFd>,
    ) -> io::Result<Self> {
        let now = Instant::now();
        let path = options.path;
        let wire = Wire {
            propagation: Propagation::new(path.delay, path.jitter, options.seed),
            transmitters: [Transmitter::new(path.rate), Transmitter::new(path.rate)],
            buffer_bytes: path.buffer_bytes(),
            blocks: BlockPool::default(),
            observer: Observer::new(now),
            stalled: false,
            resumed: now,
            path,
        };
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        // Uses hrtimers with nanosecond precision. A timeout of epoll_wait has 50 µs of slack, tokio's timers a
        // granularity of 1 ms.
        let timer =
            TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
        let edge = EpollFlags::EPOLLIN | EpollFlags::EPOLLET;
        epoll.add(&timer, EpollEvent::new(edge, TIMER_TOKEN))?;
        epoll.add(&*wake, EpollEvent::new(edge, WAKE_TOKEN))?;
        let mut thread = Self {
            epoll,
            timer,
            armed: None,
            requests,
            wake,
            has_requests: true,
            listening_socket,
            accept_pending: true,
            to: options.to,
            to_resolved,
            handshake: options.handshake,
            spin: options.spin,
            loss: options.loss,
            stall: options.stall,
            stall_id: 0,
            stalled_connects: Vec::new(),
            // A different sequence from the jitter's.
            random: Random::new(!options.seed),
            connections: Slab::new(),
            accepted: 0,
            timers: BinaryHeap::new(),
            due: VecDeque::new(),
            ready: VecDeque::new(),
            waiting: [Vec::new(), Vec::new()],
            wire,
            last_error: None,
        };
        thread.watch_listener()?;
        if let Some(plan) = &thread.stall {
            thread.timers.push(Reverse((now + plan.after, Timer::StallStarts)));
        }
        Ok(thread)
    }

    /// Runs until a quit request.
    pub(crate) fn run(mut self) {
        let mut events = [EpollEvent::empty(); EVENTS_MAX];
        // CPU time is counted from here, on this thread.
        self.wire.observer.reset(Instant::now());
        loop {
            if std::mem::take(&mut self.has_requests) && !self.handle_requests() {
                return;
            }
            self.forward_due();
            for _ in 0..self.ready.len() {
                let (key, direction) = self.ready.pop_front().expect("at least this many");
                if let Some(connection) = find(&mut self.connections, key) {
                    connection.schedules[direction as usize].is_ready = false;
                }
                self.pump(key, direction);
                // Each pump takes some microseconds, and there may be many.
                self.forward_due();
            }
            if self.accept_pending && !self.wire.stalled {
                self.accept();
            }
            let count = self.wait(&mut events);
            for event in &events[..count] {
                self.handle_event(*event);
            }
        }
    }

    /// Sleeps until there is something to do. Returns the number of new `events`.
    fn wait(&mut self, events: &mut [EpollEvent]) -> usize {
        let accepts_now = self.accept_pending && !self.wire.stalled;
        if !self.ready.is_empty() || self.has_requests || accepts_now {
            return self.poll(events, EpollTimeout::ZERO);
        }
        let Some(Reverse((due, _))) = self.timers.peek() else {
            return self.sleep(events);
        };
        let due = *due;
        let left = due.saturating_duration_since(Instant::now());
        if left <= self.spin {
            // Kernel events wait meanwhile.
            while Instant::now() < due {
                std::hint::spin_loop();
            }
            return self.poll(events, EpollTimeout::ZERO);
        }
        let alarm = due.checked_sub(self.spin).unwrap_or(due);
        if self.armed != Some(alarm) {
            let asleep = left.saturating_sub(self.spin);
            let expiration = Expiration::OneShot(TimeSpec::from_duration(asleep));
            self.timer.set(expiration, TimerSetTimeFlags::empty()).expect("the time is valid, and not zero");
            self.armed = Some(alarm);
        }
        self.sleep(events)
    }

    fn sleep(&mut self, events: &mut [EpollEvent]) -> usize {
        let asleep = Instant::now();
        let count = self.poll(events, EpollTimeout::NONE);
        self.wire.observer.slept += asleep.elapsed();
        count
    }

    fn poll(&self, events: &mut [EpollEvent], timeout: EpollTimeout) -> usize {
        match self.epoll.wait(events, timeout) {
            Ok(count) => count,
            Err(Errno::EINTR) => 0,
            Err(error) => unreachable!("epoll_wait fails only for invalid arguments: {error}"),
        }
    }

    /// Records a kernel event.
    fn handle_event(&mut self, event: EpollEvent) {
        match event.data() {
            TIMER_TOKEN => self.armed = None,
            WAKE_TOKEN => self.has_requests = true,
            LISTENER_TOKEN => self.accept_pending = true,
            side => self.handle_side_event(
                (side - FIRST_SIDE_TOKEN) as usize / 2,
                (side - FIRST_SIDE_TOKEN) as usize % 2,
                event.events(),
            ),
        }
    }

    fn handle_side_event(&mut self, index: usize, which: usize, flags: EpollFlags) {
        // An event of the other side may have removed it.
        let Some(connection) = self.connections.get_mut(index) else { return };
        let key = ConnectionKey { index, id: connection.id };
        let is_connecting = which == SERVER && connection.is_connecting();
        let side = connection.side(which);
        let closed_events = EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR;
        side.readable |= flags.intersects(EpollFlags::EPOLLIN | closed_events);
        side.hung_up |= flags.intersects(closed_events);
        side.failed |= flags.contains(EpollFlags::EPOLLERR);
        if is_connecting {
            self.finish_connect(key);
            return;
        }
        let has_space = !side.writable && flags.intersects(EpollFlags::EPOLLOUT | EpollFlags::EPOLLERR);
        if has_space {
            side.writable = true;
            side.space_since = Instant::now();
            if side.is_unix
                && let Some(socket) = &side.socket
            {
                watch(&self.epoll, socket, key, which, SIDE_EVENTS);
            }
        }
        if connection.is_abandoned() {
            self.close(key, CloseReason::Ended);
            return;
        }
        let [outgoing, incoming] = Direction::of_side(which);
        self.enqueue(key, outgoing);
        if has_space {
            self.enqueue(key, incoming);
        }
    }

    fn fire_timers(&mut self) {
        let now = Instant::now();
        while let Some(Reverse((due, timer))) = self.timers.peek().copied()
            && due <= now
        {
            self.timers.pop();
            match timer {
                Timer::Due(key, direction) => self.due.push_back((key, direction)),
                Timer::TransmitterReady(direction) => self.wake_waiting(direction),
                Timer::Connect(key) => self.connect(key),
                Timer::Cut(key) => self.cut_by_loss_option(key),
                Timer::StallStarts => self.start_planned_stall(due),
                Timer::StallEnds(id) if id == self.stall_id => self.resume(now),
                Timer::StallEnds(_) => {}
                Timer::RetryAccept => self.accept_pending = true,
            }
        }
    }

    /// Forwards what is due, before reading new bytes, to be on time.
    fn forward_due(&mut self) {
        self.fire_timers();
        while let Some((key, direction)) = self.due.pop_front() {
            self.pump(key, direction);
        }
    }

    /// Adds a direction to the ready queue.
    fn enqueue(&mut self, key: ConnectionKey, direction: Direction) {
        let Some(connection) = find(&mut self.connections, key) else { return };
        if !std::mem::replace(&mut connection.schedules[direction as usize].is_ready, true) {
            self.ready.push_back((key, direction));
        }
    }

    /// Wakes directions that wait for the transmitter, in order of arrival.
    fn wake_waiting(&mut self, direction: Direction) {
        for key in std::mem::take(&mut self.waiting[direction as usize]) {
            if let Some(connection) = find(&mut self.connections, key) {
                connection.schedules[direction as usize].awaits_transmitter = false;
                self.enqueue(key, direction);
            }
        }
    }

    /// Lets a direction read and write once, and schedules the next time.
    fn pump(&mut self, key: ConnectionKey, direction: Direction) {
        let Some(connection) = find(&mut self.connections, key) else { return };
        let next = connection.pump(direction, &mut self.wire);
        match next.close_reason {
            Some(CloseReason::AllowanceSpent) => return self.cut_by_loss_option(key),
            Some(reason) => return self.close(key, reason),
            None => {}
        }
        let sink = connection.side(direction.to());
        if next.wants_space
            && sink.is_unix
            && let Some(socket) = &sink.socket
        {
            watch(&self.epoll, socket, key, direction.to(), SIDE_EVENTS | EpollFlags::EPOLLOUT);
        }
        let schedule = &mut connection.schedules[direction as usize];
        // One timer per direction is enough, unless an earlier one is needed.
        if let Some(at) = next.at
            && schedule.alarm.is_none_or(|alarm| at < alarm || alarm <= Instant::now())
        {
            schedule.alarm = Some(at);
            self.timers.push(Reverse((at, Timer::Due(key, direction))));
        }
        if let Some(at) = next.transmitter_full_until
            && !std::mem::replace(&mut schedule.awaits_transmitter, true)
        {
            let waiting = &mut self.waiting[direction as usize];
            if waiting.is_empty() {
                self.timers.push(Reverse((at, Timer::TransmitterReady(direction))));
            }
            waiting.push(key);
        }
        if next.again {
            self.enqueue(key, direction);
        }
        if next.pump_other {
            self.enqueue(key, direction.other());
        }
    }
}

fn find(connections: &mut Slab<Connection>, key: ConnectionKey) -> Option<&mut Connection> {
    connections.get_mut(key.index).filter(|connection| connection.id == key.id)
}

fn token(key: ConnectionKey, index: usize) -> u64 {
    FIRST_SIDE_TOKEN + (key.index * 2 + index) as u64
}

/// Changes the watched events of a socket.
fn watch(epoll: &Epoll, socket: &Socket, key: ConnectionKey, index: usize, events: EpollFlags) {
    let mut event = EpollEvent::new(events, token(key, index));
    epoll.modify(socket, &mut event).expect("the socket is open, and watched");
}
