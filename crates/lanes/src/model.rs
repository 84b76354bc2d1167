//! Simulates a channel in virtual time: callers, drivers and a server on modelled cores, with a network between them.
//!
//! ```text
//!   client machine: a run queue and its cores          server machine: the same
//!   callers ─► lane's output ─► driver ─── half a round trip ───► connection's task, which runs the handlers
//!      ▲                          │ ▲                                   │
//!      └──── woken, all at once ──┘ └──────── half a round trip ────────┘
//! ```
//!
//! This is an event simulation, but a call is not an event. Calls move in batches, because a driver takes all that has
//! arrived and all that waits to be written. The model contains what determines how many lanes pay:
//!
//! - A lane's driver and its connection on the server each run on one core at a time.
//! - A poll costs system calls, however much it moves.
//! - A sleeping core takes time to wake.
//! - Drivers and callers of a machine compete for its cores, first come, first served.
//! - The server limits streams per connection.
//! - Optionally, there are a lane's lock (`lock`), the server's window and the client's link (`flow`).
//!
//! It does not model caches, stream windows and packet loss.

mod changes;
mod cores;
mod costs;
mod events;
mod flow;
mod gains;
mod grid;
mod landscapes;
mod lock;
mod locks;
mod messages;
mod random;
mod run;
mod steady;
mod streams;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::{LaneSample, LaneState, Samples};
use crate::distribute_waiting;
use cores::{Cores, Task};
pub(super) use costs::Costs;
use costs::UNLIMITED;
use events::{Due, Event, NUMBER_BITS};
use flow::{Link, MessageBytes};
use lock::Lock;
use random::Random;

/// Machines, network and load of a channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct World {
    pub(super) client_cores: usize,
    pub(super) server_cores: usize,
    pub(super) round_trip: Duration,
    pub(super) costs: Costs,
    pub(super) load: Load,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Load {
    /// This many callers; each makes one call at a time, without pauses.
    Closed { in_flight: usize },
    /// Calls start at a fixed rate, whether or not earlier ones have ended.
    Open { calls_per_s: u64 },
}

impl Load {
    /// Returns the calls in flight, or a typical number for open loops.
    fn calls(self) -> usize {
        match self {
            Self::Closed { in_flight } => in_flight,
            Self::Open { .. } => 100,
        }
    }
}

pub(super) struct Model {
    world: World,
    now_ns: u64,
    events: BinaryHeap<Reverse<Due>>,
    events_made: u64,
    client: Cores,
    server: Cores,
    link: Link,
    /// Callers' tasks that are running.
    callers_running: usize,
    lanes: Vec<Lane>,
    /// Lanes that accept calls.
    ready: Vec<usize>,
    /// Index in `ready` of the last call's lane.
    last: usize,
    /// Streams that the server allows per connection, and the calls that wait for one.
    stream_limit: usize,
    waiting_for_stream: usize,
    /// Existing calls, on a lane or at a caller, and ended calls.
    calls: usize,
    ended: u64,
    /// Answered calls whose callers have not run yet, the sum of their waiting times, and the time up to which it is
    /// counted.
    untaken: usize,
    untaken_ns: u64,
    untaken_counted_ns: u64,
    arriving: bool,
    sampled_ns: u64,
    random: Random,
}

#[derive(Debug, Default)]
struct Lane {
    state: LaneState,
    is_closed: bool,
    in_flight: usize,
    client: LaneEnd,
    server: LaneEnd,
    /// Requests waiting to be written, the sum of the times since when, and their bytes.
    output: usize,
    output_since_ns: u128,
    output_bytes: MessageBytes,
    /// Bytes that the server's window still allows, and since when it has been blocking output.
    window_bytes: u64,
    blocked_since_ns: Option<u64>,
    lock: Lock,
    sample: Counters,
    /// Time up to which calls in flight are counted, and their number then.
    counted_ns: u64,
    noted_in_flight: usize,
}

/// One end of a connection.
#[derive(Debug, Default)]
struct LaneEnd {
    /// Arrived responses, or bytes of requests.
    arrived: usize,
    arrived_bytes: MessageBytes,
    /// Whether its task runs or waits for a core.
    scheduled: bool,
    /// Calls, and bytes of requests, read by the current poll.
    reading: usize,
    reading_bytes: u64,
}

