//! Small calls beside a stream of 4 MiB messages on the same connection, compared with small calls while the same
//! stream is on another connection: then the processors do the same work, and only the connection is not shared.

use std::path::Path;

use serde_json::Value;

use crate::bench::cores;
use crate::bench::table::{self, Table, median_and_range};
use crate::job::{Failure, Job, Log};
use crate::peers::BuiltPeer;
use crate::server::{Server, free_port};
use crate::test::rust;

const ROUNDS: usize = 6;
/// Who streams, and how many small calls are in flight.
const POINTS: &[(&str, u32)] = &[("client", 1), ("client", 4), ("server", 1), ("server", 4)];

pub(super) fn run(peers: &[BuiltPeer], log: &Log) -> Result<Vec<Table>, Failure> {
    let driver = rust::release_example("thalweg-load", "beside", log)?;
    let mut tables = Vec::new();
    for peer in peers {
        let port = free_port()?;
        let server = Server::start(&peer.serve(port).under(cores::SERVER), port, log)?;
        for &(direction, in_flight) in POINTS {
            let title = format!(
                "Empty unary calls, {in_flight} in flight, beside a {direction} stream of 4 MiB messages over TCP \
                 loopback, Thalweg's client on core 0, {} on core 1; {ROUNDS} rounds, there and back; µs:",
                peer.name
            );
            tables.push(table(title, &point(&driver, port, direction, in_flight, log)?));
        }
        server.stop()?;
    }
    Ok(tables)
}

/// What the driver said of one place of the stream, a value for each round.
#[derive(Debug, Default, PartialEq)]
struct Windows {
    p50_us: Vec<f64>,
    p99_us: Vec<f64>,
    stream_mb_per_s: Vec<f64>,
    calls: f64,
}

const SAME: &str = "same-connection";
const OTHER: &str = "other-connection";
const NONE: &str = "none";

fn point(
    driver: &Path,
    port: u16,
    direction: &str,
    in_flight: u32,
    log: &Log,
) -> Result<[Windows; 3], Failure> {
    let words = format!("127.0.0.1:{port} --stream {direction} -c {in_flight} --rounds {ROUNDS}");
    let job = Job::new(driver).words(&words).under(cores::CLIENT);
    let text = job.text(log)?;
    let read = |place| windows(&text, place);
    match (read(SAME), read(OTHER), read(NONE)) {
        (Some(same), Some(other), Some(none)) => Ok([same, other, none]),
        _ => Err(Failure::failed(format!("`{job}` left keys out"))),
    }
}

/// Picks the lines of one place of the stream.
fn windows(text: &str, place: &str) -> Option<Windows> {
    let mut windows = Windows::default();
    for line in text.lines() {
        let value: Value = serde_json::from_str(line).ok()?;
        if value["stream"] == place {
            windows.p50_us.push(value["p50_ns"].as_f64()? / 1e3);
            windows.p99_us.push(value["p99_ns"].as_f64()? / 1e3);
            windows.stream_mb_per_s.push(value["stream_bytes_per_s"].as_f64()? / 1e6);
            windows.calls += value["calls"].as_f64()?;
        }
    }
    (!windows.p50_us.is_empty()).then_some(windows)
}

fn table(title: String, [same, other, none]: &[Windows; 3]) -> Table {
    let ratios = |to: &Windows| {
        let each = same.p99_us.iter().zip(&to.p99_us).map(|(same, other)| same / other);
        let (median, least, greatest) = median_and_range(each.collect());
        format!("{median:.2} ({least:.2}–{greatest:.2})")
    };
    let row = |name: &str, windows: &Windows| {
        let median = |values: &[f64]| median_and_range(values.to_vec()).0;
        vec![
            name.to_owned(),
            table::grouped(median(&windows.p50_us)),
            table::grouped(median(&windows.p99_us)),
            table::grouped(windows.calls),
            table::grouped(median(&windows.stream_mb_per_s)),
            if std::ptr::eq(windows, same) { String::new() } else { ratios(windows) },
        ]
    };
    let rows = vec![
        row("on the same connection", same),
        row("on another connection", other),
        row("no stream", none),
    ];
    Table::new(title, &["stream", "p50", "p99", "calls", "stream MB/s", "same's p99 ÷ this"], rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drivers_lines_are_sorted_by_place() {
        let line = |place: &str, p99_ns: u32| {
            format!(
                "{{\"round\":0,\"stream\":\"{place}\",\"calls\":10,\"p50_ns\":1000,\"p99_ns\":{p99_ns},\
                 \"stream_bytes_per_s\":2e6}}\n"
            )
        };
        let text = line(SAME, 5000) + &line(OTHER, 4000) + &line(SAME, 7000);
        let same = Windows {
            p50_us: vec![1.0, 1.0],
            p99_us: vec![5.0, 7.0],
            stream_mb_per_s: vec![2.0, 2.0],
            calls: 20.0,
        };
        assert_eq!(windows(&text, SAME), Some(same));
        assert_eq!(windows(&text, NONE), None);
    }
}
