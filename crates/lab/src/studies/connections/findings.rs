//! Findings of a connections study in sentences. Every figure is also in a table.

use thalweg_measure::figures::{count, grouped, percent, ratio_figure, ratio_text, time};
use thalweg_measure::wording::{capitalised, counted, enumerated};

use super::analyse::{ConnectionsCells, Load, LoadCell, Memory, ServerCell, evenness, memory as memory_of};
use crate::findings::{Finding, collect_findings};
use crate::load::verdict::{JudgedRatio, Verdict};
use crate::stack::Stack;

/// Share of the mean that the connection with the fewest calls must have for even service.
const EVEN_SHARE: f64 = 0.8;

/// Returns the answer for our server: cost per call with most connections, relative to one connection and to the echo.
pub(super) fn answer(cells: &ConnectionsCells<'_>) -> Option<String> {
    let curve = cells.all_active();
    let (first, last) = (curve.first()?, curve.last()?);
    let ours = last.ours()?;
    let name = &ours.stack;
    let Some(ns) = ours.ns() else {
        let latency = time(ours.cell.latency_named("p50")?);
        let rate = count(ours.cell.rate_per_s());
        return Some(format!("Over {}, {name} handles {rate} calls/s, in {latency} (median).", many(last)));
    };
    let grown =
        first.ours().and_then(ServerCell::ns).filter(|_| first.load.connections < last.load.connections);
    let grown = grown
        .map(|first_ns| format!(", {} × what it takes over {}", ratio_figure(ns / first_ns), many(first)));
    let floor = ours.over_floor.map(|ratio| format!(" and {} the bare echo’s", ratio_text(ratio)));
    Some(format!(
        "Over {} {name}’s server takes {} of processor time for a call{}{}.",
        many(last),
        time(ns),
        grown.unwrap_or_default(),
        floor.unwrap_or_default()
    ))
}

/// Formats a cell's number of connections, such as `10 000 connections`.
fn many(cell: &LoadCell<'_>) -> String {
    connections(cell.load.connections)
}

pub(super) fn connections(number: u32) -> String {
    match number {
        1 => "1 connection".to_owned(),
        number => format!("{} connections", grouped(f64::from(number))),
    }
}

/// Returns findings by topic, without topics that have no figure.
pub(super) fn findings(cells: &ConnectionsCells<'_>) -> Vec<Finding> {
    collect_findings([
        ("As connections grow", growth(cells)),
        ("Compared with the bare echo", floor(cells)),
        ("Compared with other servers", servers(cells)),
        ("Idle connections", idle(cells)),
        ("Memory", memory(cells)),
        ("Fairness", fairness(cells)),
        ("New connections", arrivals(cells)),
    ])
}

/// Returns `None` without items, so that a topic without figures is left out.
fn some<T>(items: Vec<T>) -> Option<Vec<T>> {
    Some(items).filter(|items| !items.is_empty())
}

/// Describes the growth from one connection to the most, with all active.
fn growth(cells: &ConnectionsCells<'_>) -> Option<String> {
    let curve = cells.all_active();
    let (first, last) = (curve.first()?, curve.last()?);
    let of_stack = |stack: &&Stack| {
        let (from, to) = (first.server(stack)?.ns()?, last.server(stack)?.ns()?);
        Some(format!("{} from {} to {} ({} ×)", shown(stack), time(from), time(to), ratio_figure(to / from)))
    };
    let grown: Vec<String> = cells.stacks().iter().filter_map(of_stack).collect();
    let has_grown = !grown.is_empty() && first.load.connections != last.load.connections;
    has_grown.then(|| {
        format!(
            "From {} to {}, all active with {} in flight on each, the server’s processor time per call develops as \
             follows: {}.",
            many(first),
            many(last),
            counted(u64::from(last.load.in_flight), "call"),
            grown.join(", ")
        )
    })
}

/// Returns the stack's display name.
pub(super) fn shown(stack: &Stack) -> String {
    if *stack == Stack::socket() { "the bare echo".to_owned() } else { stack.to_string() }
}

fn floor(cells: &ConnectionsCells<'_>) -> Option<String> {
    let of_cell = |cell: &LoadCell<'_>| {
        let with_ratio =
            |server: &ServerCell<'_>| Some(format!("{} {}", server.stack, ratio_text(server.over_echo()?)));
        let ratios: Vec<String> = cell.servers.iter().filter_map(with_ratio).collect();
        (!ratios.is_empty()).then(|| format!("over {}: {}", many(cell), ratios.join(", ")))
    };
    let clauses: Vec<String> = cells.all_active().into_iter().filter_map(of_cell).collect();
    let clauses = some(clauses)?.join("; ");
    Some(format!("Cost of a call for the server ÷ cost of a message for the bare echo, {clauses}."))
}

