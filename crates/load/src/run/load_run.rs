//! Result of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thalweg_measure::cpu_time::CpuTime;
use thalweg_measure::histogram::Histogram;
use thalweg_measure::machine::Machine;
use thalweg_measure::validity::{Cause, Reason, Validity};
use thalweg_measure::wording::counted;

use super::interval::{Flows, Interval};
use super::search::Search;
use super::servers::{FurtherAttempts, ServerRun};
use super::timing::Timing;
use crate::record::LaneRule;
use crate::share::Share;

/// Schema of results.
pub const SCHEMA: &str = "thalweg.load-run/2";
/// Schema of earlier versions, which can be read as well. Some of its notes invalidate the figures.
pub const EARLIER_SCHEMA: &str = "thalweg.load-run/1";

/// Result of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct LoadRun {
    /// [`SCHEMA`].
    pub schema: String,
    /// IDs of the runs in it, 32 hex digits each: one, or several after a merge. Empty in results of versions without
    /// IDs.
    #[serde(default)]
    pub ids: Vec<String>,
    /// Whether the run has not ended, so that these are interim figures.
    #[serde(default)]
    pub so_far: bool,
    /// Name given by the user.
    #[serde(default)]
    pub name: Option<String>,
    /// Tags given by the user.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// Targets of the calls.
    pub targets: Vec<String>,
    /// `package.Service/Method`, or the name of a scenario.
    pub method: String,
    /// `unary`, `client-stream`, `server-stream`, `bidi-stream`; or `scenario` for several methods.
    pub kind: String,
    /// `closed`, or `open` if calls are scheduled, and latency counts from the scheduled start.
    #[serde(rename = "loop")]
    pub loop_kind: String,
    /// Schedule of an open loop, as written.
    pub schedule: Option<String>,
    /// Arrival process: `constant` or `poisson`.
    pub spacing: Option<String>,
    /// Part of a distributed load; the schedule is that of the whole load.
    #[serde(default)]
    pub share: Option<Share>,
    /// Number of merged runs; `null` for a single run.
    #[serde(default)]
    pub merged_of: Option<u64>,
    /// Calls in flight; in an open loop the upper limit.
    pub in_flight: u32,
    /// Schedule of active workers in a closed loop, as written; `null` if all were active all the time.
    #[serde(default)]
    pub workers: Option<String>,
    /// Configured duration of each stream, if any; its latency is then not a measurement. `null` for a scenario.
    #[serde(default)]
    pub stream_for_ns: Option<u64>,
    /// Requested connections to all targets.
    pub connections: u32,
    /// Rule for the number of connections; `None` if unknown, or for merged runs with different ones.
    #[serde(default)]
    pub lanes: Option<LaneRule>,
    /// Whether channels balance over several servers, and have `connections` to each.
    #[serde(default)]
    pub to_each_server: bool,
    /// Connections reported by the kernel; `null` if unknown.
    pub connections_established: Option<u32>,
    /// Duration of the warm-up, which is not counted.
    pub warmup_ns: u64,
    /// Start of the measured time, RFC 3339.
    pub started: String,
    /// End of the measured time, RFC 3339.
    pub ended: String,
    /// Measured time.
    pub duration_ns: u64,
    /// Time after the measured time until the calls in flight had ended.
    pub drain_ns: u64,
    /// Whether a time limit, the end of its schedule or an interrupt ended the run before all calls had started.
    #[serde(default)]
    pub stopped_early: bool,
    /// Calls that ended with OK, per second of the measured time.
    pub rate_per_s: f64,
    /// Scheduled calls per second; flows in a scenario.
    pub scheduled_per_s: Option<f64>,
    /// Calls that ended with OK.
    pub ok: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Failed calls by status; `CHECK` for an unexpected response.
    pub errors: BTreeMap<String, u64>,
    /// Flows of a scenario, which its schedule counts; `null` for a single method, where each call is one.
    #[serde(default)]
    pub flows: Option<Flows>,
    /// Calls that started more than 1 ms late; flows in a scenario.
    pub late: u64,
    /// Scheduled calls that never started; flows in a scenario.
    pub dropped: u64,
    /// Calls due while `in_flight` calls were in flight, which waited or never started; flows in a scenario. `null` for
    /// a closed loop, and in results without this figure.
    #[serde(rename = "held_back", default)]
    pub delayed: Option<u64>,
    /// Messages and their bytes.
    pub messages_sent: u64,
    /// See `messages_sent`.
    pub messages_received: u64,
    /// See `messages_sent`.
    pub bytes_sent: u64,
    /// See `messages_sent`.
    pub bytes_received: u64,
    /// Time from the intended start to the end, of calls that ended with OK.
    pub latency: Option<Timing>,
    /// Time from the actual start to the end, of calls that ended with OK.
    pub service: Option<Timing>,
    /// Time from the intended to the actual start, of all calls; in a scenario of the first call of each flow.
    pub wait: Option<Timing>,
    /// Time from the intended start to the end, of failed calls.
    pub failed_latency: Option<Timing>,
    /// Time from the start of a stream to its first response.
    pub first_message: Option<Timing>,
    /// Time from a request of a bidi stream to the response of the same number.
    pub reply: Option<Timing>,
    /// Duration of successful flows with several steps, including think times.
    #[serde(default)]
    pub flow: Option<Timing>,
    /// Steps of a scenario.
    #[serde(default)]
    pub steps: Vec<StepRun>,
    /// Attempts of all calls beyond the first.
    #[serde(default)]
    pub attempts: FurtherAttempts,
    /// Servers that were called, and those of balanced channels that were not; empty if unknown.
    #[serde(default)]
    pub servers: Vec<ServerRun>,
    /// Length of an interval.
    pub interval_ns: u64,
    /// Figures over time.
    pub intervals: Vec<Interval>,
    /// Time the client spun on the clock for the next start.
    pub spun_ns: u64,
    /// Processor time of the client.
    pub client_cpu: CpuTime,
    /// The client's processor time per call that ended with OK, without `spun_ns`.
    pub client_cpu_per_call: Option<CpuTime>,
    /// The client's machine; `null` if unknown, or for runs of several machines.
    #[serde(default)]
    pub machine: Option<Machine>,
    /// Conditions and their results.
    #[serde(rename = "gates", default)]
    pub conditions: Vec<ConditionResult>,
    /// Search for the highest rate that meets conditions, if any. This run is the last one at that rate.
    #[serde(default)]
    pub search: Option<Search>,
    /// Reasons why the figures must not be used; empty if they are valid.
    #[serde(default)]
    pub not_valid: Validity,
    /// Notes for readers.
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
    /// Flow of the step.
    pub flow: String,
    /// Name of the step.
    pub step: String,
    /// `package.Service/Method`.
    pub method: String,
    /// Kind of call, as in a run.
    pub kind: String,
    /// Successful calls.
    pub ok: u64,
    /// Failed calls.
    pub failed: u64,
    /// Failed calls by status.
    pub errors: BTreeMap<String, u64>,
    /// Time from the intended start to the end, of successful calls.
    pub latency: Option<Timing>,
}

