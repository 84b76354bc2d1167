//! Merged windows of each endpoint and case.

use thalweg_measure::distribution::{Latency, longer_than, merged};
use thalweg_measure::figures::ratio_figure;
use thalweg_measure::statistics::{Ratio, geometric_mean};

use super::case::Case;
use super::endpoint::Endpoint;
use super::noise::JsonNoise;
use super::results::JsonResults;
use super::window::{Purpose, WindowResult};
use crate::load::gathered::distinct;
use crate::load::paired::ratio_by_round;
use crate::load::used::used;
use crate::load::verdict::{Better, JudgedRatio};
use crate::record::{LoadResult, Spike};

/// Multiple of the median above which a call is a spike.
pub(crate) const SPIKE_FACTOR: u64 = 10;

/// Cells in the order of measuring.
#[derive(Debug)]
pub(crate) struct Cells {
    pub(crate) all: Vec<EndpointCell>,
    pub(crate) noise: JsonNoise,
}

/// One endpoint at one case.
#[derive(Clone, Debug)]
pub(crate) struct EndpointCell {
    pub(crate) endpoint: Endpoint,
    pub(crate) case: Case,
    /// One call at a time.
    pub(crate) latency: Option<Latencies>,
    /// Maximum rate of the server.
    pub(crate) rate: Option<Rates>,
    /// First calls of a server.
    pub(crate) cold: Option<Cold>,
}

/// Results of one call at a time.
#[derive(Clone, Debug)]
pub(crate) struct Latencies {
    pub(crate) calls: u64,
    /// Latency over all calls of all windows.
    pub(crate) all: Latency,
    /// Number of calls that took more than [`SPIKE_FACTOR`] times their median.
    pub(crate) spikes: u64,
    /// Windows in the order of measuring.
    pub(crate) windows: Vec<LatencyWindow>,
    /// Stages that the server reports.
    pub(crate) stages: Vec<StageMean>,
    /// Body sizes of a request and a response, in bytes.
    pub(crate) bodies: (u64, u64),
    /// Processor time per call of client and server, ns.
    pub(crate) cpu_ns: Option<(f64, f64)>,
}

/// One window of lone calls.
#[derive(Clone, Debug)]
pub(crate) struct LatencyWindow {
    pub(crate) round: u32,
    /// Length of the window, ns.
    pub(crate) took_ns: u64,
    pub(crate) p50: u64,
    pub(crate) p99: u64,
    /// Its longest calls, longest first.
    pub(crate) longest: Vec<Spike>,
}

/// Mean time of a stage, ns.
#[derive(Clone, Debug)]
pub(crate) struct StageMean {
    pub(crate) name: String,
    pub(crate) mean: f64,
}

/// Results at the server's maximum rate.
#[derive(Clone, Debug)]
pub(crate) struct Rates {
    /// Calls per second, the geometric mean of the windows.
    pub(crate) per_s: f64,
    /// Round and rate of each window.
    pub(crate) windows: Vec<(u32, f64)>,
    /// Processor time per call of client and server, ns.
    pub(crate) cpu_ns: Option<(f64, f64)>,
}

/// First calls that a server handles, over all its starts.
#[derive(Clone, Debug)]
pub(crate) struct Cold {
    /// The very first call, connecting included, ns: the median over the starts.
    pub(crate) first_ns: u64,
    /// Number of calls after it in each start.
    pub(crate) calls: u64,
    /// Latency of the calls after the first.
    pub(crate) next: Latency,
    /// Stages that the server reports.
    stages: Vec<StageMean>,
    pub(crate) starts: Vec<ServerStart>,
}

/// Calls after the first of one server start. Means, ns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerStart {
    pub(crate) round: u32,
    pub(crate) all: f64,
    /// Time of a request, as defined by the publication.
    pub(crate) request: f64,
    /// Time of a response, as defined by the publication.
    pub(crate) response: f64,
}

/// Stages of the published request time, until the handler has the message.
const REQUEST: [&str; 3] = ["client-encode", "request", "decode"];
/// Stages of the published response time, from the handler on.
const RESPONSE: [&str; 3] = ["encode", "response", "client-decode"];

impl Cold {
    /// Returns the mean request time as published, ns.
    pub(crate) fn request(&self) -> f64 {
        sum(&self.stages, REQUEST)
    }

    /// Returns the mean response time as published, ns.
    pub(crate) fn response(&self) -> f64 {
        sum(&self.stages, RESPONSE)
    }
}

impl Cold {
    /// Returns this endpoint's figure divided by another's, paired by start.
    pub(crate) fn ratio(&self, other: &Self, of: fn(&ServerStart) -> f64) -> Option<Ratio> {
        let of_starts = |cold: &Self| -> Vec<(u32, f64)> {
            cold.starts.iter().map(|start| (start.round, of(start))).collect()
        };
        ratio_by_round(&of_starts(self), &of_starts(other))
    }
}

