//! Origin of a measurement, as pages show it.

use thalweg_measure::figures::span;
use thalweg_measure::machine::{Machine, Versions};
use thalweg_measure::page::parts::{command_line, duration_between};
use thalweg_measure::wording::counted;

use crate::study::StudyResults;

/// Name of the fact that gives the command.
pub(crate) const COMMAND: &str = "Command";

/// When, where and with which versions a study was measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin<'r> {
    /// RFC 3339 timestamps.
    pub(crate) started: &'r str,
    pub(crate) ended: &'r str,
    pub(crate) machine: &'r Machine,
    pub(crate) versions: &'r Versions,
    pub(crate) schema: &'r str,
    /// Arguments that repeat it.
    pub(crate) arguments: &'r [String],
}

/// Names and their values.
pub(crate) type Facts = Vec<(&'static str, String)>;

impl<S, T> StudyResults<S, T> {
    /// Returns the study's origin. `arguments` repeat the study.
    pub(crate) fn origin<'r>(&'r self, arguments: &'r [String]) -> Origin<'r> {
        let Self { started, ended, machine, versions, schema, .. } = self;
        Origin { started, ended, machine, versions, schema, arguments }
    }
}

impl Origin<'_> {
    /// Returns the machine, such as `Xeon with 2 cores, Linux 6.1`.
    pub(crate) fn machine_text(&self) -> String {
        let Machine { cpu, cores, kernel, .. } = self.machine;
        format!("{cpu} with {}, {kernel}", counted(*cores as u64, "core"))
    }

    /// Returns the facts on every page, with a page's `own` facts added.
    pub(crate) fn facts(&self, own: Facts) -> Facts {
        let Self { started, ended, machine, versions, schema, arguments } = self;
        let memory = match machine.memory_bytes {
            0 => "unknown".to_owned(),
            bytes => format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
        };
        let words = std::iter::once("thalweg".to_owned()).chain(arguments.iter().cloned());
        let mut facts = vec![
            (COMMAND, command_line(words)),
            ("Started", (*started).to_owned()),
            ("Took", duration_between(started, ended).map(span).unwrap_or_default()),
        ];
        facts.extend(own);
        facts.extend([
            ("Processor", machine.cpu.clone()),
            ("Processors", processors(machine)),
            ("Memory", memory),
            ("Kernel", machine.kernel.clone()),
            ("Congestion control", machine.tcp_congestion.clone()),
            ("thalweg", format!("{} ({} build)", versions.thalweg, versions.build)),
            ("Schema", (*schema).to_owned()),
        ]);
        facts
    }
}

/// Describes the processors as far as known: `16: 8 cores of 2 threads, 1 socket, 3.0 GHz, governor performance`.
fn processors(machine: &Machine) -> String {
    let Machine { cores: processors, physical_cores, sockets, mhz, governor, .. } = machine;
    let mut parts = Vec::new();
    if *physical_cores > 0 {
        parts.push(match processors / physical_cores {
            0 | 1 => counted(*physical_cores as u64, "core"),
            threads => format!("{} of {threads} threads", counted(*physical_cores as u64, "core")),
        });
    }
    if *sockets > 0 {
        parts.push(counted(*sockets as u64, "socket"));
    }
    if *mhz > 0.0 {
        parts.push(format!("{:.2} GHz before the study", mhz / 1000.0));
    }
    if !governor.is_empty() {
        parts.push(format!("governor {governor}"));
    }
    if parts.is_empty() { processors.to_string() } else { format!("{processors}: {}", parts.join(", ")) }
}