fn servers(cells: &ConnectionsCells<'_>) -> Option<String> {
    let stacks = cells.stacks();
    let of_stack = |stack: &&Stack| {
        let verdicts = cells.loads.iter().filter_map(|cell| cell.server(stack)?.ours_over);
        let verdicts: Vec<Verdict> = verdicts.map(|compared| compared.verdict).collect();
        let of = |verdict| verdicts.iter().filter(|it| **it == verdict).count();
        if verdicts.is_empty() {
            return None;
        }
        let last =
            cells.all_active().last().and_then(|cell| Some((many(cell), cell.server(stack)?.ours_over?)));
        let last = last.and_then(|(many, compared)| Some(format!("; over {many} {}", compared.factor()?)));
        Some(format!(
            "than {stack}’s at {} of {} loads, and more at {}; at {} no difference is shown{}",
            of(Verdict::Faster),
            verdicts.len(),
            of(Verdict::Slower),
            verdicts.len() - of(Verdict::Faster) - of(Verdict::Slower),
            last.unwrap_or_default()
        ))
    };
    let clauses: Vec<String> = stacks.iter().filter_map(of_stack).collect();
    Some(format!("Our server takes less processor time for a call {}.", enumerated(&some(clauses)?)))
}

/// Compares active connections alone with the same among idle ones.
fn idle(cells: &ConnectionsCells<'_>) -> Option<String> {
    let among = cells.loads.iter().rev().find_map(|cell| {
        let alone = Load { connections: cell.load.active, ..cell.load };
        let alone = cells.at(alone).filter(|_| cell.load.active < cell.load.connections)?;
        Some((alone, cell))
    });
    let (alone, among) = among?;
    let of_stack = |stack: &&Stack| {
        let (from, to) = (alone.server(stack)?.ns()?, among.server(stack)?.ns()?);
        Some(format!(
            "{} {} in place of {} ({} ×)",
            shown(stack),
            time(to),
            time(from),
            ratio_figure(to / from)
        ))
    };
    let clauses: Vec<String> = cells.stacks().iter().filter_map(of_stack).collect();
    Some(format!(
        "Cost of a call for the server with {} active among {}, relative to the active ones alone: {}.",
        connections(among.load.active),
        grouped(f64::from(among.load.connections)),
        some(clauses)?.join(", ")
    ))
}

fn memory(cells: &ConnectionsCells<'_>) -> Option<String> {
    let curve = cells.all_active();
    let last = curve.iter().rev().find(|cell| cell.servers.iter().any(|it| memory_of(&it.cell).is_some()))?;
    let of_server = |server: &ServerCell<'_>| {
        let Memory { idle, loaded } = memory_of(&server.cell)?;
        let clauses =
            format!("{} {} idle and {} under load", shown(server.stack), bytes(idle), bytes(loaded));
        Some(clauses)
    };
    let clauses: Vec<String> = last.servers.iter().filter_map(of_server).collect();
    Some(format!("A connection of {} takes of the server’s memory: {}.", many(last), clauses.join(", ")))
}

/// Formats bytes in powers of 1000, as documents do: `5.7 KB`.
pub(super) fn bytes(bytes: f64) -> String {
    if bytes < 1000.0 { format!("{bytes:.0} B") } else { format!("{:.1} KB", bytes / 1e3) }
}

fn fairness(cells: &ConnectionsCells<'_>) -> Option<String> {
    let of_stack = |stack: &&Stack| {
        let worst = cells.loads.iter().filter_map(|cell| Some((cell, evenness(&cell.server(stack)?.cell)?)));
        let (cell, worst) = worst.min_by(|(_, one), (_, other)| one.jain.total_cmp(&other.jain))?;
        let evenly = if worst.least >= EVEN_SHARE { "evenly everywhere" } else { "least evenly" };
        Some(format!(
            "{} serves connections {evenly}: over {} ({} active) Jain’s index is {:.3}, and the connection with \
             fewest calls has {} of the mean",
            shown(stack),
            many(cell),
            grouped(f64::from(cell.load.active)),
            worst.jain,
            percent(worst.least)
        ))
    };
    let clauses: Vec<String> = cells.stacks().iter().filter_map(of_stack).collect();
    Some(capitalised(&some(clauses)?.join("; ")) + ".")
}

fn arrivals(cells: &ConnectionsCells<'_>) -> Option<String> {
    let of_server = |it: &ServerCell<'_>| {
        let server = it.cell.server().map(|used| format!(", {} at the server", time(used.ns())));
        let client = it.cell.client().map(|used| format!(" and {} at the client", time(used.ns())));
        let tls = if it.cell.point.tls { " over TLS" } else { "" };
        let over = it.ours_over.and_then(JudgedRatio::factor);
        let over = over.map(|factor| format!(" (ours ÷ its: {factor})")).unwrap_or_default();
        format!(
            "{}{tls} {}/s{}{}{over}",
            it.stack,
            count(it.cell.rate_per_s()),
            server.unwrap_or_default(),
            client.unwrap_or_default()
        )
    };
    let clauses: Vec<String> = cells.arrivals.iter().map(of_server).collect();
    let clauses = some(clauses)?.join("; ");
    Some(format!("New connections, each for one call, with the processor time of each: {clauses}."))
}
