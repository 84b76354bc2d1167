//! Main loop of the bare client: it opens the connections in batches, then keeps calls in flight on each active one.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use thalweg::Code;
use thalweg_measure::cpu_time::CpuTime;
use thalweg_measure::interrupt::Interrupt;

use super::bounds::{EVENTS_MAX, MESSAGE_BYTES};
use super::connection::{Buffers, Connection, EndReason, Stage};
use super::grpc::{Grpc, PreparedCall};
use super::messages::Messages;
use super::wire::Wire;
use crate::peer::{Announcement, DriveError, Patience, prepared_call};
use crate::record::{
    BareRun, BareWire, CallType, Connections, Fairness, LoadResult, LoadSettings, Note, Recorder, RunContext,
};

/// Maximum connections being opened at a time; less than a listener's backlog.
const OPENING_MAX: usize = 256;
/// Maximum sleep of the loop before it reads the clock again.
const POLL_INTERVAL_MAX: Duration = Duration::from_millis(50);
/// Idle time of both sides around a moment at which memory is measured.
const MEMORY_PAUSE: Duration = Duration::from_millis(30);

/// Drives `settings.target` like [`crate::peer::drive`], with calls on the active connections only; the others stay
/// idle.
pub fn drive(
    settings: &LoadSettings,
    patience: Patience,
    interrupt: &Interrupt,
    announce: impl FnMut(Announcement),
) -> Result<LoadResult, DriveError> {
    let run = settings.bare.ok_or(DriveError::Settings("the bare client needs a wire format"))?;
    if run.active == 0 || run.active > settings.connections || run.active > settings.in_flight {
        return Err(DriveError::Settings(
            "active connections must be at least 1 and at most --connections and -c",
        ));
    }
    if settings.call != CallType::Unary {
        return Err(DriveError::Settings("the bare client makes unary calls only"));
    }
    let Some(duration_ns) = settings.duration_ns else {
        return Err(DriveError::Settings("the bare client needs a duration; use -z"));
    };
    let address = settings.target.to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
    let address = address.ok_or(DriveError::Settings("the bare client needs a target HOST:PORT"))?;
    let bounds = Bounds { run, address, duration_ns, patience };
    match run.wire {
        BareWire::Echo => {
            let bytes = MESSAGE_BYTES + usize::try_from(settings.size_bytes).unwrap_or(usize::MAX);
            Driver::new(settings, bounds, || Messages::new(bytes))?.run(interrupt, announce)
        }
        BareWire::Grpc => {
            let (path, message, response_bytes) = prepared_call(settings)?;
            let prepared = PreparedCall::new(&settings.target, &path, &message, response_bytes);
            let prepared = prepared
                .map(Rc::new)
                .ok_or(DriveError::Settings("the bare client sends messages of at most 16 KiB"))?;
            Driver::new(settings, bounds, || Grpc::new(prepared.clone()))?.run(interrupt, announce)
        }
    }
}

/// Limits taken from the settings.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    run: BareRun,
    address: SocketAddr,
    duration_ns: u64,
    patience: Patience,
}

struct Driver<'s, W, F> {
    settings: &'s LoadSettings,
    bounds: Bounds,
    wire: F,
    connections: Vec<Connection<W>>,
    epoll: Epoll,
    events: Vec<EpollEvent>,
    buffers: Buffers,
    began: Instant,
    /// Connections not open yet.
    opening: usize,
    /// The measured window, in ns since `began`. Until it is set, nothing is counted and no call follows another.
    window: Option<(u64, u64)>,
    recorder: Recorder,
    in_flight: u64,
    /// Reason why the first connection ended.
    ended: Option<String>,
}

impl<'s, W: Wire, F: Fn() -> W> Driver<'s, W, F> {
    fn new(settings: &'s LoadSettings, bounds: Bounds, wire: F) -> Result<Self, DriveError> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC);
        let epoll = epoll.map_err(|error| failed(settings, &error))?;
        Ok(Self {
            settings,
            bounds,
            wire,
            connections: Vec::with_capacity(settings.connections as usize),
            epoll,
            events: vec![EpollEvent::empty(); EVENTS_MAX],
            buffers: Buffers::new(),
            began: Instant::now(),
            opening: 0,
            window: None,
            recorder: Recorder::new(CallType::Unary, Instant::now()),
            in_flight: 0,
            ended: None,
        })
    }

