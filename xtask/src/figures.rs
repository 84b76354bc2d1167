//! `cargo xtask figures`: the tables of measured figures in the documents are made of the results files in
//! `docs/results`, and those by commands that measure.
//!
//! A page has a table between `<!-- figures: NAME -->` and `<!-- /figures -->`. A figure whose results files are not
//! all there keeps the text that the page has, which must say that it awaits measuring.

mod blocks;
mod measure;
mod numbers;
mod render;
mod results;

use std::fs;
use std::process::ExitCode;

use crate::arguments::Arguments;
use crate::ended::Ended;
use crate::job::{Failure, Log};
use crate::workspace;

use results::Results;

/// The pages that have figures.
const PAGES: &[&str] = &[
    "README.md",
    "docs/PERFORMANCE.md",
    "docs/lab-statistics.md",
    "docs/codec-study.md",
    "docs/codegen.md",
    "docs/json-study.md",
    "docs/load.md",
    "docs/published.md",
    "docs/security.md",
    "docs/tls.md",
    "docs/tonic.md",
];

/// What a table must say while its results files are missing.
const AWAITS: &str = "Awaits measuring";

/// One table.
struct Figure {
    name: &'static str,
    /// Its results files; none: it is made of a file that is always there.
    from: &'static [&'static str],
    render: fn(&Results) -> Result<String, Failure>,
}

const FIGURES: &[Figure] = &[
    Figure { name: "speed", from: &["ends", "drop-in", "instructions"], render: render::speed },
    Figure { name: "ends", from: &["ends"], render: render::ends },
    Figure {
        name: "goals",
        from: &[
            "comparison-tcp",
            "comparison-uds",
            "in-flight-64",
            "in-flight-256",
            "in-flight-256-connections-16",
            "streams-tcp-4mib",
            "instructions",
            "allocations",
            "polling",
            "beside",
            "idle",
            "tls",
        ],
        render: render::goals,
    },
    Figure { name: "comparison-tcp", from: &["comparison-tcp"], render: render::comparison_tcp },
    Figure { name: "comparison-uds", from: &["comparison-uds"], render: render::comparison_uds },
    Figure {
        name: "in-flight",
        from: &["in-flight-64", "in-flight-256", "in-flight-256-connections-16"],
        render: render::in_flight,
    },
    Figure { name: "lanes", from: &["lanes"], render: render::lanes },
    Figure { name: "many-processors", from: &["many-processors"], render: render::many_processors },
    Figure { name: "connections", from: &["connections"], render: render::connections },
    Figure { name: "polling", from: &["polling"], render: render::polling },
    Figure { name: "costs", from: &[], render: render::costs },
    Figure { name: "instructions", from: &["instructions"], render: render::instructions },
    Figure { name: "allocations", from: &["allocations"], render: render::allocations },
    Figure { name: "memory", from: &["memory"], render: render::memory },
    Figure { name: "idle", from: &["idle"], render: render::idle },
    Figure { name: "tls", from: &["tls"], render: render::tls },
    Figure { name: "drop-in", from: &["drop-in"], render: render::drop_in },
    Figure { name: "flight", from: &["flight"], render: render::flight },
    Figure { name: "beside", from: &["beside"], render: render::beside },
    Figure { name: "same", from: &["same"], render: render::same },
    Figure { name: "slowed", from: &["slowed"], render: render::slowed },
    Figure { name: "generators", from: &["generators"], render: render::generators },
    Figure { name: "generators-stopped", from: &["generators"], render: render::generators_stopped },
    Figure { name: "attacks", from: &["attacks"], render: render::attacks },
    Figure { name: "hoards", from: &["hoards"], render: render::hoards },
    Figure { name: "codec", from: &["codec"], render: render::codec },
    Figure { name: "codec-findings", from: &["codec"], render: render::codec_findings },
    Figure { name: "codec-ten-million", from: &["codec-ten-million"], render: render::codec_ten_million },
    Figure { name: "json", from: &["json"], render: render::json },
    Figure { name: "protobuf", from: &["protobuf"], render: render::protobuf },
    Figure { name: "protos", from: &["protos"], render: render::protos },
    Figure { name: "published", from: &["published"], render: render::published },
];