/// Result of a condition on a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConditionResult {
    /// Condition as written.
    #[serde(rename = "gate")]
    pub condition: String,
    /// Figure of the run; `none` if there is none.
    pub figure: String,
    /// Whether it is met. A missing figure meets no condition.
    #[serde(rename = "is_kept")]
    pub is_met: bool,
}

/// A note for readers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunNote {
    /// One sentence.
    pub text: String,
    /// Whether the note invalidates the figures, in [`EARLIER_SCHEMA`] only.
    #[serde(default, rename = "invalidates", skip_serializing)]
    invalidated: bool,
}

impl RunNote {
    /// Returns a note with this sentence.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), invalidated: false }
    }
}

impl LoadRun {
    /// Returns the messages that are the operations of a run with timed streams: those sent if the server responds with
    /// one message, otherwise those received. Returns `None` for other runs, whose operations are calls.
    pub fn timed_messages(&self, sent: u64, received: u64) -> Option<u64> {
        self.stream_for_ns?;
        match self.kind.as_str() {
            "client-stream" => Some(sent),
            "server-stream" | "bidi-stream" => Some(received),
            _ => None,
        }
    }

    /// Returns the number of operations: messages of timed streams, otherwise calls.
    pub fn operations(&self) -> u64 {
        self.timed_messages(self.messages_sent, self.messages_received).unwrap_or_else(|| self.calls())
    }

    /// Returns the rate of [`timed_messages`](Self::timed_messages).
    pub fn messages_per_s(&self) -> Option<f64> {
        let messages = self.timed_messages(self.messages_sent, self.messages_received)?;
        (self.duration_ns > 0).then(|| messages as f64 / (self.duration_ns as f64 / 1e9))
    }

