//! Calls that wait for a thread of a server's pool: [`CallQueue`].
//!
//! A job of the pool takes several calls, one after the other, so that a busy pool costs no submission per call. The
//! dispatcher, a thread of its own, submits a job when calls wait and the running jobs make too little progress. It
//! holds the GIL only to do that.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::server_call::ServerCall;

/// Interval at which the dispatcher looks at the progress of running jobs while calls wait. Jobs whose handlers block
/// are noticed within it.
const TICK: Duration = Duration::from_micros(250);
/// Another job is submitted if the waiting calls would need more ticks than this, 2 ms.
const TICKS_MAX: u64 = 8;
/// Time for which one job waits for the next call before it gives its thread back. Longer than a round trip, so that
/// a client's sequential calls need no submission.
const LINGER: Duration = Duration::from_millis(1);

/// The calls of a server that wait for a thread of its pool.
#[pyclass(frozen, module = "thalweg._native")]
pub(crate) struct CallQueue {
    waiting: Arc<Waiting>,
}

/// The part that the I/O tasks share.
pub(crate) struct Waiting {
    state: Mutex<State>,
    /// Once it runs.
    dispatcher: OnceLock<Thread>,
    /// Wakes a job that waits for a call.
    arrived: Condvar,
}

struct State {
    calls: VecDeque<ServerCall>,
    /// Number of calls that jobs have taken.
    taken: u64,
    /// Jobs that are submitted and have not started.
    submitted: usize,
    running: usize,
    /// Largest number of jobs: the threads of the pool.
    jobs_max: usize,
    /// A running job waits for a call.
    lingers: bool,
    /// The dispatcher sleeps until it is woken.
    dispatcher_sleeps: bool,
    is_closed: bool,
}

impl State {
    fn jobs(&self) -> usize {
        self.submitted + self.running
    }

    fn needs_dispatcher(&self) -> bool {
        !self.calls.is_empty() && !self.lingers && (self.jobs() == 0 || self.dispatcher_sleeps)
    }
}

