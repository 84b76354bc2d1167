//! Terminal output of a connections study: cost per call by connections, and cost of new connections.

use thalweg_measure::page::table::Table;
use thalweg_measure::text::wrapped;

use super::analysis::ConnectionsAnalysis;
use super::columns::{arrivals, clients, servers};
use crate::report::terminal::findings;

/// Returns the answer, the tables and the findings.
pub(super) fn text(study: &ConnectionsAnalysis<'_>) -> String {
    let cells = &study.cells;
    let mut text = study.answer.as_deref().map(wrapped).unwrap_or_default();
    text += &titled(
        "servers under the bare client: processor time of a call, memory of an idle connection",
        &servers(cells),
        &["Client busy", "Least", "Most", "Loaded memory", "Established", "Errors"],
    );
    text += &titled(
        "stacks’ own clients at their own servers: processor time of a call",
        &clients(cells),
        &["User", "Kernel", "Errors"],
    );
    text += &titled("new connections: each connects, makes a call, and ends", &arrivals(cells), &["Errors"]);
    text + &findings(&study.findings)
}

/// Returns a titled table, or nothing without rows. `left_out`: columns that would make lines too long.
fn titled(title: &str, table: &Table, left_out: &[&str]) -> String {
    let text = table.text_of_columns(|_, header| !left_out.contains(&header));
    if text.is_empty() { text } else { format!("{title}\n{text}\n") }
}
