//! The schema `thalweg.load/3`.

use std::collections::BTreeMap;
use std::ops::Sub;
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Serializer, V2Serializer};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::Serialize;

use super::Settings;
use super::record::{Latency, Pace, Recorder, Spike};

#[derive(Serialize)]
pub struct LoadResult {
    schema: &'static str,
    pub settings: LoadSettings,
    /// RFC 3339, UTC, nanoseconds; the same for `ended`.
    started: String,
    ended: String,
    duration_ns: u64,
    drain_ns: u64,
    closed_loop: bool,
    rate_per_s: f64,
    calls: u64,
    pub messages: u64,
    errors: BTreeMap<&'static str, u64>,
    bytes_sent: u64,
    bytes_received: u64,
    latency_ns: Option<Latency>,
    pace_ns: Option<Pace>,
    spikes: Vec<Spike>,
    /// HdrHistogram V2 in base64.
    histogram: String,
    client_cpu: CpuTime,
    client_cpu_per_call: Option<CpuTime>,
    connections: Connections,
    pub notes: Vec<Note>,
}

#[derive(Serialize)]
pub struct LoadSettings {
    target: String,
    call: &'static str,
    size_bytes: u64,
    in_flight: u32,
    connections: u32,
    pub warmup_ns: u64,
    duration_ns: Option<u64>,
    total: Option<u64>,
    /// Always `None`: the starting process pins this one.
    cpus: Option<String>,
}

/// CPU time in ns.
#[derive(Clone, Copy, Default, Serialize)]
pub struct CpuTime {
    pub user_ns: f64,
    pub system_ns: f64,
}

#[derive(Serialize)]
struct Connections {
    #[serde(rename = "asked")]
    requested: u32,
    /// Number of connections seen by the kernel.
    established: Option<u32>,
}

/// A note that readers of the figures must know.
#[derive(Serialize)]
pub struct Note {
    pub text: String,
    /// The figures must not be used as a measure of the server.
    pub invalidates: bool,
}

impl LoadResult {
    pub fn new(
        settings: &Settings,
        recorder: Recorder,
        started: SystemTime,
        (duration, drain): (Duration, Duration),
        client_cpu: CpuTime,
    ) -> Self {
        let messages = recorder.operations();
        let (sent, received) = settings.call.payloads();
        let seconds = duration.as_secs_f64();
        let per_call = |ns: f64| ns / messages as f64;
        let (user_ns, system_ns) = (per_call(client_cpu.user_ns), per_call(client_cpu.system_ns));
        Self {
            schema: "thalweg.load/3",
            settings: LoadSettings {
                target: settings.target.to_string(),
                call: settings.call.name(),
                size_bytes: settings.size as u64,
                in_flight: settings.in_flight,
                connections: settings.connections,
                warmup_ns: settings.warmup_ns,
                duration_ns: settings.duration_ns,
                total: settings.total,
                cpus: None,
            },
            started: humantime::format_rfc3339_nanos(started).to_string(),
            ended: humantime::format_rfc3339_nanos(started + duration).to_string(),
            duration_ns: duration.as_nanos() as u64,
            drain_ns: drain.as_nanos() as u64,
            closed_loop: true,
            rate_per_s: if seconds > 0.0 { messages as f64 / seconds } else { 0.0 },
            calls: recorder.calls,
            messages,
            latency_ns: recorder.latency(),
            pace_ns: recorder.pace(),
            histogram: histogram(&recorder),
            errors: recorder.errors,
            bytes_sent: messages * sent * settings.size as u64,
            bytes_received: messages * received * settings.size as u64,
            spikes: recorder.spikes,
            client_cpu,
            client_cpu_per_call: (messages > 0).then_some(CpuTime { user_ns, system_ns }),
            connections: Connections { requested: settings.connections, established: None },
            notes: Vec::new(),
        }
    }

    pub fn note(&mut self, text: String, invalidates: bool) {
        self.notes.push(Note { text, invalidates });
    }

    /// Stores the number of connections that the kernel saw; `None` if unknown.
    pub fn count_connections(&mut self, established: Option<u32>) {
        self.connections.established = established;
        let requested = self.connections.requested;
        match established {
            None => {
                self.note("the kernel could not be asked for the number of connections".to_owned(), false)
            }
            Some(established) if established != requested => {
                self.note(
                    format!("connections: {requested} requested, {established} in the kernel's tables"),
                    false,
                );
            }
            Some(_) => {}
        }
    }

    /// Formats the result for people.
    pub fn line(&self) -> String {
        let microseconds = |ns: u64| ns as f64 / 1e3;
        let latency = self.latency_ns.as_ref().map_or(String::new(), |latency| {
            format!(", p50 {:.1} µs, p99 {:.1} µs", microseconds(latency.p50), microseconds(latency.p99))
        });
        format!("{:.0} a second{latency}, errors {:?}", self.rate_per_s, self.errors)
    }
}

impl CpuTime {
    /// Returns the CPU time of this process so far; zero if the kernel does not report it.
    pub fn of_this_process() -> Self {
        getrusage(UsageWho::RUSAGE_SELF).map_or_else(
            |_| Self::default(),
            |usage| Self {
                user_ns: usage.user_time().num_nanoseconds() as f64,
                system_ns: usage.system_time().num_nanoseconds() as f64,
            },
        )
    }
}

impl Sub for CpuTime {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self { user_ns: self.user_ns - earlier.user_ns, system_ns: self.system_ns - earlier.system_ns }
    }
}

fn histogram(recorder: &Recorder) -> String {
    let mut bytes = Vec::new();
    V2Serializer::new().serialize(&recorder.latencies, &mut bytes).expect("writing to a Vec does not fail");
    STANDARD.encode(bytes)
}
