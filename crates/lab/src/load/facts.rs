//! Where a study of calls was measured, and with what.

use thalweg_measure::cpus::CpuList;

use super::results::LabResults;
use crate::stack::Pair;
use crate::study::StudyKind;

/// What was measured on which machine.
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
    format!("{at_both_ends}, on {}.", results.origin(&results.settings.arguments).place())
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