    /// Returns the unit of the schedule: `call`, or `flow` in a scenario.
    pub fn unit(&self) -> &'static str {
        if self.flows.is_some() { "flow" } else { "call" }
    }

    /// Returns the counts in the unit of the schedule: calls, or flows in a scenario.
    pub fn starts(&self) -> Flows {
        self.flows.unwrap_or(Flows { started: self.calls(), ok: self.ok, failed: self.failed })
    }

    /// Returns the successful calls, or flows in a scenario, per second of the measured time.
    pub fn starts_per_s(&self) -> f64 {
        match self.flows {
            Some(flows) if self.duration_ns > 0 => flows.ok as f64 / (self.duration_ns as f64 / 1e9),
            Some(_) => 0.0,
            None => self.rate_per_s,
        }
    }

    /// Returns the servers with their share of all calls and their calls per second, if there were several to choose
    /// from.
    pub fn balanced(&self) -> impl Iterator<Item = (&ServerRun, f64, f64)> {
        // Latencies are measured by server only if there are several.
        let has_choice = self.servers.len() > 1 || self.servers.iter().any(|server| server.latency.is_some());
        let servers = if has_choice { &self.servers[..] } else { &[] };
        let all = servers.iter().map(|server| server.calls).sum::<u64>().max(1) as f64;
        let seconds = (self.duration_ns as f64 / 1e9).max(1e-9);
        servers.iter().map(move |server| (server, server.calls as f64 / all, server.calls as f64 / seconds))
    }

    /// Returns the requested connections: `2 requested`, `1 requested to each server`, `adaptive` or `one for each
    /// call`.
    pub fn requested_connections(&self) -> String {
        match self.lanes {
            Some(LaneRule::Adaptive) => "adaptive".to_owned(),
            Some(LaneRule::PerCall) => "one for each call".to_owned(),
            Some(LaneRule::Fixed) | None if self.to_each_server => {
                format!("{} requested to each server", self.connections_to_each())
            }
            Some(LaneRule::Fixed) | None => format!("{} requested", self.connections),
        }
    }

    /// Returns the connections for a sentence: `2 connections`, `1 connection to each server of`.
    pub fn connections_phrase(&self) -> String {
        match self.lanes {
            Some(LaneRule::Adaptive) => "adaptive connections".to_owned(),
            Some(LaneRule::PerCall) => "a connection for each call".to_owned(),
            Some(LaneRule::Fixed) | None if self.to_each_server => {
                format!("{} to each server", counted(self.connections_to_each(), "connection"))
            }
            Some(LaneRule::Fixed) | None => counted(u64::from(self.connections), "connection"),
        }
    }

    fn connections_to_each(&self) -> u64 {
        (u64::from(self.connections) / self.targets.len().max(1) as u64).max(1)
    }

    /// Returns the number of finished calls.
    pub fn calls(&self) -> u64 {
        self.ok + self.failed
    }

    /// Returns the share of failed calls; 0 without calls.
    pub fn failed_share(&self) -> f64 {
        if self.calls() == 0 { 0.0 } else { self.failed as f64 / self.calls() as f64 }
    }

    /// Returns the run's distributions of times, each with its name and description.
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

    /// Returns whether calls were scheduled.
    pub(crate) fn is_open(&self) -> bool {
        self.loop_kind == "open"
    }

    /// Removes the histograms, which make up most of the size. Percentiles stay, but the run can no longer be merged.
    pub fn without_histograms(mut self) -> Self {
        let Self {
            latency, service, wait, failed_latency, first_message, reply, flow, steps, servers, ..
        } = &mut self;
        let timings = [latency, service, wait, failed_latency, first_message, reply, flow];
        let of_steps = steps.iter_mut().map(|step| &mut step.latency);
        let of_servers = servers.iter_mut().map(|server| &mut server.latency);
        for timing in timings.into_iter().chain(of_steps).chain(of_servers).flatten() {
            timing.histogram = Histogram::default();
        }
        for interval in &mut self.intervals {
            (interval.histogram, interval.reply_histogram) = (None, None);
        }
        self
    }

    /// Returns whether the figures measure the server.
    pub fn is_valid(&self) -> bool {
        self.not_valid.is_valid()
    }
}

#[cfg(test)]
impl LoadRun {
    /// Returns a run with 100 calls and no other figures.
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
    fn connections_are_counted_as_requested() {
        let check = |lanes, to_each_server, expected: [&str; 2]| {
            let (targets, connections) = (vec!["a:1,b:1".to_owned(), "c:1".to_owned()], 4);
            let run = LoadRun { targets, connections, lanes, to_each_server, ..LoadRun::of_tests() };
            assert_eq!([run.requested_connections(), run.connections_phrase()], expected);
        };
        check(None, false, ["4 requested", "4 connections"]);
        check(Some(LaneRule::Fixed), true, ["2 requested to each server", "2 connections to each server"]);
        check(Some(LaneRule::Adaptive), true, ["adaptive", "adaptive connections"]);
        check(Some(LaneRule::PerCall), false, ["one for each call", "a connection for each call"]);
    }

    #[test]
    fn invalidating_notes_of_schema_1_become_reasons() {
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
