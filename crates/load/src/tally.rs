//! What workers count, in constant memory.

use std::sync::{Mutex, MutexGuard, PoisonError};

use thalweg::Status;
use thalweg_lab::record::{Distribution, code_name};

use crate::call::Went;

/// gRPC's status codes.
pub(crate) const CODES: usize = 17;
/// A call that begins so much behind its time is late.
pub(crate) const LATE_NS: u64 = 1_000_000;

/// When a call was to begin, when it did and when it ended: ns of the run's clock.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_field_names, reason = "all of them are ns")]
pub(crate) struct Times {
    pub(crate) intended_ns: u64,
    pub(crate) began_ns: u64,
    pub(crate) ended_ns: u64,
}

/// All that was counted of the calls of a run, or of a part of them.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    /// From the intended start to the end, of calls that ended with OK.
    pub(crate) latency: Distribution,
    /// From the actual start.
    pub(crate) service: Distribution,
    /// From the intended start to the actual one, of all calls.
    pub(crate) wait: Distribution,
    /// From the intended start to the end, of calls that failed.
    pub(crate) failed: Distribution,
    /// Until the first response of a stream.
    pub(crate) first: Distribution,
    /// From a request of a bidi stream to its response.
    pub(crate) replies: Distribution,
    pub(crate) codes: [u64; CODES],
    pub(crate) late: u64,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_received: u64,
    /// What the first failure said, with its time.
    pub(crate) first_failure: Option<(u64, String)>,
}

/// What was counted since the last interval ended.
#[derive(Clone, Debug)]
pub(crate) struct Recent {
    pub(crate) latency: Distribution,
    pub(crate) ok: u64,
    pub(crate) failed: u64,
    pub(crate) late: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_received: u64,
}

/// Where workers count: one for each thread, so that threads do not wait for each other.
#[derive(Debug)]
pub(crate) struct Shards(Vec<Mutex<Shard>>);

#[derive(Debug)]
pub(crate) struct Shard {
    pub(crate) tally: Tally,
    pub(crate) recent: Recent,
}

impl Tally {
    fn new() -> Self {
        Self {
            latency: Distribution::new(),
            service: Distribution::new(),
            wait: Distribution::new(),
            failed: Distribution::new(),
            first: Distribution::new(),
            replies: Distribution::new(),
            codes: [0; CODES],
            late: 0,
            sent: 0,
            received: 0,
            bytes_sent: 0,
            bytes_received: 0,
            first_failure: None,
        }
    }

    fn merge(&mut self, other: &Self) {
        self.latency.merge(&other.latency);
        self.service.merge(&other.service);
        self.wait.merge(&other.wait);
        self.failed.merge(&other.failed);
        self.first.merge(&other.first);
        self.replies.merge(&other.replies);
        for (mine, theirs) in self.codes.iter_mut().zip(other.codes) {
            *mine += theirs;
        }
        self.late += other.late;
        self.sent += other.sent;
        self.received += other.received;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        let theirs = other.first_failure.clone();
        self.first_failure = self.first_failure.take().into_iter().chain(theirs).min();
    }

    /// Calls that did not end with OK.
    pub(crate) fn failures(&self) -> u64 {
        self.codes[1..].iter().sum()
    }
}

impl Recent {
    fn new() -> Self {
        Self { latency: Distribution::new(), ok: 0, failed: 0, late: 0, bytes_sent: 0, bytes_received: 0 }
    }

    /// Gives what was counted, and begins anew.
    fn take_into(&mut self, all: &mut Self) {
        all.latency.merge(&self.latency);
        all.ok += self.ok;
        all.failed += self.failed;
        all.late += self.late;
        all.bytes_sent += self.bytes_sent;
        all.bytes_received += self.bytes_received;
        self.latency.clear();
        (self.ok, self.failed, self.late, self.bytes_sent, self.bytes_received) = (0, 0, 0, 0, 0);
    }
}

impl Shards {
    pub(crate) fn new(threads: usize) -> Self {
        let shard = || Mutex::new(Shard { tally: Tally::new(), recent: Recent::new() });
        Self((0..threads.max(1)).map(|_| shard()).collect())
    }

    pub(crate) fn of(&self, worker: usize) -> MutexGuard<'_, Shard> {
        self.0[worker % self.0.len()].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn merged(&self) -> Tally {
        let mut all = Tally::new();
        for index in 0..self.0.len() {
            all.merge(&self.of(index).tally);
        }
        all
    }

    /// What was counted since this was asked for the last time.
    pub(crate) fn take_recent(&self) -> Recent {
        let mut all = Recent::new();
        for index in 0..self.0.len() {
            self.of(index).recent.take_into(&mut all);
        }
        all
    }
}

impl Shard {
    /// A call has ended.
    pub(crate) fn count(&mut self, times: Times, went: &Went) {
        let Self { tally, recent } = self;
        let Times { intended_ns, began_ns, ended_ns } = times;
        let latency_ns = ended_ns.saturating_sub(intended_ns);
        let wait_ns = began_ns.saturating_sub(intended_ns);
        let is_late = wait_ns > LATE_NS;
        tally.wait.record(wait_ns);
        tally.late += u64::from(is_late);
        recent.late += u64::from(is_late);
        if let Some(status) = &went.failure {
            let code = status.code() as usize;
            // A status that is OK and still a failure has brought something else than was asked for.
            tally.codes[if code == 0 || code >= CODES { 2 } else { code }] += 1;
            tally.failed.record(latency_ns);
            recent.failed += 1;
            if tally.first_failure.as_ref().is_none_or(|(at_ns, _)| ended_ns < *at_ns) {
                tally.first_failure = Some((ended_ns, described(status)));
            }
        } else {
            tally.codes[0] += 1;
            tally.latency.record(latency_ns);
            tally.service.record(ended_ns.saturating_sub(began_ns));
            recent.latency.record(latency_ns);
            recent.ok += 1;
        }
        if let Some(first_ns) = went.first_ns {
            tally.first.record(first_ns);
        }
        for &reply_ns in &went.replies_ns {
            tally.replies.record(reply_ns);
        }
        tally.sent += went.sent;
        tally.received += went.received;
        tally.bytes_sent += went.bytes_sent;
        tally.bytes_received += went.bytes_received;
        recent.bytes_sent += went.bytes_sent;
        recent.bytes_received += went.bytes_received;
    }
}

/// `UNAVAILABLE: connection lost`
fn described(status: &Status) -> String {
    let name = code_name(status.code() as i32);
    if status.message().is_empty() { name.to_owned() } else { format!("{name}: {}", status.message()) }
}
