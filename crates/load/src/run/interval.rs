//! Figures of an interval of a run.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};
use thalweg_measure::distribution::{Distribution, Latency};
use thalweg_measure::histogram::Histogram;

use super::servers::ServerInterval;

/// An interval of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Its start since measuring began.
    pub at_ns: u64,
    /// Scheduled calls, or flows in a scenario; 0 for a closed loop.
    pub scheduled: f64,
    /// Calls that ended with OK.
    pub ok: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Flows, as in a run.
    #[serde(default)]
    pub flows: Option<Flows>,
    /// Calls ended in the interval that had started more than 1 ms late.
    pub late: u64,
    /// Calls in flight at its end.
    pub in_flight: u64,
    /// Connections that accepted calls at its end.
    #[serde(default)]
    pub connections: u32,
    /// Latency in ns of calls that ended with OK.
    pub latency_ns: Option<Latency>,
    /// Histogram of the latency, as in a [`Timing`](super::Timing), but with two digits.
    #[serde(default)]
    pub histogram: Option<Histogram>,
    /// Messages sent, including those of unfinished streams.
    #[serde(default)]
    pub messages_sent: u64,
    /// See `messages_sent`.
    #[serde(default)]
    pub messages_received: u64,
    /// Message bytes sent.
    pub bytes_sent: u64,
    /// See `bytes_sent`.
    pub bytes_received: u64,
    /// Time in ns from a request of a bidi stream to the response of the same number, for responses in the interval.
    #[serde(default)]
    pub reply_ns: Option<Latency>,
    /// Histogram of the reply times, with two digits.
    #[serde(default)]
    pub reply_histogram: Option<Histogram>,
    /// Calls by server; empty if the target has only one address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ServerInterval>,
}

impl Interval {
    /// Returns the latencies, or `None` if there are none or they were left out.
    pub fn latencies(&self) -> Option<Distribution> {
        Distribution::restored(self.histogram.as_ref()?, self.latency_ns.as_ref()?)
    }

    /// Returns the counts in the unit of the run's schedule: calls, or flows in a scenario.
    pub fn starts(&self) -> Flows {
        let (ok, failed) = (self.ok, self.failed);
        self.flows.unwrap_or(Flows { started: ok + failed, ok, failed })
    }

    /// Adds the interval that follows.
    pub fn append(&mut self, next: &Self) {
        self.add(next);
        (self.in_flight, self.connections) = (next.in_flight, next.connections);
    }

    /// Adds an interval of the same time, of another run.
    pub(crate) fn merge_concurrent(&mut self, other: &Self) {
        self.add(other);
        self.in_flight += other.in_flight;
        self.connections += other.connections;
    }

    /// Adds all counts, but not the state at the end of the interval.
    fn add(&mut self, other: &Self) {
        let Self {
            at_ns: _,
            scheduled,
            ok,
            failed,
            flows,
            late,
            in_flight: _,
            connections: _,
            latency_ns,
            histogram,
            messages_sent,
            messages_received,
            bytes_sent,
            bytes_received,
            reply_ns,
            reply_histogram,
            servers,
        } = other;
        self.scheduled += scheduled;
        self.ok += ok;
        self.failed += failed;
        self.flows = Flows::sum(self.flows, *flows);
        self.late += late;
        self.messages_sent += messages_sent;
        self.messages_received += messages_received;
        self.bytes_sent += bytes_sent;
        self.bytes_received += bytes_received;
        add_times((&mut self.latency_ns, &mut self.histogram), (latency_ns, histogram));
        add_times((&mut self.reply_ns, &mut self.reply_histogram), (reply_ns, reply_histogram));
        for server in servers {
            ServerInterval::add(&mut self.servers, server);
        }
    }
}

/// Adds exact figures and histograms of times.
fn add_times(
    (ns, histogram): (&mut Option<Latency>, &mut Option<Histogram>),
    (other_ns, other_histogram): (&Option<Latency>, &Option<Histogram>),
) {
    let Some(theirs) = *other_ns else { return };
    let Some(mine) = *ns else {
        (*ns, *histogram) = (Some(theirs), other_histogram.clone());
        return;
    };
    let restored = |histogram: &Option<Histogram>, ns| Distribution::restored(histogram.as_ref()?, &ns);
    let both = restored(histogram, mine).zip(restored(other_histogram, theirs)).map(|(mut both, more)| {
        both.merge(&more);
        both
    });
    (*ns, *histogram) = match both {
        Some(both) => (both.latency(), Some(both.coarse_histogram())),
        // Written by a version without histograms.
        None => (Some(mine.worse(theirs)), None),
    };
}

/// Counts of a scenario's flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flows {
    /// Flows whose first call has ended.
    #[serde(rename = "begun")]
    pub started: u64,
    /// Flows whose last call has succeeded.
    pub ok: u64,
    /// Flows with a failed call.
    pub failed: u64,
}

impl Flows {
    /// Adds flows. Returns `None` if one is `None`, as in results of versions without the figure.
    pub(crate) fn sum(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        let (mut all, other) = (one?, other?);
        all += other;
        Some(all)
    }
}

impl AddAssign for Flows {
    fn add_assign(&mut self, other: Self) {
        self.started += other.started;
        self.ok += other.ok;
        self.failed += other.failed;
    }
}
