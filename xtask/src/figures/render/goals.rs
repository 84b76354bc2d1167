//! What is asked of the stack, and what it reached.

use serde_json::Value;

use super::benches::Tables;
use super::comparison::{Ratio, cell};
use super::table::markdown;
use crate::bench::table::grouped;
use crate::costs::Record;
use crate::figures::numbers;
use crate::figures::results::Results;
use crate::job::Failure;

/// Work, what is asked of it, and how to find what it reached.
struct Goal {
    work: &'static str,
    asked: &'static str,
    reached: fn(&Results) -> Result<Reached, Failure>,
}

/// What it came to, and whether that is what was asked.
type Reached = (String, bool);

/// Work of a comparison: the call type, calls in flight, bytes of a message.
type Work = (&'static str, u64, u64);

const KIB_64: u64 = 64 << 10;
const MB_1_5: u64 = 1_500_000;
const MIB_4: u64 = 4 << 20;

const GOALS: &[Goal] = &[
    Goal {
        work: "empty unary, 1 connection, 64 in flight, TCP",
        asked: "≥ 7 × tonic, ≥ 9 × gRPC C++",
        reached: |it| ratios(it, "in-flight-64", ("unary", 64, 0), 7.0, 9.0),
    },
    Goal {
        work: "the same, 256 in flight",
        asked: "≥ 10 × both",
        reached: |it| ratios(it, "in-flight-256", ("unary", 256, 0), 10.0, 10.0),
    },
    Goal {
        work: "empty unary, 16 connections, 256 in flight",
        asked: "≥ 10 × tonic, ≥ 6 × gRPC C++",
        reached: |it| ratios(it, "in-flight-256-connections-16", ("unary", 256, 0), 10.0, 6.0),
    },
    Goal {
        work: "empty unary, one in flight on each of 100, 1,000 and 10,000 connections: the server's processor time",
        asked: "≤ 1.25 × a bare echo's",
        reached: many_connections,
    },
    Goal { work: "its part in user space, 1,000 connections", asked: "≤ 2.5 µs", reached: user_time },
    Goal {
        work: "a new connection with its first call: the server's processor time",
        asked: "≤ 40 µs",
        reached: first_call,
    },
    Goal {
        work: "empty unary, 1 in flight, TCP",
        asked: "time ≤ 0.9 of the better peer",
        reached: |it| time_of_the_better(it, "comparison-tcp", ("unary", 1, 0), 0.9),
    },
    Goal {
        work: "the same, UDS",
        asked: "time ≤ 0.9 of the better peer",
        reached: |it| time_of_the_better(it, "comparison-uds", ("unary", 1, 0), 0.9),
    },
    Goal {
        work: "the same, UDS, busy polling",
        asked: "p50 ≤ ¼ of the better peer, ≤ 4 × the spinning socket",
        reached: busy_polling,
    },
    Goal {
        work: "streams, empty messages, TCP: client, server, bidi",
        asked: "≥ 2 × tonic, ≥ 10 × gRPC C++",
        reached: |it| streams(it, 0, 2.0, 10.0),
    },
    Goal {
        work: "streams, 1 KiB, TCP: client, server, bidi",
        asked: "≥ 2 × tonic, ≥ 3 × gRPC C++",
        reached: |it| streams(it, 1024, 2.0, 3.0),
    },
    Goal {
        work: "streams, 64 KiB, TCP: client, server",
        asked: "≥ 70 % of the socket; ≥ 1.5 and 1.1 × tonic",
        reached: |it| large_streams(it, "comparison-tcp", KIB_64),
    },
    Goal {
        work: "streams, 1.5 MB, TCP: client, server",
        asked: "the same",
        reached: |it| large_streams(it, "comparison-tcp", MB_1_5),
    },
    Goal {
        work: "streams, 4 MiB, TCP: client, server",
        asked: "the same",
        reached: |it| large_streams(it, "streams-tcp-4mib", MIB_4),
    },
    Goal {
        work: "streams, 64 KiB, UDS: client, server",
        asked: "the same",
        reached: |it| large_streams(it, "comparison-uds", KIB_64),
    },
    Goal {
        work: "streams, 1.5 MB, UDS: client, server",
        asked: "the same",
        reached: |it| large_streams(it, "comparison-uds", MB_1_5),
    },
    Goal {
        work: "streams, 4 MiB, UDS: client, server",
        asked: "the same",
        reached: |it| large_streams(it, "comparison-uds", MIB_4),
    },
    Goal {
        work: "unary echo 1.5 MB, 4 in flight, UDS",
        asked: "≥ 1.5 × the better peer",
        reached: |it| times_the_better(it, "comparison-uds", ("unary", 4, MB_1_5), 1.5),
    },
    Goal {
        work: "unary echo 64 KiB, 4 in flight, UDS",
        asked: "≥ 1.3 × the better peer",
        reached: |it| times_the_better(it, "comparison-uds", ("unary", 4, KIB_64), 1.3),
    },
    Goal {
        work: "user instructions per empty unary call, 64 in flight",
        asked: "≤ 3,000 a side",
        reached: |it| instructions(it, "unary-64", &["server", "client"], 3000.0),
    },
    Goal {
        work: "the same, one call after the other: the client",
        asked: "≤ 6,000",
        reached: |it| instructions(it, "unary-1", &["client"], 6000.0),
    },
    Goal {
        work: "allocations per empty unary call", asked: "≤ 3 server, ≤ 4 client", reached: allocations
    },
    Goal {
        work: "small calls beside a 4 MiB stream on the same connection",
        asked: "p99 ≤ 3 × that of small calls with as much processor taken by another connection",
        reached: beside,
    },
    Goal {
        work: "10,000 idle connections",
        asked: "≤ 10 KB each; one active within 10 % of alone",
        reached: idle,
    },
    Goal {
        work: "empty unary over TLS, 64 in flight, TCP",
        asked: "≥ 5 × tonic and gRPC C++ over TLS",
        reached: unary_over_tls,
    },
    Goal {
        work: "one stream of 1.5 MB over TLS, from the server, from the client",
        asked: "≥ 85 % of rustls alone",
        reached: streams_over_tls,
    },
    Goal { work: "an idle TLS connection that has made a call", asked: "≤ 20 KB", reached: idle_over_tls },
];

pub(in crate::figures) fn goals(results: &Results) -> Result<String, Failure> {
    let mut rows = Vec::new();
    for goal in GOALS {
        let (reached, is_reached) = (goal.reached)(results)?;
        let verdict = if is_reached { "yes" } else { "**no**" };
        rows.push(vec![goal.work.to_owned(), goal.asked.to_owned(), reached, verdict.to_owned()]);
    }
    Ok(markdown(&["work", "asked", "reached", ""], &rows))
}

fn against<'a>(results: &'a Results, name: &str, work: Work, stack: &str) -> Result<Ratio<'a>, Failure> {
    let found = cell(results, name, work)?.against(stack);
    found.ok_or_else(|| Failure::failed(format!("{name}.json has no ratio against {stack} of {work:?}")))
}

