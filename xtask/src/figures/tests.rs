//! Figures of small results files.

use serde_json::{Value, json};

use super::render::Tables;
use super::results::Results;

/// Renders a figure from results files with these figures.
fn render(figure: &str, files: &[(&'static str, Value)]) -> String {
    let file = |figures: &Value| {
        json!({"commands": ["a command"], "machine": "m", "date": "d", "commit": "c",
                                     "figures": figures})
    };
    let results = Results::of(files.iter().map(|(name, figures)| (*name, file(figures))));
    let costs =
        json!({"costs": [{"case": "unary-1", "side": "client", "instructions": 5e3, "allocations": 2}]});
    let tables = Tables::of(&results, &costs).unwrap();
    tables.render(figure).unwrap_or_else(|why| panic!("{why}"))
}

/// A comparison with `ratio` ± 10 %.
fn compared(ratio: f64, verdict: &str) -> Value {
    json!({"ratio": ratio, "low": ratio * 0.9, "high": ratio * 1.1, "verdict": verdict})
}

/// The ratio of ours to a pair of stacks.
fn pair(client: &str, server: &str, of_ours: Value, replaced: Value) -> Value {
    let mut pair = of_ours;
    (pair["client"], pair["server"], pair["replaced"]) = (json!(client), json!(server), replaced);
    pair
}

fn check(figure: &str, files: &[(&'static str, Value)], end: &str) {
    let text = render(figure, files);
    assert!(text.trim_end().ends_with(end), "{text}");
}

#[test]
fn pages_match_the_results_files() {
    if let Err(why) = super::check() {
        panic!("{why}");
    }
}

#[test]
fn missing_results_file_is_an_error() {
    let tables = Tables::of(&Results::of([]), &json!({"costs": []})).unwrap();
    assert!(tables.render("ends").is_err());
    assert!(tables.render("idle").is_err());
    assert!(tables.render("no such figure").is_err());
}

#[test]
fn page_of_a_fleet_has_its_tables() {
    let table =
        json!({"title": "Calls:", "heads": ["case", "client"], "rows": [["nothing happens", "tonic"]]});
    let end =
        "*d; commit `c`; m.*\n\nCalls:\n\n| case | client |\n| --- | --- |\n| nothing happens | tonic |";
    check("fleet-page", &[("fleet", json!({"tables": [table]}))], end);
}

#[test]
fn printed_table_has_display_names_and_no_rounds() {
    let table =
        json!({"title": "Calls:", "heads": ["stack", "B"], "rows": [["grpc-cpp TLS", "6,900"], ["", "1"]]});
    let rounds = json!({"title": "Rounds:", "heads": ["1"], "rows": [], "of_rounds": true});
    check(
        "memory",
        &[("memory", json!({"tables": [rounds, table]}))],
        "*d; commit `c`; m.*\n\nCalls:\n\n| stack | B |\n| --- | --- |\n| gRPC C++ over TLS | 6,900 |\n| | 1 |",
    );
}

#[test]
fn comparison_has_a_row_per_cell() {
    let against =
        |ratio: f64, verdict: &str| json!([pair("tonic", "tonic", compared(ratio, verdict), json!(null))]);
    let figures = json!({
        "stacks": [{"stack": "thalweg", "version": "0.1.0"}, {"stack": "tonic", "version": "tonic 0.14.9"}],
        "noise": [{"work": "unary", "in_flight": 1, "ratio": 1.11}],
        "cells": [
            {"work": "unary", "in_flight": 1, "size_bytes": 0, "rate_per_s": 8600.0, "p50_ns": 116_000.0,
             "share_of_socket": 0.79, "against": against(1.76, "faster")},
            {"work": "unary", "in_flight": 1, "size_bytes": 1024, "rate_per_s": 7000.0, "p50_ns": 143_000.0,
             "share_of_socket": null, "against": against(1.02, "no difference")},
            {"work": "bidi-stream", "in_flight": 1, "size_bytes": 0, "rate_per_s": 4.6e6, "p50_ns": 1.0,
             "share_of_socket": 0.22, "against": []},
        ],
    });
    check(
        "comparison-tcp",
        &[("comparison-tcp", figures)],
        "Noise floor: 11 % for unary, one at a time.\n\n\
         | work, size | Thalweg | ÷ tonic 0.14.9 | of the bare socket |\n\
         | --- | --- | --- | --- |\n\
         | unary, one at a time, 0 B | 116 µs | 1.76 (1.58–1.94) | 79 % |\n\
         | 1 KiB | 143 µs | = 1.02 (0.92–1.12) | |\n\
         | bidi stream, 0 B | 4.60 M/s | – | 22 % |",
    );
}

#[test]
fn slower_ends_are_marked() {
    let cell = json!({
        "work": "client-stream", "in_flight": 16, "connections": 16, "size_bytes": 1024, "rate_per_s": 2e6,
        "against": [
            pair("tonic", "tonic", compared(1.5, "faster"), json!(null)),
            pair("thalweg", "tonic", compared(1.25, "faster"), compared(1.2, "cannot tell")),
            pair("tonic", "thalweg", compared(2.0, "faster"), compared(0.75, "slower")),
        ],
    });
    let stacks = [json!({"stack": "tonic", "version": "tonic 0.14.9"})];
    check(
        "ends",
        &[("ends", json!({"stacks": stacks, "noise": [], "cells": [cell]}))],
        "| work | connections | ours per second | ours is | ÷ tonic 0.14.9 |\n\
         | --- | --- | --- | --- | --- |\n\
         | client stream, 1 KiB | 16 | 2.00 M/s | both ends | 1.50 (1.35–1.65) |\n\
         | | | | the client | ? 1.20 (1.08–1.32) |\n\
         | | | | the server | ▼ 0.75 (0.68–0.83) |",
    );
}

#[test]
fn adaptive_channel_is_compared_with_the_best_number() {
    let point = |strategy: &str, rate: f64| {
        json!({"work": "unary", "round_trip_ns": 0, "in_flight": 4,
                                                    "strategy": strategy, "rate_per_s": rate})
    };
    let points = [point("adaptive", 90e3), point("1", 100e3), point("2", 50e3)];
    let best = json!({"connections": 1, "ratio": 0.9, "low": 0.8, "high": 1.01, "verdict": "cannot tell"});
    let load = json!({"work": "unary", "round_trip_ns": 0, "in_flight": 4, "adaptive_over_best": best});
    check(
        "lanes",
        &[("lanes", json!({"points": points, "loads": [load]}))],
        "\n| unary | none | 4 | 90.0 k | 100 k | 50.0 k | – | ? 0.90 (0.80–1.01) of 1 |",
    );
}

#[test]
fn other_rates_are_relative_to_the_adaptive_channel() {
    let point = |client: &str, strategy: &str, in_flight: u64, rate_per_s: f64| {
        json!({
        "client": client, "strategy": strategy, "in_flight": in_flight, "rate_per_s": rate_per_s})
    };
    let points = [
        point("thalweg", "adaptive", 64, 2e6),
        point("thalweg", "1", 64, 5e5),
        point("grpc-cpp:own", "8", 64, 1e5),
        point("grpc-cpp:own", "8", 256, 1e5),
    ];
    let stacks = [json!({"stack": "grpc-cpp", "version": "gRPC C++ 1.51.1"})];
    check(
        "many-processors",
        &[("many-processors", json!({"stacks": stacks, "points": points}))],
        "| Thalweg | as many as help | 2.00 M | – |\n\
         | Thalweg | one | 500 k | – |\n\
         | gRPC C++ 1.51.1 | 8, of channels with pools of their own | 100 k (20) | 100 k |",
    );
}

#[test]
fn noise_is_listed_by_figure_with_doubts_below() {
    let floor =
        |of: &str, message: &str, ratio: f64| json!({"of": of, "message": message, "noise_ratio": ratio});
    let noise =
        [floor("latency", "person", 1.05), floor("rate", "person", 1.12), floor("rate", "order", 1.2)];
    let doubts = ["Other programs ran.", "spring: no Java here"];
    let text =
        render("json", &[("json", json!({"answer": "So.", "noise": noise, "doubts": doubts, "cells": []}))]);
    assert!(text.contains("Noise floor: 12 % (person), 20 % (order); where"), "{text}");
    assert!(text.contains("spikes included. Noise floor: 5.0 % (person)."), "{text}");
    assert!(text.ends_with("\n\n- Other programs ran.\n- spring: no Java here\n"), "{text}");
}

#[test]
fn connections_with_fewest_calls_have_rows() {
    let point = |connections: u64, active: u64, in_flight: u64| {
        json!({"connections": connections, "active": active, "in_flight": in_flight, "server": "thalweg",
               "server_time": {"ns": 4200.0, "user_ns": 1200.0, "system_ns": 3000.0},
               "over_echo": {"ratio": 1.6, "low": 1.5, "high": 1.7}, "ours_over": null, "p50_ns": 9e4,
               "p99_ns": 2e5, "idle_bytes": 5700.0, "jain": 0.997})
    };
    let arrival = json!({"server": "tonic", "tls": true, "rate_per_s": 9e3, "server_time": {"ns": 5e5},
                         "client_time": {"ns": 6e5}, "ours_over": {"ratio": 0.5}});
    let points = [point(100, 10, 1), point(100, 100, 1), point(100, 100, 4)];
    let table = render("connections", &[("connections", json!({"points": points, "arrivals": [arrival]}))]);
    let row = "| 100 | thalweg | 4.20 µs | 1.60 (1.50–1.70) | – | 1.20 µs, 3.00 µs | 90.0 µs | 200 µs | 5.7 KB | \
               0.997 |";
    assert_eq!(table.matches("| thalweg |").count(), 1, "{table}");
    assert!(table.contains(row), "{table}");
    assert!(table.ends_with("| tonic | TLS | 9.00 k | 500 µs | 600 µs | 0.50 |\n"), "{table}");
}

#[test]
fn differing_trees_have_rows_and_the_total_is_last() {
    let tree = |name: &str, verdicts: Value| json!({"name": name, "files": 3, "verdicts": verdicts});
    let trees = [
        tree("a", json!({"equal with source info": 2, "refused": 1})),
        tree("c", json!({"equal with source info": 3})),
        tree("b", json!({"equal with source info": 1, "equal": 1, "verdict": 1})),
    ];
    let page = render("protos", &[("protos", json!({"protoc": "36.2", "trees": trees}))]);
    assert!(page.contains("at the same place: a (3); c (3)\n\n"), "{page}");
    assert!(page.ends_with("| b | 3 | 2 | 1 | 0 |\n| all trees | 9 | 7 | 6 | 1 |"), "{page}");
}

/// The README's table, for this ratio of the drop-in server to tonic's with a handler that computes.
fn speed(server: &str) -> String {
    let exact = |ratio: f64| json!({"ratio": ratio, "low": ratio, "high": ratio, "verdict": "faster"});
    let cell = |size_bytes: u64, connections: u64, [both, client, server]: [f64; 3]| {
        let against = [
            pair("tonic", "tonic", exact(both), json!(null)),
            pair("thalweg", "tonic", exact(9.0), exact(client)),
            pair("tonic", "thalweg", exact(9.0), exact(server)),
        ];
        json!({"work": "unary", "in_flight": 64, "connections": connections, "size_bytes": size_bytes,
            "rate_per_s": 2e6, "against": against})
    };
    let ends = json!({
        "stacks": [{"stack": "tonic", "version": "tonic 0.14.9"}],
        "noise": [{"work": "unary", "connections": 1, "in_flight": 64, "ratio": 1.08}],
        "cells": [cell(0, 1, [20.0, 2.0, 1.5]), cell(0, 16, [6.0, 1.3, 1.0]), cell(1024, 16, [3.0, 0.75, 0.8])],
    });
    let drop_in = json!({"tables": [{
        "heads": ["work", "tonic a second", "both ends", "the client alone", "the server alone", "native"],
        "rows": [
            ["unary, 64 in flight, 0 B", "50,000", "7.00 (6.00–8.00)", "2.00", "2.00", "13.00"],
            ["unary, 64 in flight, 0 B, handler of 50 µs", "14,000", "1.30", "1.20", server, "1.40 (1.30–1.50)"],
        ],
    }]});
    let rows = [["thalweg", "3,733"], ["tonic", "47,257"], ["grpc-cpp", "53,424"]];
    let instructions = json!({"tables": [{"heads": ["stack", "server"], "rows": rows}]});
    let saved = json!({"tables": [{"rows": [
        ["nothing else", "1", "11.00", "104.00", "93.00", "9.45"],
        ["nothing else", "64", "0.70", "14.00", "13.30", "20.00"],
    ]}]});
    let rows = [["thalweg asleep", "59.1"], ["tonic", "98.0"], ["spinning socket", "7.7"]];
    let polling = json!({"tables": [{"heads": ["", "p50 µs"], "rows": rows}]});
    let results = [
        ("ends", ends),
        ("drop-in", drop_in),
        ("instructions", instructions),
        ("saved", saved),
        ("polling", polling),
    ];
    let text = render("speed", &results);
    let (table, rest) = text.split_once("\n\n").unwrap();
    let (saved, rest) = rest.trim_start().split_once("\n\n").unwrap();
    let lone = "| nothing else | 1 | 11.00 µs | 104.00 µs | 93.00 µs | 9.45 |";
    assert_eq!(saved.lines().skip(2).collect::<Vec<_>>(), [lone]);
    let asleep =
        "Without busy polling a lone call takes 59.1 µs (tonic 98.0; a bare socket that spins 7.7; [saved]";
    let costs = "An empty call costs the server 3,733 instructions (tonic 47,257, gRPC C++ 53,424; [instr";
    assert!(rest.trim_start().starts_with(asleep) && rest.contains(costs), "{rest}");
    table.to_owned()
}

#[test]
fn lowest_ratio_of_both_results_has_a_row() {
    assert_eq!(
        speed("1.10"),
        "| 64 calls in flight (noise floor 8.0 %) | Thalweg | ÷ tonic 0.14.9 |\n\
         | --- | --- | --- |\n\
         | both ends | 2.00 M/s, 500 ns each | 20 (20–20) |\n\
         | client only | | 2.0 (2.0–2.0) |\n\
         | server only | | 1.50 (1.50–1.50) |\n\
         | both ends, 16 connections | 2.00 M/s, 500 ns each | 6.0 (6.0–6.0) |\n\
         | tonic's API with one line changed, both ends | 350 k/s, 2.86 µs each | 7.00 (6.00–8.00) |\n\
         | lowest ratio: unary, 64 in flight, 1 KiB, 16 connections, client only | | 0.75 (0.75–0.75) |"
    );
    let last = "| lowest ratio: unary, 64 in flight, 0 B, handler of 50 µs, tonic's API, server only | | \
                ▼ 0.64 (0.50–0.90) |";
    assert_eq!(speed("0.64 (0.50–0.90)").lines().last(), Some(last));
}

#[test]
fn losses_are_slower_cells_and_variants() {
    let name =
        |stack: &str, ratio: f64, verdict: &str| pair(stack, stack, compared(ratio, verdict), json!(null));
    let cell = json!({
        "work": "unary", "in_flight": 1, "connections": 1, "size_bytes": 0, "transport": "uds",
        "against": [
            name("tonic", 6.0, "faster"),
            name("grpc-cpp", 0.5, "slower"),
            name("thalweg:no-busy-poll", 8.0, "faster"),
            pair("tonic", "thalweg", compared(2.0, "faster"), compared(0.8, "slower")),
        ],
    });
    let none = || json!({"cells": []});
    check(
        "losses",
        &[
            ("comparison-tcp", none()),
            ("comparison-uds", json!({"cells": [cell]})),
            ("in-flight-64", none()),
            ("in-flight-256", none()),
            ("in-flight-256-connections-16", none()),
            ("ends", none()),
        ],
        "| work | transport | connections | ours is | peer | ours ÷ peer's |\n\
         | --- | --- | --- | --- | --- | --- |\n\
         | unary, one at a time, 0 B | UDS | 1 | the server | tonic | 0.80 (0.72–0.88) |\n\
         | unary, one at a time, 0 B | UDS | 1 | both ends, no busy polling | tonic | 0.75 |\n\
         | unary, one at a time, 0 B | UDS | 1 | both ends | gRPC C++ | 0.50 (0.45–0.55) |\n\
         | unary, one at a time, 0 B | UDS | 1 | both ends, no busy polling | gRPC C++ | 0.06 |",
    );
}
