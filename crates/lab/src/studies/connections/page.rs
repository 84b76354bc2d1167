//! A connections study as a page of its own.

mod data;
mod table;

use maud::{Markup, html};
use thalweg_measure::figures::{count, ratio_text, time};
use thalweg_measure::page::parts::{card, choices, eyebrow, scrolled};
use thalweg_measure::size::ByteSize;

use super::analyse::{Cells, Server};
use super::analysis::ConnectionsAnalysis;
use super::findings::{bytes, connections, shown};
use crate::load::{LabResults, facts, stacks};
use crate::report::page::{MULTIPLES, PLOT, Page};
use crate::report::topics::findings;

const SCRIPT: &str = include_str!("../../../assets/connections.js");

/// What may be shown of latencies, the first at first.
const STATISTICS: [(&str, &str); 5] =
    [("p50", "median"), ("p90", "p90"), ("p95", "p95"), ("p99", "p99"), ("p99_9", "p99.9")];

pub(super) fn page(study: &ConnectionsAnalysis<'_>) -> String {
    let ConnectionsAnalysis { results, cells, answer, findings, doubts, unanswered } = study;
    Page {
        title: "Connections study",
        style: "",
        links: &[
            ("findings", "Findings"),
            ("plots", "Plots"),
            ("servers", "Servers"),
            ("clients", "Clients"),
            ("arrivals", "New connections"),
        ],
        eyebrow: eyebrow("Connections study", &results.started, &results.ended),
        answer: unanswered.as_ref().or(answer.as_ref()).cloned(),
        lede: facts::lede(results),
        cards: if unanswered.is_some() {
            html! {}
        } else {
            cards(cells)
        },
        doubts: doubts.iter().map(ToString::to_string).collect(),
        sections: html! {
            section #findings {
                h2 { "Findings" }
                (self::findings(findings))
            }
            (plots())
            (sections(cells))
            section #stacks {
                h2 { "How each stack was set up" }
                (stacks::list(&results.stacks, &results.left_out))
            }
        },
        method: method(results),
        facts: facts::facts(results),
        version: &results.versions.thalweg,
        notice: "",
        data: data::json(cells),
        library: None,
        scripts: &[PLOT, MULTIPLES, SCRIPT],
    }
    .html()
}

/// What a call costs each server with most connections, all of them active.
fn cards(cells: &Cells) -> Markup {
    let curve = cells.all_active();
    let detail = |server: &Server, many: u32| {
        let over = server.over_floor.filter(|_| !server.is_floor());
        let over = over.map(|ratio| format!(", {} the bare echo’s", ratio_text(ratio)));
        let held =
            server.figures.memory.map(|memory| format!("; {} held by an idle one", bytes(memory.idle)));
        format!("over {}{}{}", connections(many), over.unwrap_or_default(), held.unwrap_or_default())
    };
    html! {
        @if let Some(last) = curve.last() {
            @for server in &last.servers {
                @if let Some(ns) = server.ns() {
                    (card(&shown(&server.stack), &time(ns), &detail(server, last.load.connections)))
                } @else {
                    (card(
                        &shown(&server.stack),
                        &format!("{}/s", count(server.figures.rate_per_s)),
                        &detail(server, last.load.connections),
                    ))
                }
            }
        }
    }
}

fn plots() -> Markup {
    html! {
        section #plots {
            h2 { "Costs over connections" }
            div.controls {
                (choices("Latency shown", "statistic", STATISTICS))
            }
            div.legend role="group" aria-label="Lines shown" {}
            h3.table-title { "The server’s processor time of a call; lower is better" }
            div.multiples data-figure="server" {}
            h3.table-title { "Calls per second; higher is better" }
            div.multiples data-figure="rate" {}
            h3.table-title { span data-statistic { "Median" } " latency; lower is better" }
            div.multiples data-figure="latency" {}
            p.hint {
                "A plot for each share of active connections and each number of calls on them, all on the same axes, \
                 both logarithmic. Bars are intervals of 95 %; dots beside them the windows. Point at a plot for its \
                 values."
            }
        }
    }
}

fn sections(cells: &Cells) -> Markup {
    html! {
        section #servers {
            h2 { "Servers, all with the same load" }
            (scrolled(&table::servers(&cells.loads)))
            p.hint {
                "A click on a column’s name sorts by it. Processor time is of one call, in user space and in the \
                 kernel. Memory is what the server grew by since its first connection, for each of the others: idle \
                 after a call, and under the load. Jain’s index is 1 where all active connections had as many calls. \
                 The same figures lie in " code { "results.csv" } "."
            }
        }
        section #clients {
            h2 { "Each stack’s own client at its own server" }
            @if cells.loads.iter().all(|cell| cell.clients.is_empty()) {
                p.about { "No client was measured." }
            } @else {
                (scrolled(&table::clients(&cells.loads)))
            }
        }
        section #arrivals {
            h2 { "New connections" }
            @if cells.arrivals.is_empty() {
                p.about { "None were measured." }
            } @else {
                p.about { "Each connects, makes a call, and ends. Processor time is of one connection, with its call." }
                (scrolled(&table::arrivals(&cells.arrivals)))
            }
        }
    }
}

fn method(results: &LabResults) -> Vec<String> {
    let settings = &results.settings;
    let pinned = match (&settings.client_cpus, &settings.server_cpus) {
        (Some(client), Some(server)) => {
            format!("Clients are kept on the processors {client}, servers on {server}.")
        }
        _ => "Client and server share the processors.".to_owned(),
    };
    let size = results.points.first().map_or(ByteSize(0), |window| window.point.size_bytes);
    let mut method = vec![
        pinned,
        format!(
            "All servers have the same client: one thread over epoll, which sends unary calls as frames that it made \
             once. Messages have {size} of payload. The load is a closed loop: a call that ends is followed by \
             another on the same connection."
        ),
        "Connections are opened some at a time, and each makes a call, before any is measured. Active ones are spread \
         evenly over all; the others stay open and idle."
            .to_owned(),
        "The bare echo is a server of one thread over epoll, which sends back what came: an event, a recv and a send. \
         Its messages have 60 bytes and the payload."
            .to_owned(),
        "Each window has a server process of its own. Windows of one load are short and interleaved, in forward and \
         then reverse order (ABBA); a ratio is of windows of the same round, and its interval is that of 95 %."
            .to_owned(),
        "Processor time is the kernel’s account of the process; how it divides into user and kernel is sampled by the \
         kernel’s tick. Memory is the process’s resident set."
            .to_owned(),
        "New connections come from our own client, 16 at a time: each is a channel that connects, makes a call, and \
         is dropped."
            .to_owned(),
    ];
    method.extend(settings.cut.clone());
    method
}