fn sum(stages: &[StageMean], names: [&str; 3]) -> f64 {
    stages.iter().filter(|stage| names.contains(&stage.name.as_str())).map(|stage| stage.mean).sum()
}

impl Cells {
    pub(crate) fn of(results: &JsonResults) -> Self {
        let all = distinct(results.windows.iter().map(|it| (&it.window.endpoint, it.window.case)));
        let all = all.into_iter().map(|(endpoint, case)| cell(results, endpoint, case)).collect();
        Self { noise: JsonNoise::of(results), all }
    }

    /// Returns the cell of an endpoint at a case.
    pub(crate) fn at(&self, endpoint: &Endpoint, case: Case) -> Option<&EndpointCell> {
        self.all.iter().find(|cell| cell.endpoint == *endpoint && cell.case == case)
    }

    /// Returns all cells of a case, in the order of measuring.
    pub(crate) fn of_case(&self, case: Case) -> impl Iterator<Item = &EndpointCell> {
        self.all.iter().filter(move |cell| cell.case == case)
    }

    /// Compares the time of one call at a time.
    pub(crate) fn latency_ratio(&self, one: &EndpointCell, other: &EndpointCell) -> JudgedRatio {
        let medians = |cell: &EndpointCell| cell.latency.as_ref().map(Latencies::medians).unwrap_or_default();
        JudgedRatio::new(
            ratio_by_round(&medians(one), &medians(other)),
            self.noise.floor(Purpose::Latency, one.case),
            Better::Less,
        )
    }

    /// Returns the time ratio of cells measured far apart in time, as text. It has no interval, and shows no
    /// difference within the noise floor.
    pub(crate) fn unpaired_ratio(&self, one: &EndpointCell, other: &EndpointCell) -> Option<String> {
        let ratio = one.p50()? / other.p50()?;
        let is_noise = ratio.ln().abs() <= self.noise.floor(Purpose::Latency, one.case);
        let amounts_to = if is_noise { " (no difference is shown)" } else { "" };
        Some(format!("{} ×{amounts_to}", ratio_figure(ratio)))
    }

    /// Compares the servers' calls per second.
    pub(crate) fn rate_ratio(&self, one: &EndpointCell, other: &EndpointCell) -> JudgedRatio {
        let windows =
            |cell: &'_ EndpointCell| cell.rate.as_ref().map(|it| it.windows.clone()).unwrap_or_default();
        JudgedRatio::new(
            ratio_by_round(&windows(one), &windows(other)),
            self.noise.floor(Purpose::Rate, one.case),
            Better::More,
        )
    }
}

impl EndpointCell {
    /// Returns the median time of one call at a time, ns.
    pub(crate) fn p50(&self) -> Option<f64> {
        self.latency.as_ref().map(|latency| latency.all.p50 as f64)
    }

    /// Returns the server's maximum calls per second.
    pub(crate) fn per_s(&self) -> Option<f64> {
        self.rate.as_ref().map(|rate| rate.per_s)
    }

    /// Returns the body sizes of a request and a response, in bytes.
    pub(crate) fn bodies(&self) -> Option<(f64, f64)> {
        let (there, back) = self.latency.as_ref()?.bodies;
        Some((there as f64, back as f64))
    }

    /// Returns the bytes of both bodies.
    pub(crate) fn bytes(&self) -> Option<f64> {
        self.bodies().map(|(there, back)| there + back)
    }

    /// Returns the mean time of a stage, ns; 0 if the server does not report it separately.
    pub(crate) fn stage(&self, name: &str) -> f64 {
        let stages = self.latency.iter().flat_map(|latency| &latency.stages);
        stages.filter(|stage| stage.name == name).map(|stage| stage.mean).sum()
    }
}

impl Latencies {
    /// Returns the mean request time as published, until the handler has the message, ns.
    pub(crate) fn request(&self) -> f64 {
        sum(&self.stages, REQUEST)
    }

    /// Returns the mean response time as published, from the handler on, ns.
    pub(crate) fn response(&self) -> f64 {
        sum(&self.stages, RESPONSE)
    }

    /// Returns the longest calls of all windows, each with its zero-based window number.
    pub(crate) fn late_calls(&self) -> impl Iterator<Item = (usize, &Spike)> {
        self.windows
            .iter()
            .zip(0..)
            .flat_map(|(window, number)| window.longest.iter().map(move |call| (number, call)))
    }

    /// Returns the round and median of each window, in ns.
    fn medians(&self) -> Vec<(u32, f64)> {
        self.windows.iter().map(|window| (window.round, window.p50 as f64)).collect()
    }
}

