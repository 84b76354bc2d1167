//! What all windows of a way at a case came to.

use thalweg_measure::distribution::{Latency, longer_than, merged};
use thalweg_measure::figures::ratio_figure;
use thalweg_measure::statistics::{Ratio, geometric_mean};

use super::case::Case;
use super::noise::JsonNoise;
use super::results::JsonResults;
use super::way::Way;
use super::window::{Purpose, WindowResult};
use crate::load::gathered::distinct;
use crate::load::paired::ratio_by_round;
use crate::load::used::used;
use crate::load::verdict::{Better, Compared};
use crate::record::{LoadResult, Spike};

/// A call that took more than so many times the median is a spike.
pub(crate) const SPIKE_FACTOR: u64 = 10;

/// All cells, in the order of measuring.
#[derive(Debug)]
pub(crate) struct Cells {
    pub(crate) all: Vec<WayCell>,
    pub(crate) noise: JsonNoise,
}

/// A way at a case.
#[derive(Clone, Debug)]
pub(crate) struct WayCell {
    pub(crate) way: Way,
    pub(crate) case: Case,
    /// One call at a time.
    pub(crate) latency: Option<Latencies>,
    /// As many as the server takes.
    pub(crate) rate: Option<Rates>,
    /// The first calls of a server.
    pub(crate) cold: Option<Cold>,
}

/// One call at a time.
#[derive(Clone, Debug)]
pub(crate) struct Latencies {
    pub(crate) calls: u64,
    /// Of all calls of all windows.
    pub(crate) all: Latency,
    /// How many of them took more than [`SPIKE_FACTOR`] times their median.
    pub(crate) spikes: u64,
    /// In the order of measuring.
    pub(crate) windows: Vec<LatencyWindow>,
    /// Of those that the server showed.
    pub(crate) stages: Vec<StageMean>,
    /// Bytes of a request's body and of an answer's.
    pub(crate) bodies: (u64, u64),
    /// Processor time of a call, ns: the client's and the server's.
    pub(crate) cpu_ns: Option<(f64, f64)>,
}

/// One window of lone calls.
#[derive(Clone, Debug)]
pub(crate) struct LatencyWindow {
    pub(crate) round: u32,
    /// How long it was, ns.
    pub(crate) took_ns: u64,
    pub(crate) p50: u64,
    pub(crate) p99: u64,
    /// Its longest calls, the longest first.
    pub(crate) longest: Vec<Spike>,
}

/// What a stage of a call took, ns.
#[derive(Clone, Debug)]
pub(crate) struct StageMean {
    pub(crate) name: String,
    pub(crate) mean: f64,
}

/// As many calls as the server takes.
#[derive(Clone, Debug)]
pub(crate) struct Rates {
    /// Calls per second: the geometric mean of the windows.
    pub(crate) per_s: f64,
    /// Of each window, and its round.
    pub(crate) windows: Vec<(u32, f64)>,
    /// Processor time of a call, ns: the client's and the server's.
    pub(crate) cpu_ns: Option<(f64, f64)>,
}

/// The first calls that a server ever saw, of all its starts.
#[derive(Clone, Debug)]
pub(crate) struct Cold {
    /// The very first, with its connecting, ns: the median of the starts.
    pub(crate) first_ns: u64,
    /// How many are behind it after each start.
    pub(crate) calls: u64,
    /// Those after it.
    pub(crate) next: Latency,
    /// Of those that the server showed.
    stages: Vec<StageMean>,
    pub(crate) starts: Vec<ServerStart>,
}

/// The calls after the first of one start of a server. Means, ns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerStart {
    pub(crate) round: u32,
    pub(crate) all: f64,
    /// What is published as the time of a request.
    pub(crate) request: f64,
    /// What is published as the time of a response.
    pub(crate) response: f64,
}

/// The stages of what is published as the time of a request: until the handler has it.
const REQUEST: [&str; 3] = ["client-encode", "request", "decode"];
/// Of what is published as the time of a response: from the handler on.
const RESPONSE: [&str; 3] = ["encode", "response", "client-decode"];

impl Cold {
    /// What is published as the time of a request. Mean, ns.
    pub(crate) fn request(&self) -> f64 {
        sum(&self.stages, REQUEST)
    }

    /// What is published as the time of a response. Mean, ns.
    pub(crate) fn response(&self) -> f64 {
        sum(&self.stages, RESPONSE)
    }
}

