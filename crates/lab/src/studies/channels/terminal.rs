//! Terminal output of a channels study: best numbers, rates, costs and verdicts.

use thalweg_measure::figures::{count, percent};
use thalweg_measure::text::{aligned, wrapped};

use super::analyse::Panel;
use super::analysis::ChannelsAnalysis;
use super::answer::answer;
use super::columns::{figures, numbers};
use super::findings::StackVerdict;
use crate::load::gathered::MergedCell;
use crate::record::CallType;

/// The table of costs uses the load nearest to this number of calls in flight.
const IN_FLIGHT_TYPICAL: u32 = 64;

/// Returns the headline, the tables of best numbers, rates and costs, and the verdicts.
pub(super) fn text(study: &ChannelsAnalysis<'_>) -> String {
    let ChannelsAnalysis { results, channels, verdicts, .. } = study;
    let mut text = answer(verdicts, &results.settings).map(|answer| wrapped(&answer)).unwrap_or_default();
    for verdict in verdicts {
        text += &best_numbers(verdict);
    }
    for panel in &channels.panels {
        text += &rates(panel, &channels.in_flight(panel.call));
    }
    for call in channels.calls() {
        if let Some(panel) = channels.panels.iter().find(|panel| panel.call == call) {
            text += &costs(panel, verdicts, &channels.in_flight(call));
        }
    }
    for verdict in verdicts {
        text += &wrapped(&format!(
            "{}, {}: {} {}",
            verdict.stack,
            verdict.conditions(),
            verdict.text,
            verdict.advice
        ));
    }
    text
}

/// Returns the table of loads, with the best number of connections and its gain.
fn best_numbers(verdict: &StackVerdict) -> String {
    let table = numbers(verdict).text();
    format!("{}, {}: best number of connections\n{table}\n", verdict.stack, verdict.conditions())
}

fn rates(panel: &Panel<'_>, in_flight: &[u32]) -> String {
    let row = |name: String, cell: &dyn Fn(u32) -> Option<String>| -> Vec<String> {
        let cells = in_flight.iter().map(|&in_flight| cell(in_flight).unwrap_or_else(|| "-".to_owned()));
        std::iter::once(name).chain(cells).collect()
    };
    let mut rows = vec![row(String::new(), &|in_flight| Some(in_flight.to_string()))];
    for line in &panel.lines {
        rows.push(row(line.label(), &|in_flight| Some(rate(line.at(in_flight)?))));
    }
    if panel.ideal(1).is_some() {
        rows.push(row("ideal scaling".to_owned(), &|in_flight| panel.ideal(in_flight).map(count)));
    }
    let (call, network) = (panel.call, panel.network());
    format!("{call}, {network}: calls per second by calls in flight\n{}\n", aligned(&rows))
}

/// Returns a rate with half its interval: `40.1 k ±12 %`.
fn rate(cell: &MergedCell<'_>) -> String {
    let reach = cell.rate_interval().map(|interval| interval.half_width().exp() - 1.0);
    let reach = reach.map(|reach| format!(" ±{}", percent(reach))).unwrap_or_default();
    format!("{}{reach}", count(cell.rate_per_s()))
}

/// Returns the table of costs at one typical load.
fn costs(panel: &Panel<'_>, verdicts: &[StackVerdict], in_flight: &[u32]) -> String {
    const LEFT_OUT: [&str; 8] =
        ["Call", "Round trip", "In flight", "Rate", "÷ one", "Client busy", "Server busy", "Errors"];
    let Some(&typical) = in_flight.iter().min_by_key(|it| it.abs_diff(IN_FLIGHT_TYPICAL)) else {
        return String::new();
    };
    let points = panel.lines.iter().filter_map(|line| line.at(typical));
    let table = figures(verdicts, points);
    let operation = if panel.call == CallType::Unary { "call" } else { "round trip" };
    format!(
        "{}, {}, {typical} in flight; processor time and system calls of one {operation}\n{}\n",
        panel.call,
        panel.network(),
        table.text_of_columns(|_, header| !LEFT_OUT.contains(&header))
    )
}
