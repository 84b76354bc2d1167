//! What came of a run.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thalweg_measure::cpu_time::CpuTime;
use thalweg_measure::distribution::{Distribution, Latency};
use thalweg_measure::histogram::Histogram;
use thalweg_measure::machine::Machine;
use thalweg_measure::validity::{Cause, Reason, Validity};

use crate::share::Share;

/// What a result says it is.
pub const SCHEMA: &str = "thalweg.load-run/2";
/// The schema of earlier versions, which is read as well. Some of its notes said that the figures must not be used.
pub const EARLIER_SCHEMA: &str = "thalweg.load-run/1";

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct LoadRun {
    /// [`SCHEMA`].
    pub schema: String,
    /// Identities of the runs in it, 32 hex digits each: one, or several if it is a merge. Empty in results of versions
    /// that had no identities.
    #[serde(default)]
    pub ids: Vec<String>,
    /// The run has not ended: this is what there was so far.
    #[serde(default)]
    pub so_far: bool,
    /// What its user calls it.
    #[serde(default)]
    pub name: Option<String>,
    /// What its user says of it.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// Whom it called.
    pub targets: Vec<String>,
    /// `package.Service/Method`, or the name of a scenario.
    pub method: String,
    /// `unary`, `client-stream`, `server-stream`, `bidi-stream`; or `scenario`: several methods.
    pub kind: String,
    /// `closed`; or `open`: calls had times to begin at, and latency counts from there.
    #[serde(rename = "loop")]
    pub loop_kind: String,
    /// The schedule of an open loop, as it was written.
    pub schedule: Option<String>,
    /// How starts lay about it: `constant` or `poisson`.
    pub spacing: Option<String>,
    /// Which part of a load it is, where several machines made it; the schedule is the whole one.
    #[serde(default)]
    pub share: Option<Share>,
    /// Of how many runs it is joined; none: it is one run itself.
    #[serde(default)]
    pub merged_of: Option<u64>,
    /// Calls in flight, of an open loop at the most.
    pub in_flight: u32,
    /// How many workers of a closed loop had calls, over time, as it was written; none: all of them, all the time.
    #[serde(default)]
    pub workers: Option<String>,
    /// How long each stream was to last, if it was to: its latency is no measurement then. `null` for a scenario.
    #[serde(default)]
    pub stream_for_ns: Option<u64>,
    /// Connections that were asked for, of all targets.
    pub connections: u32,
    /// Those that the kernel saw; `null` where it could not be asked.
    pub connections_established: Option<u32>,
    /// Driven first, and not counted.
    pub warmup_ns: u64,
    /// When measuring began and ended, as RFC 3339 has it.
    pub started: String,
    /// See `started`.
    pub ended: String,
    /// What was measured.
    pub duration_ns: u64,
    /// How long calls took beyond that which were under way at the end.
    pub drain_ns: u64,
    /// A longest time, the end of its schedule or an interrupt ended it before as many calls had begun as were to.
    #[serde(default)]
    pub stopped_early: bool,
    /// Calls that ended with OK, each second of the measured time.
    pub rate_per_s: f64,
    /// Calls that the schedule had, each second; of a scenario flows.
    pub scheduled_per_s: Option<f64>,
    /// Calls that ended with OK.
    pub ok: u64,
    /// Calls that did not.
    pub failed: u64,
    /// Those by their status; `CHECK`: the answer was not what was expected.
    pub errors: BTreeMap<String, u64>,
    /// Of a scenario its flows, which the schedule has; `null` of one method, where each call is one.
    #[serde(default)]
    pub flows: Option<Flows>,
    /// Calls that began more than a millisecond behind their time; of a scenario flows.
    pub late: u64,
    /// Calls that were to begin and never did; of a scenario flows.
    pub dropped: u64,
    /// Calls that were to begin when `in_flight` of them were under way: they waited for one to end, or never began; of
    /// a scenario flows. `null` of a closed loop, and of results that do not say so.
    #[serde(default)]
    pub held_back: Option<u64>,
    /// Messages and their bytes.
    pub messages_sent: u64,
    /// See `messages_sent`.
    pub messages_received: u64,
    /// See `messages_sent`.
    pub bytes_sent: u64,
    /// See `messages_sent`.
    pub bytes_received: u64,
    /// From the intended start to the end, of calls that ended with OK.
    pub latency: Option<Timing>,
    /// From the actual start, of the same.
    pub service: Option<Timing>,
    /// From the intended start to the actual one, of all calls; of a scenario of the first call of each flow.
    pub wait: Option<Timing>,
    /// From the intended start to the end, of calls that failed.
    pub failed_latency: Option<Timing>,
    /// From the start of a stream to its first response.
    pub first_message: Option<Timing>,
    /// From a request of a bidi stream to the response of the same number.
    pub reply: Option<Timing>,
    /// Of a scenario, how long flows of several steps took that have gone well, with the times to think.
    #[serde(default)]
    pub flow: Option<Timing>,
    /// Of a scenario, each of its steps.
    #[serde(default)]
    pub steps: Vec<StepRun>,
    /// How long an interval is.
    pub interval_ns: u64,
    /// The run over time.
    pub intervals: Vec<Interval>,
    /// How long the client looked at the clock for the next start.
    pub spun_ns: u64,
    /// The client's processor time.
    pub client_cpu: CpuTime,
    /// The same, for each call that ended with OK, without `spun_ns`.
    pub client_cpu_per_call: Option<CpuTime>,
    /// Where the client ran; `null` where nobody said, or of runs of several machines.
    #[serde(default)]
    pub machine: Option<Machine>,
    /// What was expected, and whether it was kept.
    #[serde(default)]
    pub gates: Vec<Judged>,
    /// How the highest rate was looked for that keeps to conditions, if it was: this run is the last one at that rate.
    #[serde(default)]
    pub search: Option<Search>,
    /// Why the figures must not be used; empty if they may.
    #[serde(default)]
    pub not_valid: Validity,
    /// What a reader must know.
    pub notes: Vec<RunNote>,
}