impl Cold {
    /// How many times another way's figure this one's is, start by start.
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
        let all = distinct(results.windows.iter().map(|it| (&it.window.way, it.window.case)));
        let all = all.into_iter().map(|(way, case)| cell(results, way, case)).collect();
        Self { noise: JsonNoise::of(results), all }
    }

    /// What a way came to at a case.
    pub(crate) fn at(&self, way: &Way, case: Case) -> Option<&WayCell> {
        self.all.iter().find(|cell| cell.way == *way && cell.case == case)
    }

    /// All ways at a case, in the order of measuring.
    pub(crate) fn of_case(&self, case: Case) -> impl Iterator<Item = &WayCell> {
        self.all.iter().filter(move |cell| cell.case == case)
    }

    /// How much longer `one` takes than `other`, one call at a time.
    pub(crate) fn latency_ratio(&self, one: &WayCell, other: &WayCell) -> Compared {
        let medians = |cell: &WayCell| cell.latency.as_ref().map(Latencies::medians).unwrap_or_default();
        Compared::new(
            ratio_by_round(&medians(one), &medians(other)),
            self.noise.floor(Purpose::Latency, one.case),
            Better::Less,
        )
    }

    /// The same of cells that stand apart in time, so that their ratio has no interval, in words; within the noise
    /// floor it shows no difference.
    pub(crate) fn apart(&self, one: &WayCell, other: &WayCell) -> Option<String> {
        let ratio = one.p50()? / other.p50()?;
        let is_noise = ratio.ln().abs() <= self.noise.floor(Purpose::Latency, one.case);
        let amounts_to = if is_noise { " (no difference is shown)" } else { "" };
        Some(format!("{} ×{amounts_to}", ratio_figure(ratio)))
    }

    /// How many more calls `one`'s server takes than `other`'s.
    pub(crate) fn rate_ratio(&self, one: &WayCell, other: &WayCell) -> Compared {
        let windows = |cell: &'_ WayCell| cell.rate.as_ref().map(|it| it.windows.clone()).unwrap_or_default();
        Compared::new(
            ratio_by_round(&windows(one), &windows(other)),
            self.noise.floor(Purpose::Rate, one.case),
            Better::More,
        )
    }
}

impl WayCell {
    /// The median of one call at a time, ns.
    pub(crate) fn p50(&self) -> Option<f64> {
        self.latency.as_ref().map(|latency| latency.all.p50 as f64)
    }

    /// Calls per second, as many as the server takes.
    pub(crate) fn per_s(&self) -> Option<f64> {
        self.rate.as_ref().map(|rate| rate.per_s)
    }

    /// Bytes of a request's body and of an answer's.
    pub(crate) fn bodies(&self) -> Option<(f64, f64)> {
        let (there, back) = self.latency.as_ref()?.bodies;
        Some((there as f64, back as f64))
    }

    /// Bytes of both bodies.
    pub(crate) fn bytes(&self) -> Option<f64> {
        self.bodies().map(|(there, back)| there + back)
    }

    /// The mean of a stage, ns; 0 where the server does not show it apart from the way.
    pub(crate) fn stage(&self, name: &str) -> f64 {
        let stages = self.latency.iter().flat_map(|latency| &latency.stages);
        stages.filter(|stage| stage.name == name).map(|stage| stage.mean).sum()
    }
}

impl Latencies {
    /// What is published as the time of a request: until the handler has it. Mean, ns.
    pub(crate) fn request(&self) -> f64 {
        sum(&self.stages, REQUEST)
    }

    /// What is published as the time of a response: from the handler on. Mean, ns.
    pub(crate) fn response(&self) -> f64 {
        sum(&self.stages, RESPONSE)
    }

    /// The longest calls of all windows, each with its window's number, from 0.
    pub(crate) fn late_calls(&self) -> impl Iterator<Item = (usize, &Spike)> {
        self.windows
            .iter()
            .zip(0..)
            .flat_map(|(window, number)| window.longest.iter().map(move |call| (number, call)))
    }

    /// The median of each window, ns, and its round.
    fn medians(&self) -> Vec<(u32, f64)> {
        self.windows.iter().map(|window| (window.round, window.p50 as f64)).collect()
    }
}

fn cell(results: &JsonResults, way: &Way, case: Case) -> WayCell {
    let of = |purpose: Purpose| -> Vec<&WindowResult> {
        let is_of = |it: &&WindowResult| {
            it.window.way == *way
                && it.window.case == case
                && it.window.purpose == purpose
                && !it.window.again
                && !it.window.for_noise
        };
        results.windows.iter().filter(is_of).collect()
    };
    WayCell {
        way: way.clone(),
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

/// In the order in which a call goes through them.
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

/// Of a call, both sides.
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
