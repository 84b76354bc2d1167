//! The state shared by the ends of a world.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::duplex::Duplex;
use super::plan::WorldPlan;
use crate::http2::Side;
use crate::random::Random;
use crate::trace::Trace;

pub(super) struct World {
    pub(super) plan: WorldPlan,
    pub(super) start: Instant,
    trace: Mutex<Trace>,
    pub(super) random: Mutex<Random>,
    /// Passes connections to the running server.
    pub(super) listener: Mutex<Option<mpsc::UnboundedSender<Duplex>>>,
    /// Times when links break.
    cuts: Mutex<Vec<Instant>>,
    pub(super) was_stopped: AtomicBool,
    handlers: Mutex<Handlers>,
    pub(super) failures: Mutex<Vec<String>>,
    /// Reference count: one more than the open ends of connections.
    pub(super) ends: Arc<()>,
}

#[derive(Default)]
struct Handlers {
    running: usize,
    starts: BTreeMap<u64, usize>,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    pub(super) fn new(mut random: Random, trace: Trace) -> World {
        World {
            plan: WorldPlan::random(&mut random),
            start: Instant::now(),
            trace: Mutex::new(trace),
            random: Mutex::new(random),
            listener: Mutex::default(),
            cuts: Mutex::default(),
            was_stopped: AtomicBool::new(false),
            handlers: Mutex::default(),
            failures: Mutex::default(),
            ends: Arc::new(()),
        }
    }

    pub(super) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    pub(super) fn note(&self, side: Side, what: &str, which: u64, number: usize) {
        lock(&self.trace).note(self.now(), side, what, which, number as u64);
    }

    pub(super) fn take_trace(&self) -> Trace {
        std::mem::take(&mut lock(&self.trace))
    }

    /// Records a fault seen by a handler; a panic would only be an INTERNAL status for the caller.
    pub(super) fn fail(&self, failure: &str) {
        lock(&self.failures).push(failure.to_owned());
    }

    /// Whether a link broke or a server stopped so far.
    pub(super) fn was_disrupted(&self) -> bool {
        let now = Instant::now();
        self.was_stopped.load(Ordering::Relaxed) || lock(&self.cuts).iter().any(|cut| *cut <= now)
    }

    pub(super) fn handler_started(&self, call: u64) {
        self.note(Side::Server, "handler", call, 0);
        let mut handlers = lock(&self.handlers);
        handlers.running += 1;
        let starts = handlers.starts.entry(call).or_default();
        *starts += 1;
        if *starts > 1 {
            self.fail(&format!("call {call} ran {starts} times"));
        }
    }

    pub(super) fn handler_ended(&self, call: u64) {
        self.note(Side::Server, "handler ended", call, 0);
        lock(&self.handlers).running -= 1;
    }

    /// Creates a new link to the server, if one runs.
    pub(super) async fn connect(self: Arc<Self>) -> io::Result<Duplex> {
        let (random, cut_at, delay) = {
            let mut random = lock(&self.random);
            let cut_at = (self.plan.cuts && random.one_in(2))
                .then(|| Instant::now() + Duration::from_millis(random.size(4000) as u64));
            (random.fork(), cut_at, Duration::from_millis(random.size(100) as u64))
        };
        sleep(delay).await;
        let listener = lock(&self.listener).clone();
        let Some(listener) = listener else { return Err(io::ErrorKind::ConnectionRefused.into()) };
        lock(&self.cuts).extend(cut_at);
        self.note(Side::Client, "connect", 0, cut_at.map_or(0, |at| (at - self.start).as_millis() as usize));
        let [client, server] = Duplex::pair(random, self.plan.links, cut_at, &self.ends);
        listener.send(server).map_err(|_| io::ErrorKind::ConnectionRefused)?;
        Ok(client)
    }

    pub(super) fn assert_no_handlers(&self) {
        assert_eq!(lock(&self.handlers).running, 0, "handlers outlive their server");
    }
}
