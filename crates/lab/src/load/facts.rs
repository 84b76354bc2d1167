//! Text on where and with which stacks a study of calls was measured.

use thalweg_measure::cpus::CpuList;

use super::results::LabResults;
use crate::stack::Pair;
use crate::study::StudyKind;

/// Returns a sentence on what was measured and on which machine.
pub(crate) fn lede(results: &LabResults) -> String {
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
    format!("{at_both_ends}, on {}.", results.origin(&results.settings.arguments).machine_text())
}

/// Returns a sentence on the processors that clients and servers were pinned to.
pub(crate) fn pinned(client: Option<&CpuList>, server: Option<&CpuList>) -> String {
    match (client, server) {
        (Some(client), Some(server)) => {
            format!("Clients are pinned to processors {client}, servers to {server}.")
        }
        _ => "Client and server share the processors.".to_owned(),
    }
}