#[derive(Debug, Default)]
struct Counters {
    busy_ns: u64,
    completed: u64,
    in_flight_ns: u64,
    written: u64,
    write_delay_ns: u128,
    blocked_ns: u64,
}

/// Maximum tasks for callers woken together, and minimum callers per task. A task runs all of its callers at once, like
/// a thread that picks them up together.
const CALLER_TASKS_MAX: usize = 16;
const CALLERS_A_TASK_MIN: usize = 4;
/// Minimum interval between groups of calls in an open loop.
const ARRIVALS_NS_MIN: u64 = 20_000;
/// Maximum number of calls in an overloaded open loop.
const CALLS_MAX: usize = 20_000;

impl Model {
    pub(super) fn new(world: World, lanes: usize) -> Self {
        Self::seeded(world, lanes, 1)
    }

    pub(super) fn seeded(world: World, lanes: usize, seed: u64) -> Self {
        let mut model = Self {
            world,
            now_ns: 0,
            events: BinaryHeap::new(),
            events_made: 0,
            client: Cores::new(world.client_cores),
            server: Cores::new(world.server_cores),
            link: Link::default(),
            callers_running: 0,
            lanes: Vec::new(),
            ready: Vec::new(),
            last: 0,
            stream_limit: usize::MAX,
            waiting_for_stream: 0,
            calls: 0,
            ended: 0,
            untaken: 0,
            untaken_ns: 0,
            untaken_counted_ns: 0,
            arriving: false,
            sampled_ns: 0,
            random: Random::new(seed),
        };
        for lane in 0..lanes {
            model.lanes.push(Lane { state: LaneState::Ready, ..Lane::new(&world.costs) });
            model.ready.push(lane);
        }
        model.set_load(world.load);
        model
    }

    /// Changes the load. Excess callers stop after their calls.
    pub(super) fn set_load(&mut self, load: Load) {
        self.world.load = load;
        match load {
            Load::Closed { in_flight } => {
                let missing = in_flight.saturating_sub(self.calls);
                self.calls += missing;
                self.wake_callers(missing);
            }
            Load::Open { .. } if !self.arriving => {
                self.arriving = true;
                self.after(0, Event::Arrivals);
            }
            Load::Open { .. } => {}
        }
        self.dispatch();
    }

    pub(super) fn set_round_trip(&mut self, round_trip: Duration) {
        self.world.round_trip = round_trip;
    }

    pub(super) fn set_stream_limit(&mut self, streams: usize) {
        self.stream_limit = streams;
    }

    pub(super) fn world(&self) -> &World {
        &self.world
    }

    /// Opens lanes, which are ready after the TCP and HTTP/2 handshakes.
    pub(super) fn open(&mut self, count: usize) {
        for _ in 0..count {
            let lane = self.lanes.len() as u16;
            self.lanes.push(Lane::new(&self.world.costs));
            let connect = 2 * nanos(self.world.round_trip) + self.world.costs.connect_ns;
            self.after(connect, Event::LaneReady { lane });
        }
    }

    /// Closes a lane: it accepts no more calls, and is gone after its last one.
    pub(super) fn close(&mut self, id: u64) {
        let lane = &mut self.lanes[id as usize];
        assert!(!lane.is_closed && lane.state != LaneState::Draining, "lane {id} was closed already");
        lane.state = LaneState::Draining;
        lane.is_closed = lane.in_flight == 0;
        self.ready.retain(|&ready| ready != id as usize);
        assert!(!self.ready.is_empty(), "the last lane was closed");
    }

    pub(super) fn ready_lanes(&self) -> usize {
        self.ready.len()
    }

    /// Runs until this many calls have ended, or for `most`.
    pub(super) fn run_calls(&mut self, calls: u64, most: Duration) {
        let end = self.now_ns + nanos(most);
        let ended = self.ended + calls;
        while let Some(&Reverse(due)) = self.events.peek()
            && due.at_ns() <= end
            && self.ended < ended
        {
            self.events.pop();
            self.now_ns = due.at_ns();
            self.handle(due.event);
            self.dispatch();
        }
        if self.ended < ended {
            self.now_ns = end;
        }
    }

