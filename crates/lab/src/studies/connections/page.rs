//! Page of a connections study.

use maud::{Markup, html};
use thalweg_measure::figures::{count, ratio_text, short, time};
use thalweg_measure::page::chart::{Chart, LineStyle, Unit, XAxis};
use thalweg_measure::page::parts::card;
use thalweg_measure::page::section::{Block, Section};
use thalweg_measure::size::ByteSize;
use thalweg_measure::wording::counted;

use super::analyse::{ConnectionsCells, Load, LoadCell, ServerCell, memory};
use super::analysis::ConnectionsAnalysis;
use super::columns::{arrivals, clients, servers};
use super::findings::{bytes, connections, shown};
use crate::load::multiples::{ChartLine, Figure, Multiples, STATISTICS, peer_colour, statistic};
use crate::load::used::ResourceUsage;
use crate::load::{LabResults, facts, stacks};
use crate::report::topics::findings;
use crate::stack::{OURS, SOCKET, Stack};

pub(super) fn sections(study: &ConnectionsAnalysis<'_>) -> Vec<Section> {
    let ConnectionsAnalysis { results, cells, findings, .. } = study;
    vec![
        Section::new("findings", "Findings", "Findings", vec![self::findings(findings)]),
        Section::new("plots", "Plots", "Costs over connections", plots(cells)),
        Section::new(
            "servers",
            "Servers",
            "Servers, all with the same load",
            vec![
                Block::Table(servers(cells)),
                Block::hint(
                    "Click a column header to sort by it. Processor time is of one call, in user space and in the \
                     kernel. Memory is the server’s growth per connection after the first: idle after a call, and \
                     under load. Jain’s index is 1 if all active connections had the same number of calls. The same \
                     figures are in `results.csv`.",
                ),
            ],
        ),
        Section::new(
            "clients",
            "Clients",
            "Each stack’s own client at its own server",
            vec![Block::table_or(clients(cells), "No client was measured.")],
        ),
        Section::new(
            "arrivals",
            "New connections",
            "New connections",
            vec![
                Block::about(
                    "Each connects, makes a call, and ends. Processor time is of one connection, with its call.",
                ),
                Block::table_or(arrivals(cells), "None were measured."),
            ],
        ),
        stacks::section("How each stack was set up", &results.stacks, &results.left_out),
    ]
}

/// Returns cards with the cost per call for each server, with the most connections and all active.
pub(super) fn cards(cells: &ConnectionsCells<'_>, is_unanswered: bool) -> Markup {
    let curve = cells.all_active();
    let detail = |server: &ServerCell<'_>, many: u32| {
        let over = server.over_echo().map(|ratio| format!(", {} the bare echo’s", ratio_text(ratio)));
        let memory_text =
            memory(&server.cell).map(|memory| format!("; {} held by an idle one", bytes(memory.idle)));
        format!("over {}{}{}", connections(many), over.unwrap_or_default(), memory_text.unwrap_or_default())
    };
    html! {
        @if let Some(last) = curve.last().filter(|_| !is_unanswered) {
            @for server in &last.servers {
                @let figure = server.ns().map_or_else(|| format!("{}/s", count(server.cell.rate_per_s())), time);
                (card(&shown(server.stack), &figure, &detail(server, last.load.connections)))
            }
        }
    }
}

fn plots(cells: &ConnectionsCells<'_>) -> Vec<Block> {
    let stacks = cells.stacks();
    let styles: Vec<LineStyle> = stacks.iter().enumerate().map(|(id, stack)| line_style(id, stack)).collect();
    vec![
        Block::Choices(vec![statistic(&STATISTICS)]),
        Block::Legend(styles.clone()),
        Block::heading("The server’s processor time of a call; lower is better"),
        Block::Multiples(panels(
            cells,
            &stacks,
            &styles,
            "server",
            Unit::Time,
            vec![Figure {
                ends: |cell| cell.server_interval(),
                windows: |cell| cell.figure_of_each_window(|it| it.server_ns),
                ..Figure::of(|cell| cell.server().map(ResourceUsage::ns))
            }],
        )),
        Block::heading("Calls per second; higher is better"),
        Block::Multiples(panels(cells, &stacks, &styles, "rate", Unit::Rate, vec![Figure::rate()])),
        Block::heading("Latency, {statistic}; lower is better"),
        Block::Multiples(panels(
            cells,
            &stacks,
            &styles,
            "latency",
            Unit::Time,
            Figure::latencies(&STATISTICS),
        )),
        Block::hint(
            "A plot for each share of active connections and each number of calls on them, all on the same axes, both \
             logarithmic. Bars are 95 % intervals; dots next to them are the windows. Hover over a plot for its \
             values.",
        ),
    ]
}

