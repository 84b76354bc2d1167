//! What a reader must know before using the figures of a study of calls.

use super::gathered::without_figures;
use super::results::{LabResults, Outcome, PointResult};
use crate::figures::{percent, time};
use crate::findings::{Doubt, Remark, Weight};
use crate::record::LoadResult;
use crate::stack::Pair;

/// A wait beyond this share of a window, and so many times what is usual in it, is no part of what is usual.
const LONG_SHARE: f64 = 0.25;
const LONG_FACTOR: f64 = 20.0;
/// With more load than this on each processor before the study, something else was at work.
const LOAD_PER_CORE_MAX: f64 = 0.5;

/// What a reader must know before using the figures. Empty in a good study.
pub(crate) fn doubts(results: &LabResults) -> Vec<Doubt> {
    let (machine, settings) = (&results.machine, &results.settings);
    let mut doubts = Vec::new();
    if !results.is_complete() {
        doubts.push(Doubt::CutShort { done: results.points.len(), planned: results.planned });
    }
    if results.versions.build != "release" {
        doubts.push(Doubt::Build(results.versions.build.clone()));
    }
    if settings.client_cpus.is_none() && settings.target.is_none() {
        doubts.push(Doubt::OneProcessor);
    }
    if machine.load_average > LOAD_PER_CORE_MAX * machine.cores as f64 {
        doubts.push(Doubt::Busy { load_average: machine.load_average, cores: machine.cores });
    }
    let windows = results.aa.iter().map(|aa| &aa.window).chain(&results.points);
    let mut remarks = Remarks { all: Vec::new(), of: windows.clone().count() };
    for window in windows {
        match &window.outcome {
            Outcome::Failed(reason) => remarks.add(Weight::NotMeasured, window, reason),
            Outcome::Measured(measured) => {
                if measured.messages == 0 && measured.errors.is_empty() {
                    remarks.add(Weight::NotMeasured, window, "no operation ended in the measured time");
                }
                for (code, count) in &measured.errors {
                    remarks.add(Weight::CallsFailed, window, &format!("{count} with {code}"));
                }
                let disturbance = window.usage.and_then(|usage| usage.disturbance());
                if let Some(text) = &disturbance {
                    remarks.add(Weight::NotValid, window, text);
                }
                for text in &interruptions(measured) {
                    remarks.add(Weight::Note, window, text);
                }
                for note in &measured.notes {
                    let weight = if note.invalidates { Weight::NotValid } else { Weight::Note };
                    remarks.add(weight, window, &note.text);
                }
            }
        }
    }
    doubts.extend(remarks.all.into_iter().map(Doubt::Windows));
    doubts
}

/// What stopped calls for a large part of a window, within it or at its end: a server that was stopped, or a machine.
fn interruptions(measured: &LoadResult) -> Vec<String> {
    let window_ns = measured.duration_ns as f64;
    let (typical_ns, longest_ns) = match (measured.latency_ns, measured.pace_ns) {
        (Some(latency), _) => (latency.p50 as f64, latency.max),
        (None, Some(pace)) => (pace.between_readings_ns(), pace.gap_max),
        (None, None) => return Vec::new(),
    };
    let is_long = |ns: u64| ns as f64 > LONG_SHARE * window_ns && ns as f64 > LONG_FACTOR * typical_ns;
    let share = |ns: u64| percent(ns as f64 / window_ns);
    let mut interruptions = Vec::new();
    if is_long(longest_ns) {
        let (took, share) = (time(longest_ns as f64), share(longest_ns));
        interruptions.push(format!("something stopped: the longest wait, {took}, is {share} of the window"));
    }
    if is_long(measured.drain_ns) {
        let (took, share) = (time(measured.drain_ns as f64), share(measured.drain_ns));
        interruptions.push(format!(
            "something stopped: what was under way at the window's end took another {took}, {share} of it"
        ));
    }
    interruptions
}

/// Remarks on windows. Those that differ in their figures only are one, so that what is wrong with a hundred windows
/// is said once.
struct Remarks {
    all: Vec<Remark>,
    of: usize,
}

impl Remarks {
    fn add(&mut self, weight: Weight, window: &PointResult, text: &str) {
        let same = |remark: &&mut Remark| {
            remark.weight == weight && without_figures(&remark.text) == without_figures(text)
        };
        if let Some(remark) = self.all.iter_mut().find(same) {
            remark.count += 1;
            return;
        }
        let window = match &window.pair {
            Some(pair) if *pair != Pair::ours() => format!("{pair}, {}", window.point),
            _ => window.point.to_string(),
        };
        let (text, of) = (text.to_owned(), self.of);
        self.all.push(Remark { weight, window, text, count: 1, of });
    }
}