    /// Returns what the lanes did since the last sample.
    pub(super) fn sample(&mut self) -> Samples {
        let interval = Duration::from_nanos(self.now_ns - self.sampled_ns);
        self.sampled_ns = self.now_ns;
        let round_trip = Some(self.world.round_trip);
        let now = self.now_ns;
        self.take_responses(0, 0);
        let mut untaken = std::mem::take(&mut self.untaken_ns);
        let lanes =
            self.lanes.iter_mut().enumerate().filter(|(_, lane)| !lane.is_closed).map(|(id, lane)| {
                lane.count(now);
                lane.count_blocked(now);
                let mut counters = std::mem::take(&mut lane.sample);
                counters.in_flight_ns += std::mem::take(&mut untaken);
                let write_delay =
                    counters.write_delay_ns.checked_div(u128::from(counters.written)).unwrap_or(0);
                LaneSample {
                    id: id as u64,
                    state: lane.state,
                    busy: Duration::from_nanos(counters.busy_ns),
                    completed: counters.completed,
                    in_flight: lane.in_flight,
                    in_flight_mean: counters.in_flight_ns as f64 / interval.as_nanos() as f64,
                    write_delay: Duration::from_nanos(write_delay as u64),
                    flow_blocked: Duration::from_nanos(counters.blocked_ns),
                    contended: lane.lock.take_contended(),
                    round_trip: round_trip.filter(|_| lane.state != LaneState::Connecting),
                    ..LaneSample::default()
                }
            });
        let mut samples = Samples { interval, lanes: lanes.collect() };
        distribute_waiting(self.waiting_for_stream, &mut samples.lanes);
        samples
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::ClientAwake => self.client.awake(),
            Event::ServerAwake => self.server.awake(),
            Event::ClientDone(task) => {
                self.client.release();
                match task {
                    Task::Lane(lane) => self.driver_done(lane),
                    Task::Callers(calls) => {
                        self.callers_running -= 1;
                        self.callers_done(usize::from(calls));
                    }
                }
            }
            Event::ServerDone(task) => {
                self.server.release();
                let Task::Lane(lane) = task else { unreachable!("callers run on the client") };
                self.respond(lane);
            }
            Event::Requests { lane, bytes } => {
                let lane_state = &mut self.lanes[usize::from(lane)];
                lane_state.server.arrived_bytes.push(u64::from(bytes));
                schedule(&mut lane_state.server, &mut self.server, lane);
            }
            Event::Window { lane, bytes } => {
                let lane_state = &mut self.lanes[usize::from(lane)];
                lane_state.window_bytes += u64::from(bytes);
                if lane_state.blocked_since_ns.is_some() {
                    schedule(&mut lane_state.client, &mut self.client, lane);
                }
            }
            Event::Responses { lane, calls } => {
                let lane_state = &mut self.lanes[usize::from(lane)];
                lane_state.client.arrived += usize::from(calls);
                schedule(&mut lane_state.client, &mut self.client, lane);
            }
            Event::LaneReady { lane } => {
                let lane_state = &mut self.lanes[usize::from(lane)];
                if lane_state.state == LaneState::Connecting {
                    lane_state.state = LaneState::Ready;
                    self.ready.push(usize::from(lane));
                    self.start_waiting_calls();
                }
            }
            Event::Arrivals => self.arrivals(),
        }
    }

    /// Assigns tasks to awake cores, and wakes others for the rest.
    fn dispatch(&mut self) {
        while let Some(task) = self.client.take() {
            let duration = self.start_on_client(task);
            self.after(duration, Event::ClientDone(task));
        }
        while let Some(task) = self.server.take() {
            let duration = self.start_on_server(task);
            self.after(duration, Event::ServerDone(task));
        }
        for _ in 0..self.client.wake() {
            let wake = self.wake_ns();
            self.after(wake, Event::ClientAwake);
        }
        for _ in 0..self.server.wake() {
            let wake = self.wake_ns();
            self.after(wake, Event::ServerAwake);
        }
    }

    /// Starts a task, and returns its duration.
    fn start_on_client(&mut self, task: Task) -> u64 {
        let costs = self.world.costs;
        let jitter = self.jitter();
        let lane = match task {
            Task::Callers(calls) => {
                self.take_responses(0, usize::from(calls));
                let duration = jitter(costs.task_ns + u64::from(calls) * costs.caller_ns);
                return self.lock_as_callers(usize::from(calls), duration);
            }
            Task::Lane(lane) => lane,
        };
        let lane_state = &mut self.lanes[usize::from(lane)];
        lane_state.count(self.now_ns);
        lane_state.count_blocked(self.now_ns);
        lane_state.blocked_since_ns = None;
        let (written, bytes) = lane_state.take_output(&costs);
        if lane_state.is_blocked() {
            lane_state.blocked_since_ns = Some(self.now_ns);
        }
        let since = lane_state.take_output_since(written);
        lane_state.client.reading = lane_state.client.arrived.min(costs.turn_calls_max);
        lane_state.client.arrived -= lane_state.client.reading;
        let reading = lane_state.client.reading;
        let writing = jitter(costs.task_ns + costs.writing(written, bytes));
        let responses = reading as u64 * costs.response_bytes;
        let duration = writing + jitter(costs.reading(reading, responses, costs.client_receive_ns));
        let duration = self.lock_as_driver(lane, written + reading, duration);
        let lane_state = &mut self.lanes[usize::from(lane)];
        lane_state.sample.busy_ns += duration;
        if bytes > 0 {
            let leaves = self.now_ns + writing;
            lane_state.sample.written += written as u64;
            lane_state.sample.write_delay_ns += u128::from(leaves) * written as u128 - since;
            let left = self.link.carry(leaves, bytes, costs.link_byte_ps);
            let arrive = left - self.now_ns + self.one_way();
            self.after(arrive, Event::Requests { lane, bytes: bytes as u32 });
        }
        duration
    }

    fn start_on_server(&mut self, task: Task) -> u64 {
        let costs = self.world.costs;
        let jitter = self.jitter();
        let Task::Lane(lane) = task else { unreachable!("callers run on the client") };
        let end = &mut self.lanes[usize::from(lane)].server;
        (end.reading, end.reading_bytes) =
            end.arrived_bytes.take(costs.call_bytes, costs.turn_bytes_max, costs.turn_calls_max);
        jitter(
            costs.task_ns + costs.reading(end.reading, end.reading_bytes, costs.server_ns) + costs.write_ns,
        )
    }

    /// The driver has read responses: wakes their callers.
    fn driver_done(&mut self, lane: u16) {
        let lane_state = &mut self.lanes[usize::from(lane)];
        let ended = std::mem::take(&mut lane_state.client.reading);
        lane_state.in_flight -= ended;
        lane_state.sample.completed += ended as u64;
        lane_state.count(self.now_ns);
        lane_state.is_closed = lane_state.state == LaneState::Draining && lane_state.in_flight == 0;
        lane_state.client.scheduled = false;
        if lane_state.client.arrived > 0 || (lane_state.output > 0 && !lane_state.is_blocked()) {
            schedule(&mut lane_state.client, &mut self.client, lane);
        }
        let go_on = match self.world.load {
            Load::Closed { in_flight } => ended.min(in_flight.saturating_sub(self.calls - ended)),
            Load::Open { .. } => 0,
        };
        self.ended += ended as u64;
        self.calls -= ended - go_on;
        self.take_responses(go_on, 0);
        self.wake_callers(go_on);
        self.start_waiting_calls();
    }

    fn wake_callers(&mut self, calls: usize) {
        let tasks = calls.div_ceil(CALLERS_A_TASK_MIN).min(CALLER_TASKS_MAX);
        for task in 0..tasks {
            self.client.ready(Task::Callers((calls * (task + 1) / tasks - calls * task / tasks) as u16));
        }
    }

    /// Callers have made their next calls. Each takes the lane with the fewest in flight, preferably that of the last
    /// call.
    fn callers_done(&mut self, calls: usize) {
        for _ in 0..calls {
            let last = if self.last < self.ready.len() { self.last } else { 0 };
            let in_flight = |&index: &usize| self.lanes[self.ready[index]].in_flight;
            let all = (last..self.ready.len()).chain(0..last);
            self.last = all.min_by_key(in_flight).expect("a channel has a lane");
            let less = self.ready[self.last];
            if self.lanes[less].in_flight < self.stream_limit {
                self.send(less);
            } else {
                self.waiting_for_stream += 1;
            }
        }
        self.start_waiting_calls();
    }

    /// Sends waiting calls on lanes with a free stream.
    fn start_waiting_calls(&mut self) {
        while self.waiting_for_stream > 0 {
            let lanes = self.ready.iter().copied();
            let Some(least) = lanes.min_by_key(|&lane| self.lanes[lane].in_flight) else { return };
            if self.lanes[least].in_flight >= self.stream_limit {
                return;
            }
            self.waiting_for_stream -= 1;
            self.send(least);
        }
    }

    fn send(&mut self, lane: usize) {
        let lane_state = &mut self.lanes[lane];
        lane_state.in_flight += 1;
        lane_state.output += 1;
        lane_state.output_since_ns += u128::from(self.now_ns);
        lane_state.output_bytes.push(self.world.costs.call_bytes);
        schedule(&mut lane_state.client, &mut self.client, lane as u16);
    }

    /// Counts calls that wait for their callers to run. Calls of an open loop have no waiting caller.
    fn take_responses(&mut self, responses: usize, claimed: usize) {
        self.untaken_ns += (self.now_ns - self.untaken_counted_ns) * self.untaken as u64;
        self.untaken_counted_ns = self.now_ns;
        self.untaken = (self.untaken + responses).saturating_sub(claimed);
    }

    fn respond(&mut self, lane: u16) {
        let end = &mut self.lanes[usize::from(lane)].server;
        let calls = std::mem::take(&mut end.reading);
        let bytes = std::mem::take(&mut end.reading_bytes);
        end.scheduled = false;
        if !end.arrived_bytes.is_empty() {
            schedule(end, &mut self.server, lane);
        }
        if self.world.costs.window_bytes != UNLIMITED {
            self.after(self.one_way(), Event::Window { lane, bytes: bytes as u32 });
        }
        if calls > 0 {
            self.after(self.one_way(), Event::Responses { lane, calls: calls as u16 });
        }
    }

    fn arrivals(&mut self) {
        let Load::Open { calls_per_s } = self.world.load else {
            self.arriving = false;
            return;
        };
        let gap = (1_000_000_000 / calls_per_s.max(1)).max(ARRIVALS_NS_MIN);
        let calls = (calls_per_s * gap / 1_000_000_000).max(1) as usize;
        let calls = calls.min(CALLS_MAX.saturating_sub(self.calls));
        self.calls += calls;
        self.wake_callers(calls);
        self.after(gap, Event::Arrivals);
    }

    /// Draws the time that a sleeping core takes to wake.
    fn wake_ns(&mut self) -> u64 {
        let range = self.world.costs.wake_ns;
        self.random.between(range.0, range.1)
    }

    /// Draws a core's speed for a task: up to a fifth faster or slower. Without this, lanes fall into step.
    fn jitter(&mut self) -> impl Fn(u64) -> u64 + use<> {
        let percent = self.random.between(80, 121);
        move |time_ns| time_ns * percent / 100
    }

    fn one_way(&self) -> u64 {
        nanos(self.world.round_trip) / 2
    }

    fn after(&mut self, time_ns: u64, event: Event) {
        self.events_made += 1;
        let number = self.events_made & ((1 << NUMBER_BITS) - 1);
        self.events.push(Reverse(Due { key: (self.now_ns + time_ns) << NUMBER_BITS | number, event }));
    }
}

impl Lane {
    fn new(costs: &Costs) -> Self {
        Self { window_bytes: costs.window_bytes, ..Self::default() }
    }

    /// Counts calls in flight as a real driver can do cheaply: at the start and end of polls, not for each call.
    fn count(&mut self, now_ns: u64) {
        self.sample.in_flight_ns += (now_ns - self.counted_ns) * self.noted_in_flight as u64;
        self.counted_ns = now_ns;
        self.noted_in_flight = self.in_flight;
    }
}

fn schedule(end: &mut LaneEnd, cores: &mut Cores, lane: u16) {
    if !end.scheduled {
        end.scheduled = true;
        cores.ready(Task::Lane(lane));
    }
}

fn nanos(time: Duration) -> u64 {
    time.as_nanos() as u64
}