impl Serialize for LoadRun {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for LoadRun {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut run = Self::deserialize(deserializer)?;
        if run.schema == EARLIER_SCHEMA {
            SCHEMA.clone_into(&mut run.schema);
            let (invalidating, notes) = run.notes.into_iter().partition(|note| note.invalidated);
            let reason = |note: RunNote| Reason::new(Cause::Reported, note.text);
            run.notes = notes;
            run.not_valid = Vec::into_iter(invalidating).map(reason).collect();
        }
        Ok(run)
    }
}

/// A step of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepRun {
    /// The flow that it is of.
    pub flow: String,
    /// Its own name.
    pub step: String,
    /// `package.Service/Method`.
    pub method: String,
    /// As of a run.
    pub kind: String,
    /// Calls that have gone well.
    pub ok: u64,
    /// Calls that have not.
    pub failed: u64,
    /// Those by their status.
    pub errors: BTreeMap<String, u64>,
    /// From the intended start to the end, of calls that have gone well.
    pub latency: Option<Timing>,
}

/// How many flows of a scenario there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flows {
    /// Whose first call has ended.
    pub begun: u64,
    /// Whose last call has gone well.
    pub ok: u64,
    /// That a call has ended that has not.
    pub failed: u64,
}

impl Flows {
    /// None where one has none: it was written by a version that did not count them.
    pub(crate) fn sum(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        let (mut all, other) = (one?, other?);
        all += other;
        Some(all)
    }
}

impl AddAssign for Flows {
    fn add_assign(&mut self, other: Self) {
        self.begun += other.begun;
        self.ok += other.ok;
        self.failed += other.failed;
    }
}

/// How the highest rate was looked for that keeps to conditions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// The conditions.
    pub conditions: Vec<String>,
    /// The highest rate that keeps to them, calls a second, of a scenario flows; none: not even the lowest that was
    /// tried.
    pub found_per_s: Option<f64>,
    /// The rates that were tried, one after the other.
    pub tries: Vec<Try>,
}

/// A rate that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Try {
    /// Calls a second that were to begin; of a scenario flows.
    pub rate_per_s: f64,
    /// Calls a second that ended with OK; of a scenario flows that have gone well.
    pub reached_per_s: f64,
    /// Whether all conditions were kept.
    pub is_kept: bool,
    /// The figures of the conditions, or what kept the rate from being reached.
    pub figures: Vec<String>,
}

/// How something was distributed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Of how many.
    pub count: u64,
    /// ns.
    #[serde(flatten)]
    pub ns: Latency,
    /// Three digits, up to an hour.
    pub histogram: Histogram,
}

/// A part of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// When it began, counted from where measuring did.
    pub at_ns: u64,
    /// Calls that the schedule had in it, of a scenario flows; 0 for a closed loop.
    pub scheduled: f64,
    /// Calls that ended with OK in it.
    pub ok: u64,
    /// Calls that did not.
    pub failed: u64,
    /// As of a run.
    #[serde(default)]
    pub flows: Option<Flows>,
    /// Of those that ended in it, how many had begun more than a millisecond behind their time.
    pub late: u64,
    /// Calls under way at its end.
    pub in_flight: u64,
    /// Connections that took calls at its end.
    #[serde(default)]
    pub connections: u32,
    /// Of calls that ended with OK in it, ns.
    pub latency_ns: Option<Latency>,
    /// The same as a histogram, as in a [`Timing`], but to two digits.
    #[serde(default)]
    pub histogram: Option<Histogram>,
    /// Messages that were sent in it, also those of streams that have not ended.
    #[serde(default)]
    pub messages_sent: u64,
    /// See `messages_sent`.
    #[serde(default)]
    pub messages_received: u64,
    /// Bytes of messages.
    pub bytes_sent: u64,
    /// See `bytes_sent`.
    pub bytes_received: u64,
    /// Of bidi streams, from a request to the response of the same number, where that came in it, ns.
    #[serde(default)]
    pub reply_ns: Option<Latency>,
    /// The same as a histogram, to two digits.
    #[serde(default)]
    pub reply_histogram: Option<Histogram>,
}