/// Rates ÷ tonic's and gRPC C++'s.
fn ratios(results: &Results, name: &str, work: Work, tonic: f64, cpp: f64) -> Result<Reached, Failure> {
    let (over_tonic, over_cpp) =
        (against(results, name, work, "tonic")?, against(results, name, work, "grpc-cpp")?);
    let text = format!("{}; {}", over_tonic.text(), over_cpp.text());
    Ok((text, over_tonic.mean >= tonic && over_cpp.mean >= cpp))
}

/// The stack against which the ratio is smaller is the better one.
fn better<'a>(results: &'a Results, name: &str, work: Work) -> Result<Ratio<'a>, Failure> {
    let (tonic, cpp) = (against(results, name, work, "tonic")?, against(results, name, work, "grpc-cpp")?);
    Ok(if tonic.mean < cpp.mean { tonic } else { cpp })
}

fn times_the_better(results: &Results, name: &str, work: Work, asked: f64) -> Result<Reached, Failure> {
    let ratio = better(results, name, work)?;
    Ok((ratio.text(), ratio.mean >= asked))
}

/// Of lone calls: one over the ratio of rates.
fn time_of_the_better(results: &Results, name: &str, work: Work, asked: f64) -> Result<Reached, Failure> {
    let ratio = better(results, name, work)?.mean;
    Ok((format!("{:.2} (1 ÷ {})", 1.0 / ratio, numbers::ratio(ratio)), 1.0 / ratio <= asked))
}

