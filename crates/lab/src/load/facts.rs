//! Where a study of calls was measured, and with what.

use thalweg_measure::cpus::CpuList;
use thalweg_measure::figures::span;
use thalweg_measure::machine::Machine;
use thalweg_measure::page::parts::took;
use thalweg_measure::wording::counted;

use super::results::LabResults;
use crate::report::page::command_fact;
use crate::stack::Pair;
use crate::study::StudyKind;

/// What was measured on which machine.
pub(crate) fn lede(results: &LabResults) -> String {
    let machine = &results.machine;
    let cores = if machine.cores == 1 { "core" } else { "cores" };
    let at_both_ends = if results.study == StudyKind::Connections {
        let stacks: Vec<&str> = results.stacks.iter().map(|info| info.version.as_str()).collect();
        format!("{}, all with the same load", stacks.join(", "))
    } else if results.is_comparison() || results.is_channels() {
        let stacks: Vec<&str> = results.stacks.iter().map(|info| info.version.as_str()).collect();
        let pairs =
            if results.reference() == Pair::ours() { ", each with its own client and server" } else { "" };
        format!("{}{pairs}", stacks.join(", "))
    } else {
        format!("thalweg {} at both ends", results.versions.thalweg)
    };
    format!("{at_both_ends}, on {} with {} {cores}, {}.", machine.cpu, machine.cores, machine.kernel)
}

/// Names, and what they are.
pub(crate) fn facts(results: &LabResults) -> Vec<(&'static str, String)> {
    let (machine, settings, versions) = (&results.machine, &results.settings, &results.versions);
    let memory = match machine.memory_bytes {
        0 => "unknown".to_owned(),
        bytes => format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
    };
    vec![
        command_fact(&settings.arguments),
        ("Started", results.started.clone()),
        ("Took", took(&results.started, &results.ended).map(span).unwrap_or_default()),
        ("Windows", format!("{} of {}", results.points.len(), results.planned)),
        ("Processor", machine.cpu.clone()),
        ("Processors", processors(machine)),
        ("Memory", memory),
        ("Kernel", machine.kernel.clone()),
        ("Congestion control", machine.tcp_congestion.clone()),
        ("thalweg", format!("{} ({} build)", versions.thalweg, versions.build)),
        ("Schema", results.schema.clone()),
    ]
}

/// On which processors clients and servers were kept, in a sentence.
pub(crate) fn pinned(client: Option<&CpuList>, server: Option<&CpuList>) -> String {
    match (client, server) {
        (Some(client), Some(server)) => {
            format!("Clients are kept on the processors {client}, servers on {server}.")
        }
        _ => "Client and server share the processors.".to_owned(),
    }
}

/// `16: 8 cores of 2 threads, 1 socket, 3.0 GHz, governor performance`, as far as it is known.
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