/// Returns the number of jobs to submit, when `taken` calls were taken within the last tick.
fn jobs_wanted(waiting: usize, taken: u64, running: usize, room: usize) -> usize {
    if waiting == 0 {
        return 0;
    }
    let wanted = match taken {
        _ if running == 0 => 1,
        // The handlers block.
        0 => waiting,
        _ if waiting as u64 / taken > TICKS_MAX => running.min(waiting),
        _ => 0,
    };
    wanted.min(room)
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake_dispatcher(&self) {
        if let Some(dispatcher) = self.dispatcher.get() {
            dispatcher.unpark();
        }
    }

    /// Adds a call that has arrived.
    pub(crate) fn push(&self, call: ServerCall) {
        let mut state = self.lock();
        if state.is_closed {
            return;
        }
        state.calls.push_back(call);
        let (lingers, needs_dispatcher) = (state.lingers, state.needs_dispatcher());
        drop(state);
        if lingers {
            self.arrived.notify_one();
        } else if needs_dispatcher {
            self.wake_dispatcher();
        }
    }

    /// Waits until there are jobs to submit, and returns their number. `None` once closed.
    fn wait(&self, pace: &mut Pace) -> Option<usize> {
        loop {
            let mut state = self.lock();
            state.dispatcher_sleeps = false;
            if state.is_closed {
                return None;
            }
            let jobs = pace.jobs(&state);
            state.submitted += jobs;
            if jobs > 0 {
                return Some(jobs);
            }
            let is_pacing = !state.calls.is_empty() && state.jobs() < state.jobs_max;
            state.dispatcher_sleeps = !is_pacing;
            drop(state);
            if is_pacing {
                thread::park_timeout(TICK);
            } else {
                thread::park();
            }
        }
    }

    /// Ends the dispatcher and discards waiting calls.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        let calls = mem::take(&mut state.calls);
        drop(state);
        self.arrived.notify_all();
        self.wake_dispatcher();
        drop(calls);
    }

    fn linger(&self, state: MutexGuard<'_, State>) -> Option<ServerCall> {
        let until = Instant::now() + LINGER;
        let mut state = state;
        state.lingers = true;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let call = state.calls.pop_front();
            if call.is_some() || left.is_zero() || state.is_closed {
                state.lingers = false;
                state.taken += u64::from(call.is_some());
                // Calls that arrived before this job woke up were left to it.
                let needs_dispatcher = state.needs_dispatcher();
                drop(state);
                if needs_dispatcher {
                    self.wake_dispatcher();
                }
                return call;
            }
            state = self.arrived.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// The dispatcher's view of the progress of jobs.
struct Pace {
    tick: Instant,
    taken: u64,
}

impl Pace {
    fn jobs(&mut self, state: &State) -> usize {
        let room = state.jobs_max.saturating_sub(state.jobs());
        if state.calls.is_empty() || state.lingers || state.submitted > 0 {
            (self.tick, self.taken) = (Instant::now(), state.taken);
            return 0;
        }
        if state.running > 0 && self.tick.elapsed() < TICK {
            return 0;
        }
        let taken = state.taken - self.taken;
        (self.tick, self.taken) = (Instant::now(), state.taken);
        jobs_wanted(state.calls.len(), taken, state.running, room)
    }
}

#[pymethods]
impl CallQueue {
    /// Creates the queue of a server whose pool has `jobs_max` threads; `None`: unknown.
    #[new]
    fn new(jobs_max: Option<usize>) -> Self {
        let state = State {
            calls: VecDeque::new(),
            taken: 0,
            submitted: 0,
            running: 0,
            jobs_max: jobs_max.unwrap_or(usize::MAX),
            lingers: false,
            dispatcher_sleeps: false,
            is_closed: false,
        };
        let (dispatcher, arrived) = (OnceLock::new(), Condvar::new());
        Self { waiting: Arc::new(Waiting { state: Mutex::new(state), dispatcher, arrived }) }
    }

    /// Runs the dispatcher on the current thread until the queue is closed. `submit` submits a job and returns whether
    /// the pool has taken it. `reject` gets the calls that no job will run.
    fn dispatch(&self, py: Python<'_>, submit: &Bound<'_, PyAny>, reject: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.waiting.dispatcher.set(thread::current()).is_err() {
            return Err(PyRuntimeError::new_err("the queue has a dispatcher"));
        }
        let mut pace = Pace { tick: Instant::now(), taken: 0 };
        while let Some(jobs) = py.detach(|| self.waiting.wait(&mut pace)) {
            for _ in 0..jobs {
                if submit.call0()?.is_truthy()? {
                    continue;
                }
                let mut state = self.waiting.lock();
                state.submitted -= 1;
                let calls = if state.jobs() == 0 { mem::take(&mut state.calls) } else { VecDeque::new() };
                drop(state);
                for call in calls {
                    reject.call1((call,))?;
                }
            }
        }
        Ok(())
    }

    /// Notes the start of a job.
    fn job_started(&self) {
        let mut state = self.waiting.lock();
        state.submitted = state.submitted.saturating_sub(1);
        state.running += 1;
    }

    /// Notes that the pool has discarded a job.
    fn job_cancelled(&self) {
        let mut state = self.waiting.lock();
        state.submitted = state.submitted.saturating_sub(1);
        drop(state);
        self.waiting.wake_dispatcher();
    }

    /// Notes the end of a job.
    fn job_ended(&self) {
        let mut state = self.waiting.lock();
        state.running -= 1;
        let needs_dispatcher = state.needs_dispatcher();
        drop(state);
        if needs_dispatcher {
            self.waiting.wake_dispatcher();
        }
    }

    /// Takes the next call. Waits a little for it unless another job does. Returns `None` if the job should end.
    fn take(&self, py: Python<'_>) -> Option<ServerCall> {
        let mut state = self.waiting.lock();
        if let Some(call) = state.calls.pop_front() {
            state.taken += 1;
            return Some(call);
        }
        let is_last = !state.lingers && !state.is_closed;
        drop(state);
        if !is_last {
            return None;
        }
        py.detach(|| {
            let state = self.waiting.lock();
            if state.lingers { None } else { self.waiting.linger(state) }
        })
    }

    /// Ends the dispatcher and discards waiting calls.
    fn close(&self) {
        self.waiting.close();
    }
}

impl CallQueue {
    pub(crate) fn waiting(&self) -> &Arc<Waiting> {
        &self.waiting
    }
}