    fn run(
        mut self,
        interrupt: &Interrupt,
        mut announce: impl FnMut(Announcement),
    ) -> Result<LoadResult, DriveError> {
        self.open(1, interrupt)?;
        thread::sleep(MEMORY_PAUSE);
        announce(Announcement::First);
        thread::sleep(MEMORY_PAUSE);
        self.open(self.settings.connections as usize, interrupt)?;
        thread::sleep(MEMORY_PAUSE);
        announce(Announcement::Connected);
        thread::sleep(MEMORY_PAUSE);

        let from_ns = self.now_ns() + self.settings.warmup_ns;
        let until_ns = from_ns + self.bounds.duration_ns;
        self.window = Some((from_ns, until_ns));
        self.recorder = Recorder::new(CallType::Unary, self.began + Duration::from_nanos(from_ns));
        self.begin_calls();
        self.poll_until(from_ns, interrupt)?;
        let (started, cpu_before) = (SystemTime::now(), cpu());
        announce(Announcement::Measuring);
        self.poll_until(until_ns, interrupt)?;
        let client_cpu = cpu() - cpu_before;
        announce(Announcement::Measured);
        let drained = self.drain(until_ns)?;
        Ok(self.finish(started, client_cpu, drained))
    }

    fn now_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// Opens connections until this many have completed a call.
    fn open(&mut self, connections: usize, interrupt: &Interrupt) -> Result<(), DriveError> {
        let deadline = Instant::now() + self.bounds.patience.connect;
        while self.connections.len() < connections || self.opening > 0 {
            while self.connections.len() < connections && self.opening < OPENING_MAX {
                self.connect().map_err(|error| failed(self.settings, &error))?;
            }
            self.poll(POLL_INTERVAL_MAX)?;
            if let Some(why) = &self.ended {
                return Err(failed(self.settings, why));
            }
            if interrupt.is_requested() {
                return Err(DriveError::Interrupted);
            }
            if Instant::now() > deadline {
                let open = self.connections.len() - self.opening;
                let patience = self.bounds.patience.connect;
                return Err(failed(
                    self.settings,
                    &format!(
                        "{open} of {} connections were open after {patience:?}",
                        self.settings.connections
                    ),
                ));
            }
        }
        Ok(())
    }

    fn connect(&mut self) -> io::Result<()> {
        let connection = Connection::begin(self.bounds.address, (self.wire)())?;
        let watched = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLET;
        self.epoll.add(&connection.socket, EpollEvent::new(watched, self.connections.len() as u64))?;
        self.connections.push(connection);
        self.opening += 1;
        Ok(())
    }

    /// Returns the indices of the active connections, spread evenly over all.
    fn active(&self) -> impl Iterator<Item = usize> + use<W, F> {
        let (all, active) = (self.connections.len(), self.bounds.run.active as usize);
        (0..active).map(move |index| index * all / active)
    }

    fn begin_calls(&mut self) {
        let (in_flight, active) = (self.settings.in_flight, self.bounds.run.active);
        for (index, place) in (0..).zip(self.active()) {
            let calls = in_flight / active + u32::from(index < in_flight % active);
            let now_ns = self.now_ns();
            let result = self.connections[place].begin_calls(calls, now_ns, &mut self.buffers);
            match result {
                Ok(()) => self.in_flight += u64::from(calls),
                Err(ended) => self.close(place, &ended),
            }
        }
    }

    fn poll_until(&mut self, until_ns: u64, interrupt: &Interrupt) -> Result<(), DriveError> {
        loop {
            let left = until_ns.saturating_sub(self.now_ns());
            if left == 0 {
                return Ok(());
            }
            if interrupt.is_requested() {
                return Err(DriveError::Interrupted);
            }
            self.poll(POLL_INTERVAL_MAX.min(Duration::from_nanos(left)))?;
        }
    }

    /// Waits for the calls in flight. Returns the time this took after the window's end, in ns.
    fn drain(&mut self, until_ns: u64) -> Result<u64, DriveError> {
        let patience_ns = self.bounds.patience.call.as_nanos() as u64;
        while self.in_flight > 0 && self.now_ns() < until_ns + patience_ns {
            self.poll(POLL_INTERVAL_MAX)?;
        }
        for _ in 0..self.in_flight {
            self.recorder.failed(Code::DeadlineExceeded);
        }
        Ok(self.now_ns() - until_ns)
    }