fn line_style(id: usize, stack: &Stack) -> LineStyle {
    let (colour, dash, width): (_, &[u8], _) = match stack.name() {
        OURS => ("ours", &[], 2.6),
        SOCKET => ("muted", &[2, 4], 1.8),
        _ => (peer_colour(id.saturating_sub(1)), &[], 1.8),
    };
    LineStyle { dash, width, ..LineStyle::new(stack.to_string(), colour) }
}

/// Returns a chart for each share of active connections and each number of calls on them. Shares are identified at the
/// largest number of connections; with few connections, different shares can be equal.
fn panels(
    cells: &ConnectionsCells<'_>,
    stacks: &[&Stack],
    styles: &[LineStyle],
    name: &'static str,
    unit: Unit,
    figures: Vec<Figure>,
) -> Vec<Chart> {
    let Some(most) = cells.loads.iter().map(|cell| cell.load.connections).max() else { return Vec::new() };
    let mut numbers: Vec<u64> = cells.loads.iter().map(|cell| u64::from(cell.load.connections)).collect();
    numbers.dedup();
    let x = XAxis::log(&numbers, |many| counted(many, "connection"));
    let multiples = Multiples { name, unit, styles: styles.to_vec(), x, figures, note: None };
    let panel = |(index, at): (usize, &LoadCell<'_>)| {
        let share = f64::from(at.load.active) / f64::from(most);
        let cell_of = |&number: &u64| {
            cells.loads.iter().find(|cell| {
                let Load { connections, active, in_flight } = cell.load;
                let expected = (f64::from(connections) * share).ceil().max(1.0) as u32;
                u64::from(connections) == number && in_flight == at.load.in_flight && active == expected
            })
        };
        let line = |(style, stack): (usize, &&Stack)| -> ChartLine<'_> {
            let cell = |number| Some(&cell_of(number)?.server(stack)?.cell);
            (style, numbers.iter().map(cell).collect())
        };
        let lines: Vec<ChartLine<'_>> = stacks.iter().enumerate().map(line).collect();
        let title = format!("{} % active, {} on each", short(share * 100.0), at.load.in_flight);
        multiples.chart(index, &title, &lines)
    };
    cells.loads.iter().filter(|cell| cell.load.connections == most).enumerate().map(panel).collect()
}

pub(super) fn method(results: &LabResults) -> Vec<String> {
    let settings = &results.settings;
    let pinned = facts::pinned(settings.client_cpus.as_ref(), settings.server_cpus.as_ref());
    let size = results.points.first().map_or(ByteSize(0), |window| window.point.size_bytes);
    let load = format!(
        "All servers have the same client: one epoll thread, which sends unary calls as prepared frames. Messages \
         have {size} of payload. The load is a closed loop: when a call ends, another starts on the same connection."
    );
    [pinned, load].into_iter().chain(METHOD.map(str::to_owned)).chain(settings.cut.clone()).collect()
}

const METHOD: [&str; 5] = [
    "Connections are opened in batches, and each makes a call before measuring starts. Active connections are \
     spread evenly; the others stay open and idle.",
    "The bare echo is a single-threaded epoll server that sends back what it receives: an event, a recv and a send. \
     Its messages are 60 bytes plus the payload.",
    "Each window has a server process of its own. Windows of one load are short and interleaved, in forward and \
     then reverse order (ABBA); a ratio uses windows of the same round, and has a 95 % interval.",
    "Processor time is accounted by the kernel; its split into user and kernel time is sampled at the kernel’s tick. \
     Memory is the process’s resident set.",
    "New connections come from our own client, 16 at a time: each is a channel that connects, makes a call, and \
     is dropped.",
];