fn streams(results: &Results, size: u64, tonic: f64, cpp: f64) -> Result<Reached, Failure> {
    let (mut over_tonic, mut over_cpp, mut reached) = (Vec::new(), Vec::new(), true);
    for work in ["client-stream", "server-stream", "bidi-stream"] {
        let ratio = |stack| against(results, "comparison-tcp", (work, 1, size), stack);
        let (of_tonic, of_cpp) = (ratio("tonic")?.mean, ratio("grpc-cpp")?.mean);
        reached &= of_tonic >= tonic && of_cpp >= cpp;
        over_tonic.push(numbers::ratio(of_tonic));
        over_cpp.push(numbers::ratio(of_cpp));
    }
    Ok((format!("{} × tonic; {} × gRPC C++", over_tonic.join(", "), over_cpp.join(", ")), reached))
}

fn large_streams(results: &Results, name: &str, size: u64) -> Result<Reached, Failure> {
    let (mut shares, mut ratios, mut reached) = (Vec::new(), Vec::new(), true);
    for (work, asked) in [("client-stream", 1.5), ("server-stream", 1.1)] {
        let cell = cell(results, name, (work, 1, size))?;
        let share = cell.share().unwrap_or_default();
        let ratio = against(results, name, (work, 1, size), "tonic")?.mean;
        reached &= share >= 0.7 && ratio >= asked;
        shares.push(numbers::share(share));
        ratios.push(numbers::ratio(ratio));
    }
    Ok((format!("{}; {} ×", shares.join(", "), ratios.join(", ")), reached))
}

/// The second table is UDS.
fn busy_polling(results: &Results) -> Result<Reached, Failure> {
    let tables = Tables::of(results, "polling")?;
    let p50 = |row| tables.number(1, row, "p50 µs");
    let (busy, socket) = (p50("thalweg busy")?, p50("spinning socket")?);
    let peer = p50("tonic")?.min(p50("grpc-cpp")?);
    let text = format!("1/{:.0}, {:.1} ×", peer / busy, busy / socket);
    Ok((text, busy <= peer / 4.0 && busy <= 4.0 * socket))
}

/// What the tests hold to it.
fn instructions(_: &Results, case: &str, sides: &[&str], asked: f64) -> Result<Reached, Failure> {
    let record = Record::read()?;
    let (mut told, mut is_reached) = (Vec::new(), true);
    for side in sides {
        let cost = record.costs.iter().find(|cost| (&*cost.case, &*cost.side) == (case, *side));
        let missing = || Failure::failed(format!("costs.json has no {side} of {case}"));
        let count = cost.ok_or_else(missing)?.instructions;
        told.push(format!("{} {side}", grouped(count)));
        is_reached &= count <= asked;
    }
    Ok((told.join(", "), is_reached))
}

/// Of our server, all connections with one call in flight.
fn point(results: &Results, connections: u64) -> Result<Value, Failure> {
    let figures = results.figures("connections")?;
    let is_it = |point: &&Value| {
        point["server"] == "thalweg"
            && point["in_flight"] == 1
            && [&point["connections"], &point["active"]].iter().all(|number| **number == connections)
    };
    let found = figures["points"].as_array().and_then(|points| points.iter().find(is_it)).cloned();
    found
        .ok_or_else(|| Failure::failed(format!("connections.json has no point of {connections} connections")))
}

fn many_connections(results: &Results) -> Result<Reached, Failure> {
    let (mut told, mut is_reached) = (Vec::new(), true);
    for connections in [100, 1000, 10_000] {
        let ratio = point(results, connections)?["over_echo"]["ratio"].as_f64().unwrap_or(f64::MAX);
        told.push(numbers::ratio(ratio));
        is_reached &= ratio <= 1.25;
    }
    Ok((format!("{} ×", told.join(", ")), is_reached))
}

