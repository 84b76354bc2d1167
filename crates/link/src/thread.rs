//! The link's thread: waits for the kernel, for what is due, and for what the handle asks, and pumps one direction of a
//! connection after the other.

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
use crate::connection::{Connection, Over, Wire};
use crate::control::Control;
use crate::direction::Direction;
use crate::door::Door;
use crate::observe::Observer;
use crate::options::{LinkOptions, Loss, StallPlan};
use crate::queue::Blocks;
use crate::shape::{Propagation, Random, Transmitter};
use crate::stats::Stats;

/// What the handle asks.
pub(crate) enum Request {
    Control(Control, SyncSender<io::Result<usize>>),
    Stats(SyncSender<Box<Stats>>),
    Quit,
}

/// What happens at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// A direction has something to hand on.
    Due(ConnectionKey, Direction),
    /// The transmitter takes more.
    TransmitterHasSpace(Direction),
    /// The SYN arrives.
    Connect(ConnectionKey),
    /// A connection's time is up.
    Cut(ConnectionKey),
    /// By plan.
    StallBegins,
    /// That stall, if it still lasts.
    StallEnds(u64),
    /// Accepting failed some time ago.
    AcceptAgain,
}

/// A connection's index in the table, and which one it is: an index is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ConnectionKey {
    index: usize,
    id: u64,
}

const TIMER: u64 = 0;
const WAKE: u64 = 1;
const DOOR: u64 = 2;
/// A connection's client side has an even number from here on, its server side the next.
const SIDES: u64 = 4;

/// What a side's socket is watched for, besides space to write to. Told once: whoever is told tries until
/// there is no more.
const SIDE_EVENTS: EpollFlags = EpollFlags::EPOLLIN.union(EpollFlags::EPOLLRDHUP).union(EpollFlags::EPOLLET);

/// The side that the link has connected to.
const SERVER: usize = 1;

const EVENTS_MAX: usize = 256;

pub(crate) struct LinkThread {
    epoll: Epoll,
    timer: TimerFd,
    /// What `timer` is set to.
    armed: Option<Instant>,
    requests: Receiver<Request>,
    wake: Arc<EventFd>,
    has_requests: bool,
    door: Door,
    /// There may be somebody at the door.
    door_rang: bool,
    to: Address,
    to_resolved: Vec<SockAddr>,
    handshake: bool,
    spin: Duration,
    loss: Loss,
    stall: Option<StallPlan>,
    /// Which stall the last one was.
    stall_id: u64,
    /// Connections that were to be opened during it.
    held: Vec<ConnectionKey>,
    random: Random,
    connections: Slab<Connection>,
    /// How many there were: the next one's id.
    accepted: u64,
    timers: BinaryHeap<Reverse<(Instant, Timer)>>,
    /// What is due: pumped before all else.
    due: VecDeque<(ConnectionKey, Direction)>,
    /// The ready queue: pumped one after the other.
    ready: VecDeque<(ConnectionKey, Direction)>,
    /// Who waits for a transmitter.
    waiting: [Vec<ConnectionKey>; 2],
    wire: Wire,
    last_error: Option<String>,
}

impl LinkThread {
    pub(crate) fn new(
        options: LinkOptions,
        door: Door,
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
            blocks: Blocks::default(),
            observer: Observer::new(now),
            stalled: false,
            resumed: now,
            path,
        };
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        // hrtimers behind it: to the nanosecond, without the slack of 50 µs that a timeout of epoll_wait has, or the
        // granularity of 1 ms that tokio's timers have.
        let timer =
            TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
        let edge = EpollFlags::EPOLLIN | EpollFlags::EPOLLET;
        epoll.add(&timer, EpollEvent::new(edge, TIMER))?;
        epoll.add(&*wake, EpollEvent::new(edge, WAKE))?;
        let mut thread = Self {
            epoll,
            timer,
            armed: None,
            requests,
            wake,
            has_requests: true,
            door,
            door_rang: true,
            to: options.to,
            to_resolved,
            handshake: options.handshake,
            spin: options.spin,
            loss: options.loss,
            stall: options.stall,
            stall_id: 0,
            held: Vec::new(),
            // Another sequence than the jitter's.
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
        thread.watch_door()?;
        if let Some(plan) = &thread.stall {
            thread.timers.push(Reverse((now + plan.after, Timer::StallBegins)));
        }
        Ok(thread)
    }

    /// Until it is told to quit.
    pub(crate) fn run(mut self) {
        let mut events = [EpollEvent::empty(); EVENTS_MAX];
        // Processor time is counted from here, on this thread.
        self.wire.observer.reset(Instant::now());
        loop {
            if std::mem::take(&mut self.has_requests) && !self.answer() {
                return;
            }
            self.hand_on_what_is_due();
            for _ in 0..self.ready.len() {
                let (key, direction) = self.ready.pop_front().expect("there are so many");
                if let Some(connection) = find(&mut self.connections, key) {
                    connection.schedules[direction as usize].is_ready = false;
                }
                self.pump(key, direction);
                // Each takes some microseconds, and there may be many.
                self.hand_on_what_is_due();
            }
            if self.door_rang && !self.wire.stalled {
                self.accept();
            }
            let count = self.wait(&mut events);
            for event in &events[..count] {
                self.take(*event);
            }
        }
    }