/// `cargo xtask figures [--check | --list | --measure [NAME]... | --take NAME RESULTS.json]`.
pub(crate) fn run(mut arguments: Arguments) -> Result<ExitCode, Ended> {
    let (checks, lists) = (arguments.flag("--check"), arguments.flag("--list"));
    let (measures, takes) = (arguments.flag("--measure"), arguments.flag("--take"));
    let names = arguments.rest();
    if measures {
        measure::run(&names)?;
    } else if takes {
        let [name, study] = names.as_slice() else {
            let misuse = "--take takes a measurement's name and the `results.json` of a study".to_owned();
            return Err(crate::arguments::Misuse(misuse).into());
        };
        measure::take(name, study.as_ref())?;
    } else if let Some(name) = names.first() {
        let misuse = format!("`{name}` is not understood here; `--measure {name}` measures it");
        return Err(crate::arguments::Misuse(misuse).into());
    }
    if lists {
        list()?;
    } else if checks {
        check()?;
        println!("the pages have the figures of docs/results");
    } else {
        regenerate()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the pages' tables anew.
pub(crate) fn regenerate() -> Result<(), Failure> {
    let results = Results::read()?;
    for page in PAGES {
        let path = workspace::root().join(page);
        let text = fs::read_to_string(&path)?;
        let fresh = rendered(page, &text, &results)?;
        if fresh != text {
            fs::write(&path, fresh)?;
            println!("{page} is written anew");
        }
    }
    Ok(())
}

/// The pages are what [`regenerate`] would make of them.
fn check() -> Result<(), Failure> {
    let results = Results::read()?;
    for page in PAGES {
        let text = fs::read_to_string(workspace::root().join(page))?;
        if rendered(page, &text, &results)? != text {
            let why = format!("{page} has other figures than docs/results: run `cargo xtask figures`");
            return Err(Failure::failed(why));
        }
    }
    Ok(())
}

/// The page with its tables as the results files have them.
fn rendered(page: &str, text: &str, results: &Results) -> Result<String, Failure> {
    blocks::replaced(text, |name, body| {
        let figure = FIGURES.iter().find(|figure| figure.name == name);
        let figure = figure.ok_or_else(|| Failure::failed(format!("{page}: there is no figure `{name}`")))?;
        let missing: Vec<&str> = figure.from.iter().copied().filter(|name| !results.has(name)).collect();
        if missing.is_empty() {
            return (figure.render)(results);
        }
        if body.contains(AWAITS) {
            return Ok(body.to_owned());
        }
        let missing = missing.join(", ");
        Err(Failure::failed(format!(
            "{page}: `{name}` has no results ({missing} in docs/results), and does not say \"{AWAITS}\""
        )))
    })
    .map_err(|why| match why {
        blocks::Broken::Marks(why) => Failure::failed(format!("{page}: {why}")),
        blocks::Broken::Figure(failure) => failure,
    })
}

/// Each measurement, of which commit it is, and how many commits have changed since then what it measures.
fn list() -> Result<(), Failure> {
    let results = Results::read()?;
    let log = Log::create("figures-list")?;
    for measurement in measure::MEASUREMENTS {
        let of = match results.provenance(measurement.name) {
            None => "not measured".to_owned(),
            Some(provenance) => {
                let since = measure::commits_since(&provenance.commit, measurement.subject, &log)?;
                format!("{}, commit {}, {since} commits ago", provenance.date, provenance.commit)
            }
        };
        println!("{:<30} {of:<44} {}", measurement.name, measurement.command());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{FIGURES, measure};
    use crate::figures::results::Results;

    /// A file of each measurement, with all that any table takes from it.
    fn samples() -> Results {
        Results::of(measure::MEASUREMENTS.iter().map(|measurement| {
            let file = json!({
                "commands": [measurement.command()], "machine": "a machine", "date": "2026-11-22", "commit": "abc",
                "figures": {"cells": cells(), "tables": tables(measurement.name), "noise": [],
                            "points": points(measurement.name), "arrivals": arrivals(measurement.name),
                            "lines": lines(), "codecs": [{"name": "prost"}], "data": [{"name": "person-sparse"}],
                            "findings": [{"topic": "Bytes", "text": "Few."}], "answer": "Of 1 claim: 1 confirmed.",
                            "publications": [{"title": "Qt", "source": "a blog", "claims": [{
                                "claim": "It is so.", "published": "7", "verdict": "confirmed", "ours": "8",
                                "cause": "It is."}]}],
                            "stacks": [{"stack": "tonic", "version": "tonic 0.14.9"}]},
            });
            (measurement.name, file)
        }))
    }

    fn lines() -> Value {
        json!([{"shape": "SmallFlat", "direction": "encode", "mb_per_s": 2e3, "times": {"prost": 0.9},
                "data": "person-sparse", "codec": "prost", "operation": "encode", "ns": 12.3}])
    }

    /// Of our server, one call in flight on each connection; of clients with many processors, 256 in flight.
    fn points(measurement: &str) -> Vec<Value> {
        if measurement == "many-processors" {
            let ways = [("thalweg", "adaptive"), ("tonic", "1"), ("tonic", "8")];
            return ways.map(|(client, strategy)| rate_of(client, strategy)).to_vec();
        }
        let point = |connections: u32| {
            json!({"server": "thalweg", "connections": connections, "active": connections, "in_flight": 1,
                   "over_echo": {"ratio": 1.2}, "server_time": {"ns": 7e3, "user_ns": 2600.0}})
        };
        let all: &[u32] = if measurement == "connections" { &[100, 1000, 10_000] } else { &[] };
        all.iter().map(|connections| point(*connections)).collect()
    }

    fn rate_of(client: &str, strategy: &str) -> Value {
        json!({"client": client, "strategy": strategy, "in_flight": 256, "rate_per_s": 1e6})
    }

    fn arrivals(measurement: &str) -> Value {
        match measurement {
            "connections" => json!([{"server": "thalweg", "tls": false, "server_time": {"ns": 39e3}}]),
            _ => json!([]),
        }
    }

    fn cells() -> Vec<Value> {
        let against = |stack: &str| {
            json!({
                "client": stack, "server": stack, "ratio": 2.0, "low": 1.9, "high": 2.1, "verdict": "faster",
            })
        };
        let works = [("unary", 1), ("unary", 4), ("unary", 16), ("unary", 64), ("unary", 256)];
        let streams = ["client-stream", "server-stream", "bidi-stream"].map(|work| (work, 1));
        let mut cells = Vec::new();
        for (work, in_flight) in works.into_iter().chain(streams) {
            for size_bytes in [0, 1 << 10, 64 << 10, 1_500_000, 4 << 20] {
                for connections in [1, 16] {
                    cells.push(json!({
                        "work": work, "in_flight": in_flight, "size_bytes": size_bytes, "rate_per_s": 1e5,
                        "connections": connections, "p50_ns": 1e4, "share_of_socket": 0.8,
                        "against": [against("tonic"), against("grpc-cpp")],
                    }));
                }
            }
        }
        cells
    }

    fn row(name: &'static str, cells: &[&'static str]) -> Vec<&'static str> {
        [&[name], cells].concat()
    }

    fn tables(measurement: &str) -> Value {
        let stacks = |cells: &[&'static str]| {
            ["thalweg", "thalweg-tonic", "tonic", "grpc-cpp"].map(|stack| row(stack, cells))
        };
        let table = |heads: &[&str], rows: &[Vec<&str>]| json!({"title": "", "heads": heads, "rows": rows});
        match measurement {
            "instructions" | "allocations" => {
                json!([table(&["stack", "server", "client"], &stacks(&["3,468", "2.02"]))])
            }
            "memory" => json!([table(&["stack", "B per idle one after a call"], &stacks(&["6,900"]))]),
            "idle" => json!([
                table(&["server", "its RSS"], &stacks(&["5,744"])),
                table(&["stack", "among ÷ alone", "range"], &stacks(&["0.960", "0.860–1.060"])),
            ]),
            "polling" => {
                let rows =
                    ["spinning socket", "thalweg busy", "tonic", "grpc-cpp"].map(|name| row(name, &["4.2"]));
                json!([table(&["", "p50 µs"], &rows), table(&["", "p50 µs"], &rows)])
            }
            "tls" => {
                let unary = table(
                    &["", "calls/s", "range", "ours over TLS ÷ it", "its range"],
                    &[
                        row("tonic TLS", &["9", "8–9", "6.10", "5.90–6.30"]),
                        row("grpc-cpp TLS", &["9", "8–9", "9.20", "9.00–9.40"]),
                    ],
                );
                let stream = table(
                    &["", "calls/s", "range", "ours over TLS ÷ it", "its range"],
                    &[row("rustls alone", &["9", "8–9", "0.90", "0.88–0.92"])],
                );
                let idle = table(
                    &["stack", "B per idle connection after a call"],
                    &[row("thalweg TLS", &["9,700"])],
                );
                let other = || table(&["", "MB/s"], &[row("sealing", &["1"])]);
                json!([unary.clone(), unary, stream.clone(), stream, other(), other(), idle])
            }
            "beside" => {
                let rows = [row("on another connection", &["0.45 (0.31–0.95)"])];
                json!(vec![table(&["stream", "same's p99 ÷ this"], &rows); 4])
            }
            "drop-in" => {
                let heads =
                    ["work", "tonic a second", "both ends", "the client alone", "the server alone", "native"];
                let works = ["unary, 64 in flight, 0 B", "unary, 64 in flight, 0 B, handler of 50 µs"];
                let rows =
                    works.map(|work| row(work, &["50,000", "6.00 (5.90–6.10)", "2.00", "2.00", "12.00"]));
                json!([table(&heads, &rows)])
            }
            "flight" => json!([table(&["batches, MiB/s", "tonic"], &[row("do_get 65536x8", &["900"])])]),
            "generators" => {
                let heads = ["", "calls/s"];
                let mut rounds = table(&heads, &[row("1", &["9"])]);
                rounds["of_rounds"] = true.into();
                json!([
                    table(&heads, &[row("ghz", &["6,000"])]),
                    table(&heads, &[row("ghz", &["1"])]),
                    rounds
                ])
            }
            "hoards" | "same" | "slowed" => json!([table(&["run", "cells"], &[row("1", &["44"])])]),
            _ => json!([]),
        }
    }

    #[test]
    fn every_table_can_be_made_of_what_is_measured() {
        let samples = samples();
        for figure in FIGURES {
            match (figure.render)(&samples) {
                Ok(text) => {
                    let is_told = ["| --- |", "- **", "× tonic"].iter().any(|part| text.contains(part));
                    assert!(is_told, "{}: {text}", figure.name);
                }
                Err(why) => panic!("{}: {why}", figure.name),
            }
        }
        let goals = super::render::goals(&samples).unwrap_or_default();
        assert!(
            goals.contains(
                "| 10,000 idle connections | ≤ 10 KB each; one active within 10 % of alone | \
                                5.7 KB; 0.96 × (0.860–1.060) | yes |"
            ),
            "{goals}"
        );
        let expected = [
            "| ≥ 5 × tonic and gRPC C++ over TLS | 6.10 × (5.90–6.30); 9.20 × (9.00–9.40) | yes |",
            "| ≤ 1.25 × a bare echo's | 1.20, 1.20, 1.20 × | yes |",
            "| its part in user space, 1,000 connections | ≤ 2.5 µs | 2.60 µs | **no** |",
            "| ≤ 40 µs | 39.0 µs | yes |",
            "| ≥ 85 % of rustls alone | 0.90 (0.88–0.92), 0.90 (0.88–0.92) | yes |",
            "| an idle TLS connection that has made a call | ≤ 20 KB | 9.7 KB | yes |",
        ];
        for line in expected {
            assert!(goals.contains(line), "{goals}");
        }
    }

    #[test]
    fn the_pages_have_the_figures_of_the_results_files() {
        if let Err(why) = super::check() {
            panic!("{why}");
        }
    }
}