/// What a condition says of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judged {
    /// The condition, as it was written.
    pub gate: String,
    /// The figure that the run has; none where it has none.
    pub figure: String,
    /// Whether it is kept. A figure that is not there keeps nothing.
    pub is_kept: bool,
}

/// Something that a reader must know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunNote {
    /// One sentence.
    pub text: String,
    /// In [`EARLIER_SCHEMA`], the figures must not be used.
    #[serde(default, rename = "invalidates", skip_serializing)]
    invalidated: bool,
}

impl RunNote {
    /// Returns a note of this sentence.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), invalidated: false }
    }
}

impl Timing {
    pub(crate) fn of(distribution: &Distribution) -> Option<Self> {
        Some(Self {
            count: distribution.len(),
            ns: distribution.latency()?,
            histogram: distribution.histogram(),
        })
    }

    /// Returns the 95th percentile in ns, in results of earlier versions from the histogram.
    pub fn p95(&self) -> Option<u64> {
        self.ns.p95.or_else(|| Some(self.distribution()?.value_at(0.95)))
    }

    /// Returns the distribution. `None` if its histogram was left out.
    pub fn distribution(&self) -> Option<Distribution> {
        Distribution::restored(&self.histogram, &self.ns)
    }
}

impl Interval {
    /// Its latencies; none where it has none, or where they were left out.
    pub fn latencies(&self) -> Option<Distribution> {
        Distribution::restored(self.histogram.as_ref()?, self.latency_ns.as_ref()?)
    }

    /// As the run's schedule counts: calls, or of a scenario flows.
    pub fn starts(&self) -> Flows {
        let (ok, failed) = (self.ok, self.failed);
        self.flows.unwrap_or(Flows { begun: ok + failed, ok, failed })
    }

    /// Adds what one has that is right behind it.
    pub fn add_next(&mut self, next: &Self) {
        self.add(next);
        (self.in_flight, self.connections) = (next.in_flight, next.connections);
    }

    /// Adds what one has that is of the same time, of another run.
    pub(crate) fn add_beside(&mut self, other: &Self) {
        self.add(other);
        self.in_flight += other.in_flight;
        self.connections += other.connections;
    }

    /// Adds what is counted. What there is at an interval's end is not.
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
    }
}

/// Adds times: what is exact of them, and their histogram.
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
        // Written by a version that kept no histograms.
        None => (Some(mine.worse(theirs)), None),
    };
}

impl LoadRun {
    /// Returns which messages are the operations of a run whose streams were to last a given time: those sent if the
    /// server answers with one message, else those received. `None` for other runs, whose operations are calls.
    pub fn timed_messages(&self, sent: u64, received: u64) -> Option<u64> {
        self.stream_for_ns?;
        match self.kind.as_str() {
            "client-stream" => Some(sent),
            "server-stream" | "bidi-stream" => Some(received),
            _ => None,
        }
    }

    /// Returns how many operations there were: messages of timed streams, else calls.
    pub fn operations(&self) -> u64 {
        self.timed_messages(self.messages_sent, self.messages_received).unwrap_or_else(|| self.calls())
    }

    /// Returns the rate of [`timed_messages`](Self::timed_messages).
    pub fn messages_per_s(&self) -> Option<f64> {
        let messages = self.timed_messages(self.messages_sent, self.messages_received)?;
        (self.duration_ns > 0).then(|| messages as f64 / (self.duration_ns as f64 / 1e9))
    }