    /// Polls once and handles all ready connections.
    fn poll(&mut self, sleep: Duration) -> Result<(), DriveError> {
        // Rounded up: a timeout of zero would make this a busy loop.
        let sleep_ms = u16::try_from(sleep.as_micros().div_ceil(1000)).unwrap_or(u16::MAX);
        let count = match self.epoll.wait(&mut self.events, EpollTimeout::from(sleep_ms)) {
            Ok(count) => count,
            Err(Errno::EINTR) => 0,
            Err(error) => return Err(failed(self.settings, &error)),
        };
        for index in 0..count {
            let place = self.events[index].data() as usize;
            if let Err(ended) = self.handle_ready(place) {
                self.close(place, &ended);
            }
        }
        Ok(())
    }

    fn handle_ready(&mut self, place: usize) -> Result<(), EndReason> {
        let connection = &mut self.connections[place];
        let began = self.began;
        let now_ns = || began.elapsed().as_nanos() as u64;
        match connection.stage {
            Stage::Closed => return Ok(()),
            Stage::Connecting => return connection.open(now_ns(), &mut self.buffers),
            Stage::Opening | Stage::Open => {}
        }
        let (window, recorder, in_flight) = (self.window, &mut self.recorder, &mut self.in_flight);
        let mut failed_first = false;
        let was_opening = connection.stage == Stage::Opening;
        connection.ready(now_ns, &mut self.buffers, |counted, completed, now_ns| {
            let Some((from_ns, until_ns)) = window else {
                failed_first |= !completed.is_good;
                return false;
            };
            if (from_ns..=until_ns).contains(&now_ns) {
                if completed.is_good {
                    let at = |ns: u64| began + Duration::from_nanos(ns);
                    recorder.record(at(completed.began_ns), at(now_ns));
                    *counted += 1;
                } else {
                    recorder.failed(Code::Unknown);
                }
            }
            let can_continue = now_ns < until_ns;
            *in_flight -= u64::from(!can_continue);
            can_continue
        })?;
        self.opening -= usize::from(was_opening && connection.stage == Stage::Open);
        if failed_first {
            self.ended.get_or_insert_with(|| {
                "the first call of a connection returned no message; check that the server has the method"
                    .to_owned()
            });
        }
        Ok(())
    }

    fn close(&mut self, place: usize, why: &EndReason) {
        let connection = &mut self.connections[place];
        if connection.stage == Stage::Closed {
            return;
        }
        self.opening -= usize::from(connection.stage != Stage::Open);
        connection.stage = Stage::Closed;
        self.ended.get_or_insert_with(|| why.to_string());
        if self.window.is_some() {
            self.in_flight -= u64::from(connection.in_flight);
            for _ in 0..connection.in_flight {
                self.recorder.failed(Code::Unavailable);
            }
        }
    }

    fn finish(self, started: SystemTime, client_cpu: CpuTime, drain_ns: u64) -> LoadResult {
        let active: Vec<u64> = self.active().map(|place| self.connections[place].counted).collect();
        let open = self.connections.iter().filter(|it| it.stage == Stage::Open).count();
        let notes = self
            .ended
            .iter()
            .map(|why| Note { text: format!("a connection ended: {why}"), invalidates: false });
        let context = RunContext {
            settings: self.settings.clone(),
            started,
            duration: Duration::from_nanos(self.bounds.duration_ns),
            from_ns: 0,
            client_cpu,
            connections: Connections {
                asked: self.settings.connections,
                established: u32::try_from(open).ok(),
            },
            notes: notes.collect(),
        };
        let mut result = self.recorder.finish(context);
        result.bytes_sent = result.messages * self.settings.size_bytes;
        result.bytes_received = result.bytes_sent;
        result.drain_ns = drain_ns;
        result.fairness = Fairness::of(&active);
        result
    }
}

/// Returns the processor time of this process. Only a kernel without getrusage fails here; the time then counts as
/// zero.
fn cpu() -> CpuTime {
    CpuTime::of_this_process().unwrap_or_default()
}

fn failed(settings: &LoadSettings, why: &dyn std::fmt::Display) -> DriveError {
    DriveError::Bare { target: settings.target.clone(), why: why.to_string() }
}