fn user_time(results: &Results) -> Result<Reached, Failure> {
    let ns = point(results, 1000)?["server_time"]["user_ns"].as_f64().unwrap_or(f64::MAX);
    Ok((numbers::time(ns), ns <= 2500.0))
}

fn first_call(results: &Results) -> Result<Reached, Failure> {
    let figures = results.figures("connections")?;
    let is_it = |one: &&Value| one["server"] == "thalweg" && one["tls"] == false;
    let ours = figures["arrivals"].as_array().and_then(|arrivals| arrivals.iter().find(is_it));
    let ns = ours.and_then(|ours| ours["server_time"]["ns"].as_f64());
    let ns = ns.ok_or_else(|| Failure::failed("connections.json has no new connections of ours"))?;
    Ok((numbers::time(ns), ns <= 40_000.0))
}

fn allocations(results: &Results) -> Result<Reached, Failure> {
    let tables = Tables::of(results, "allocations")?;
    let (server, client) = (tables.cell(0, "thalweg", "server")?, tables.cell(0, "thalweg", "client")?);
    let number = |side| tables.number(0, "thalweg", side);
    Ok((format!("{server}, {client}"), number("server")? <= 3.0 && number("client")? <= 4.0))
}

/// A table for each of the four points: the ratio stands in the row of the other connection.
fn beside(results: &Results) -> Result<Reached, Failure> {
    let tables = Tables::of(results, "beside")?;
    let ratio = |table| tables.number(table, "on another connection", "same's p99 ÷ this");
    let ratios = (0..4).map(ratio).collect::<Result<Vec<_>, _>>()?;
    let least = ratios.iter().copied().fold(f64::MAX, f64::min);
    let most = ratios.iter().copied().fold(0.0, f64::max);
    Ok((format!("{least:.2}–{most:.2} ×"), most <= 3.0))
}

fn idle(results: &Results) -> Result<Reached, Failure> {
    let tables = Tables::of(results, "idle")?;
    let bytes = tables.number(0, "thalweg", "its RSS")?;
    let rate = tables.number(1, "thalweg", "among ÷ alone")?;
    let range = tables.cell(1, "thalweg", "range")?;
    let text = format!("{:.1} KB; {rate:.2} × ({range})", bytes / 1000.0);
    Ok((text, bytes <= 10_000.0 && rate >= 0.9))
}

/// Ours over TLS ÷ another row of a table of the measurement `tls`, and its range.
fn over_tls<'a>(tables: &'a Tables<'_>, table: usize, row: &str) -> Result<(f64, &'a str), Failure> {
    Ok((tables.number(table, row, "ours over TLS ÷ it")?, tables.cell(table, row, "its range")?))
}

fn unary_over_tls(results: &Results) -> Result<Reached, Failure> {
    let tables = Tables::of(results, "tls")?;
    let (tonic, cpp) = (over_tls(&tables, 0, "tonic TLS")?, over_tls(&tables, 0, "grpc-cpp TLS")?);
    let text = [tonic, cpp].map(|(ratio, range)| format!("{ratio:.2} × ({range})")).join("; ");
    Ok((text, tonic.0 >= 5.0 && cpp.0 >= 5.0))
}

/// The third table is from the server, the fourth from the client.
fn streams_over_tls(results: &Results) -> Result<Reached, Failure> {
    let tables = Tables::of(results, "tls")?;
    let shares = [over_tls(&tables, 2, "rustls alone")?, over_tls(&tables, 3, "rustls alone")?];
    let text = shares.map(|(share, range)| format!("{share:.2} ({range})")).join(", ");
    Ok((text, shares.iter().all(|(share, _)| *share >= 0.85)))
}

/// The last table.
fn idle_over_tls(results: &Results) -> Result<Reached, Failure> {
    let tables = Tables::of(results, "tls")?;
    let bytes = tables.number(6, "thalweg TLS", "B per idle connection after a call")?;
    Ok((format!("{:.1} KB", bytes / 1000.0), bytes <= 20_000.0))
}