    /// What the schedule counts: `call`; of a scenario `flow`.
    pub fn unit(&self) -> &'static str {
        if self.flows.is_some() { "flow" } else { "call" }
    }

    /// As its schedule counts: calls, or of a scenario flows.
    pub fn starts(&self) -> Flows {
        self.flows.unwrap_or(Flows { begun: self.calls(), ok: self.ok, failed: self.failed })
    }

    /// Those that have gone well, each second of the measured time.
    pub fn starts_per_s(&self) -> f64 {
        match self.flows {
            Some(flows) if self.duration_ns > 0 => flows.ok as f64 / (self.duration_ns as f64 / 1e9),
            Some(_) => 0.0,
            None => self.rate_per_s,
        }
    }

    /// Calls that ended.
    pub fn calls(&self) -> u64 {
        self.ok + self.failed
    }

    /// The share of them that failed; 0 where there are none.
    pub fn failed_share(&self) -> f64 {
        if self.calls() == 0 { 0.0 } else { self.failed as f64 / self.calls() as f64 }
    }

    /// Returns the distributions of times that the run has, each with its name and what it measures.
    pub fn timings(&self) -> impl Iterator<Item = (&'static str, &'static str, &Timing)> {
        let start = if self.is_open() { "from the scheduled start" } else { "from the start" };
        let wait = if self.flows.is_some() {
            "of flows, from the scheduled to the actual start"
        } else {
            "from the scheduled to the actual start"
        };
        let timings = [
            ("latency", start, &self.latency),
            ("service", "from the actual start", &self.service),
            ("wait", wait, &self.wait),
            ("first message", "from the start of a stream to its first response", &self.first_message),
            ("reply", "from a request of a stream to its response", &self.reply),
            ("flow", "all steps, including think times", &self.flow),
            ("failed calls", start, &self.failed_latency),
        ];
        timings.into_iter().filter_map(|(name, about, timing)| Some((name, about, timing.as_ref()?)))
    }

    /// Whether calls had times to begin at.
    pub(crate) fn is_open(&self) -> bool {
        self.loop_kind == "open"
    }

    /// The same without its histograms, which are the most of it: percentiles stay, and it can be merged no more.
    pub fn without_histograms(mut self) -> Self {
        let Self { latency, service, wait, failed_latency, first_message, reply, flow, steps, .. } =
            &mut self;
        let timings = [latency, service, wait, failed_latency, first_message, reply, flow];
        let of_steps = steps.iter_mut().map(|step| &mut step.latency);
        for timing in timings.into_iter().chain(of_steps).flatten() {
            timing.histogram = Histogram::default();
        }
        for interval in &mut self.intervals {
            (interval.histogram, interval.reply_histogram) = (None, None);
        }
        self
    }

    /// Whether the figures are the server's.
    pub fn is_valid(&self) -> bool {
        self.not_valid.is_valid()
    }
}

#[cfg(test)]
impl LoadRun {
    /// Nothing but a hundred calls of which nothing is known.
    pub(crate) fn of_tests() -> Self {
        let cpu = serde_json::json!({"user_ns": 0.0, "system_ns": 0.0});
        let machine =
            serde_json::json!({"cpu": "Model 7", "cores": 2, "kernel": "Linux 7", "memory_bytes": 0});
        let run = serde_json::json!({
            "schema": SCHEMA, "targets": ["a:1"], "method": "a.B/C", "kind": "unary", "loop": "open",
            "schedule": "100", "spacing": "constant", "in_flight": 1000, "connections": 1,
            "connections_established": 1, "warmup_ns": 0, "started": "", "ended": "", "duration_ns": 1, "drain_ns": 0,
            "rate_per_s": 100.0, "scheduled_per_s": 100.0, "ok": 100, "failed": 0, "errors": {}, "late": 0,
            "dropped": 0, "messages_sent": 0, "messages_received": 0, "bytes_sent": 0, "bytes_received": 0,
            "latency": null, "service": null, "wait": null, "failed_latency": null, "first_message": null,
            "reply": null, "interval_ns": 1, "intervals": [], "spun_ns": 0, "client_cpu": cpu,
            "client_cpu_per_call": null, "machine": machine, "notes": [],
        });
        serde_json::from_value(run).unwrap_or_else(|error| panic!("{error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_of_earlier_versions_that_invalidate_are_reasons() {
        let mut earlier = serde_json::to_value(LoadRun::of_tests()).unwrap();
        assert_eq!((&earlier["schema"], &earlier["not_valid"]), (&SCHEMA.into(), &serde_json::json!([])));
        earlier["schema"] = EARLIER_SCHEMA.into();
        earlier.as_object_mut().unwrap().remove("not_valid");
        earlier["notes"] = serde_json::json!([
            {"text": "late", "invalidates": false},
            {"text": "busy", "invalidates": true},
        ]);
        let run: LoadRun = serde_json::from_value(earlier).unwrap();
        assert_eq!((run.schema.as_str(), &run.notes[..]), (SCHEMA, &[RunNote::new("late")][..]));
        assert_eq!(run.not_valid.reasons, [Reason::new(Cause::Reported, "busy")]);
        let again = serde_json::to_value(&run).unwrap();
        assert_eq!(again["notes"], serde_json::json!([{"text": "late"}]));
        assert_eq!(serde_json::from_value::<LoadRun>(again).unwrap(), run);
    }
}