fn cell(results: &JsonResults, endpoint: &Endpoint, case: Case) -> EndpointCell {
    let of = |purpose: Purpose| -> Vec<&WindowResult> {
        let is_of = |it: &&WindowResult| {
            it.window.endpoint == *endpoint
                && it.window.case == case
                && it.window.purpose == purpose
                && !it.window.is_duplicate
                && !it.window.is_noise_baseline
        };
        results.windows.iter().filter(is_of).collect()
    };
    EndpointCell {
        endpoint: endpoint.clone(),
        case,
        latency: latencies(&of(Purpose::Latency)),
        rate: rates(&of(Purpose::Rate)),
        cold: cold(&of(Purpose::Cold)),
    }
}

fn latencies(windows: &[&WindowResult]) -> Option<Latencies> {
    let good: Vec<(&WindowResult, &LoadResult)> =
        windows.iter().filter_map(|&window| Some((window, window.valid()?))).collect();
    let all = merged(good.iter().filter_map(|(_, load)| Some((&load.histogram, load.latency_ns?))))?;
    let of_window = |(window, load): &(&WindowResult, &LoadResult)| {
        let latency = load.latency_ns?;
        Some(LatencyWindow {
            round: window.window.round,
            took_ns: load.duration_ns,
            p50: latency.p50,
            p99: latency.p99,
            longest: load.spikes.clone(),
        })
    };
    let loads = || good.iter().map(|(_, load)| *load);
    let calls: u64 = loads().map(|load| load.messages).sum();
    let spikes = longer_than(SPIKE_FACTOR * all.p50, loads().map(|load| &load.histogram))?;
    Some(Latencies {
        calls,
        all,
        spikes,
        windows: good.iter().filter_map(of_window).collect(),
        stages: stages(&loads()),
        bodies: (
            loads().map(|load| load.bytes_sent).sum::<u64>() / calls.max(1),
            loads().map(|load| load.bytes_received).sum::<u64>() / calls.max(1),
        ),
        cpu_ns: cpu(&good),
    })
}

/// Returns the stages in the order of a call.
fn stages<'l>(loads: &(impl Iterator<Item = &'l LoadResult> + Clone)) -> Vec<StageMean> {
    let stage = |name: &str| {
        let of_name = loads.clone().flat_map(|load| &load.stages).filter(|stage| stage.name == name);
        let all = merged(of_name.map(|stage| (&stage.histogram, stage.latency_ns)))?;
        Some(StageMean { name: name.to_owned(), mean: all.mean })
    };
    crate::echo::STAGES.into_iter().filter_map(stage).collect()
}

fn rates(windows: &[&WindowResult]) -> Option<Rates> {
    let good: Vec<(&WindowResult, &LoadResult)> =
        windows.iter().filter_map(|&window| Some((window, window.valid()?))).collect();
    let of_windows: Vec<(u32, f64)> =
        good.iter().map(|(window, load)| (window.window.round, load.rate_per_s)).collect();
    (!of_windows.is_empty()).then(|| Rates {
        per_s: geometric_mean(of_windows.iter().map(|window| window.1)),
        windows: of_windows,
        cpu_ns: cpu(&good),
    })
}

/// Returns the processor time per call of both sides.
fn cpu(good: &[(&WindowResult, &LoadResult)]) -> Option<(f64, f64)> {
    let windows = || good.iter().filter_map(|(window, load)| Some((window.usage?, load.messages)));
    Some((used(windows(), |usage| &usage.client)?.ns(), used(windows(), |usage| &usage.server)?.ns()))
}

fn cold(windows: &[&WindowResult]) -> Option<Cold> {
    let good: Vec<(u32, &LoadResult)> =
        windows.iter().filter_map(|window| Some((window.window.round, window.valid()?))).collect();
    let loads = || good.iter().map(|(_, load)| *load);
    let next = merged(loads().filter_map(|load| Some((&load.histogram, load.latency_ns?))))?;
    let mut firsts: Vec<u64> = loads().filter_map(|load| load.first_call_ns).collect();
    firsts.sort_unstable();
    let start = |(round, load): &(u32, &LoadResult)| {
        let stages = stages(&std::iter::once(*load));
        let (request, response) = (sum(&stages, REQUEST), sum(&stages, RESPONSE));
        Some(ServerStart { round: *round, all: load.latency_ns?.mean, request, response })
    };
    Some(Cold {
        first_ns: *firsts.get(firsts.len() / 2)?,
        calls: loads().map(|load| load.messages).max()?,
        next,
        stages: stages(&loads()),
        starts: good.iter().filter_map(start).collect(),
    })
}