    /// Sleeps until something is to be done. How many of `events` are new.
    fn wait(&mut self, events: &mut [EpollEvent]) -> usize {
        let somebody_rang = self.door_rang && !self.wire.stalled;
        if !self.ready.is_empty() || self.has_requests || somebody_rang {
            return self.poll(events, EpollTimeout::ZERO);
        }
        let Some(Reverse((due, _))) = self.timers.peek() else {
            return self.sleep(events);
        };
        let due = *due;
        let left = due.saturating_duration_since(Instant::now());
        if left <= self.spin {
            // What the kernel has to tell waits for so long, too.
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
            Err(error) => unreachable!("epoll_wait fails only for wrong arguments: {error}"),
        }
    }

    /// Takes note of what the kernel tells.
    fn take(&mut self, event: EpollEvent) {
        match event.data() {
            TIMER => self.armed = None,
            WAKE => self.has_requests = true,
            DOOR => self.door_rang = true,
            side => self.take_side((side - SIDES) as usize / 2, (side - SIDES) as usize % 2, event.events()),
        }
    }

    fn take_side(&mut self, index: usize, which: usize, told: EpollFlags) {
        // It may be gone since, through an event of its other side.
        let Some(connection) = self.connections.get_mut(index) else { return };
        let key = ConnectionKey { index, id: connection.id };
        let is_connecting = which == SERVER && connection.is_connecting();
        let side = connection.side(which);
        let is_over = EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR;
        side.readable |= told.intersects(EpollFlags::EPOLLIN | is_over);
        side.hung_up |= told.intersects(is_over);
        side.failed |= told.contains(EpollFlags::EPOLLERR);
        if is_connecting {
            self.connected(key);
            return;
        }
        let has_space = !side.writable && told.intersects(EpollFlags::EPOLLOUT | EpollFlags::EPOLLERR);
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
            self.close(key, Over::Ended);
            return;
        }
        let [from_here, to_here] = Direction::of_side(which);
        self.enqueue(key, from_here);
        if has_space {
            self.enqueue(key, to_here);
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
                Timer::TransmitterHasSpace(direction) => self.call_waiting(direction),
                Timer::Connect(key) => self.connect(key),
                Timer::Cut(key) => self.lose(key),
                Timer::StallBegins => self.stall_by_plan(due),
                Timer::StallEnds(id) if id == self.stall_id => self.resume(now),
                Timer::StallEnds(_) => {}
                Timer::AcceptAgain => self.door_rang = true,
            }
        }
    }

    /// What is due goes before what has arrived: that is to be exact.
    fn hand_on_what_is_due(&mut self) {
        self.fire_timers();
        while let Some((key, direction)) = self.due.pop_front() {
            self.pump(key, direction);
        }
    }

    /// A direction joins the ready queue.
    fn enqueue(&mut self, key: ConnectionKey, direction: Direction) {
        let Some(connection) = find(&mut self.connections, key) else { return };
        if !std::mem::replace(&mut connection.schedules[direction as usize].is_ready, true) {
            self.ready.push_back((key, direction));
        }
    }

    /// The transmitter takes more: those that wait become ready, in the order in which they came.
    fn call_waiting(&mut self, direction: Direction) {
        for key in std::mem::take(&mut self.waiting[direction as usize]) {
            if let Some(connection) = find(&mut self.connections, key) {
                connection.schedules[direction as usize].waits = false;
                self.enqueue(key, direction);
            }
        }
    }

    /// Lets a direction read and write once, and notes when it may go on.
    fn pump(&mut self, key: ConnectionKey, direction: Direction) {
        let Some(connection) = find(&mut self.connections, key) else { return };
        let next = connection.pump(direction, &mut self.wire);
        match next.over {
            Some(Over::AllowanceSpent) => return self.lose(key),
            Some(over) => return self.close(key, over),
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
        // One timer for each direction is enough, unless an earlier one is wanted.
        if let Some(at) = next.at
            && schedule.alarm.is_none_or(|alarm| at < alarm || alarm <= Instant::now())
        {
            schedule.alarm = Some(at);
            self.timers.push(Reverse((at, Timer::Due(key, direction))));
        }
        if let Some(at) = next.transmitter_full_until
            && !std::mem::replace(&mut schedule.waits, true)
        {
            let waiting = &mut self.waiting[direction as usize];
            if waiting.is_empty() {
                self.timers.push(Reverse((at, Timer::TransmitterHasSpace(direction))));
            }
            waiting.push(key);
        }
        if next.again {
            self.enqueue(key, direction);
        }
        if next.other {
            self.enqueue(key, direction.other());
        }
    }
}

fn find(connections: &mut Slab<Connection>, key: ConnectionKey) -> Option<&mut Connection> {
    connections.get_mut(key.index).filter(|connection| connection.id == key.id)
}

fn token(key: ConnectionKey, index: usize) -> u64 {
    SIDES + (key.index * 2 + index) as u64
}

/// Watches a socket that is watched already for something else.
fn watch(epoll: &Epoll, socket: &Socket, key: ConnectionKey, index: usize, events: EpollFlags) {
    let mut event = EpollEvent::new(events, token(key, index));
    epoll.modify(socket, &mut event).expect("the socket is open, and watched");
}
