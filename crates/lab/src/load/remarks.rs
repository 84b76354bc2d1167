//! Remarks on windows of calls, and doubts about a study's figures from the machine and the build.

use std::fmt;

use thalweg_measure::figures::{percent, time};
use thalweg_measure::machine::{Machine, Versions};
use thalweg_measure::validity::{Cause, Validity};
use thalweg_measure::wording::counted;

use super::gathered::without_figures;
use crate::findings::Doubt;
use crate::record::{LoadResult, Note};

/// A wait is unusually long beyond this share of the window and this multiple of the typical wait.
const LONG_SHARE: f64 = 0.25;
const LONG_FACTOR: f64 = 20.0;
/// Highest load per processor before the study at which the machine counts as idle.
const LOAD_PER_CORE_MAX: f64 = 0.5;

/// Remarks on windows. Those that differ only in their figures are merged, so one problem of a hundred windows is
/// reported once.
pub(crate) struct Remarks {
    all: Vec<Remark>,
    of: usize,
}

struct Remark {
    /// Severity: whether there are figures, and whether they may be used.
    weight: &'static str,
    /// The first affected window.
    window: String,
    text: String,
    count: usize,
}

impl Remarks {
    /// Creates remarks on a study of `of` windows.
    pub(crate) fn new(of: usize) -> Self {
        Self { all: Vec::new(), of }
    }

    /// Adds a remark on a window, with its result if there is one.
    pub(crate) fn window(
        &mut self,
        window: &dyn fmt::Display,
        measured: Option<&LoadResult>,
        validity: &Validity,
    ) {
        for reason in &validity.reasons {
            let is_measured = reason.cause != Cause::NotMeasured;
            let weight = if is_measured { "Not valid" } else { "Not measured" };
            self.add(weight, window, &reason.text);
        }
        let Some(measured) = measured else { return };
        for text in &interruptions(measured) {
            self.add("Note", window, text);
        }
        let is_told = |note: &&Note| validity.reasons.iter().any(|reason| reason.text == note.text);
        for note in measured.notes.iter().filter(|note| !is_told(note)) {
            self.add("Note", window, &note.text);
        }
    }

    fn add(&mut self, weight: &'static str, window: &dyn fmt::Display, text: &str) {
        let same = |remark: &&mut Remark| {
            remark.weight == weight && without_figures(&remark.text) == without_figures(text)
        };
        if let Some(remark) = self.all.iter_mut().find(same) {
            remark.count += 1;
            return;
        }
        self.all.push(Remark { weight, window: window.to_string(), text: text.to_owned(), count: 1 });
    }

    pub(crate) fn into_doubts(self) -> impl Iterator<Item = Doubt> {
        let all = counted(self.of as u64, "window");
        self.all.into_iter().map(move |Remark { weight, window, text, count }| {
            let number = if count == 1 { String::new() } else { format!(" in {count} of {all}, first in") };
            let colon = if count == 1 { ":" } else { "" };
            Doubt(format!("{weight}{number}{colon} {window}: {text}."))
        })
    }
}

/// Returns doubts about the build and about other programs that ran when the study started.
pub(crate) fn of_machine(machine: &Machine, versions: &Versions) -> Vec<Doubt> {
    let build = (versions.build != "release").then(|| Doubt::build(&versions.build));
    let is_busy = machine.load_average > LOAD_PER_CORE_MAX * machine.cores as f64;
    build.into_iter().chain(is_busy.then(|| Doubt::busy(machine.load_average, machine.cores))).collect()
}

/// Returns doubts about a study, given its tried and planned windows. `has_separate_cpus`: both sides had their own
/// processors.
pub(crate) fn of_study(
    windows: (usize, usize),
    machine: &Machine,
    versions: &Versions,
    has_separate_cpus: bool,
) -> Vec<Doubt> {
    let (done, planned) = windows;
    let mut doubts = Vec::new();
    if done < planned {
        doubts.push(Doubt::cut_short(done, planned));
    }
    doubts.extend(of_machine(machine, versions));
    if !has_separate_cpus {
        let text = "There is only one CPU: client and server competed for it.";
        doubts.push(Doubt(text.to_owned()));
    }
    if machine.is_paced() {
        doubts.push(Doubt(format!(
            "TCP congestion control is {}, which paces packets with a timer. Over loopback this slows streams by up \
             to 50 %, and varies between runs. Linux’s default is cubic: \
             `sysctl -w net.ipv4.tcp_congestion_control=cubic`.",
            machine.tcp_congestion
        )));
    }
    if machine.gives_memory_back {
        let text = "This virtual machine returns free memory to its host (free page reporting). Touching such a page \
                    again takes up to ten times as long, so windows that need fresh memory are slow for every stack.";
        doubts.push(Doubt(text.to_owned()));
    }
    doubts
}

/// Describes stalls that took a large part of a window or delayed its end, for example of a paused server or machine.
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
        interruptions.push(format!("stall: the longest wait was {took}, {share} of the window"));
    }
    if is_long(measured.drain_ns) {
        let (took, share) = (time(measured.drain_ns as f64), share(measured.drain_ns));
        interruptions.push(format!(
            "stall: calls unfinished at the end of the window took another {took} ({share} of it)"
        ));
    }
    interruptions
}
