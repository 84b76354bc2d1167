//! A connections study in a terminal: what a call costs by connections, and what new connections cost.

use thalweg_measure::page::table::Table;
use thalweg_measure::text::wrapped;

use super::analysis::ConnectionsAnalysis;
use super::columns::{arrivals, clients, servers};

/// The answer, the tables, and what they say.
pub(super) fn text(study: &ConnectionsAnalysis<'_>) -> String {
    let cells = &study.cells;
    let mut text = study.answer.as_deref().map(wrapped).unwrap_or_default();
    text += &titled(
        "servers under the bare client: processor time of a call, memory of an idle connection",
        &servers(cells),
        &[
            "Connections",
            "Active",
            "Calls on each",
            "Server",
            "Server time",
            "User",
            "Kernel",
            "÷ echo",
            "Ours ÷ it",
            "Server busy",
            "Client time",
            "Calls",
            "p50",
            "p90",
            "p95",
            "p99",
            "p99.9",
            "Jain’s index",
            "Idle memory",
        ],
    );
    text += &titled(
        "stacks’ own clients at their own servers: processor time of a call",
        &clients(cells),
        &[
            "Connections",
            "Active",
            "Calls on each",
            "Client",
            "Client time",
            "Server time",
            "Calls",
            "p50",
            "p95",
            "p99",
        ],
    );
    text += &titled(
        "new connections: each connects, makes a call, and ends",
        &arrivals(cells),
        &[
            "Server",
            "Connections",
            "Server time",
            "User",
            "Kernel",
            "Client time",
            "Ours ÷ it",
            "p50",
            "p95",
            "p99",
        ],
    );
    for finding in &study.findings {
        text += &wrapped(&format!("{}: {}", finding.topic, finding.text));
    }
    text
}

/// Nothing of a table without a row.
fn titled(title: &str, table: &Table, columns: &[&str]) -> String {
    if table.rows.is_empty() { String::new() } else { format!("{title}\n{}\n", table.text(columns)) }
}
