//! A program of tonic's, and the same with one line of its manifest changed: both ends on this transport, one of them,
//! behind a router of axum's, and what the native interface does.

use crate::bench::cores;
use crate::bench::table::{Table, grouped, median_and_range};
use crate::bench::turns::{ratio, there_and_back};
use crate::job::{Failure, Log};
use crate::peers::{BuiltPeer, measure};
use crate::server::{Server, free_port};

const TONIC: &str = "tonic";
const DROP_IN: &str = "thalweg-tonic";
const NATIVE: &str = "thalweg";
pub(super) const PEERS: &[&str] = &[TONIC, DROP_IN, NATIVE];

const ROUNDS: usize = 3;
const WINDOW: &str = "-z 400ms --warmup 200ms --threads 1";

/// The client and the server of a column, with the server's variant. The first is what the others are compared with.
const PAIRS: &[(&str, &str, &str, &str)] = &[
    ("tonic a second", TONIC, TONIC, ""),
    ("both ends", DROP_IN, DROP_IN, ""),
    ("behind axum", DROP_IN, DROP_IN, "--variant axum"),
    ("the client alone", DROP_IN, TONIC, ""),
    ("the server alone", TONIC, DROP_IN, ""),
    ("native", NATIVE, NATIVE, ""),
];

const CALLS: &[(&str, &str)] = &[
    ("unary, one at a time", "--call unary -c 1"),
    ("unary, 64 in flight", "--call unary -c 64"),
    ("client stream", "--call client-stream"),
    ("server stream", "--call server-stream"),
    ("bidi stream", "--call bidi-stream"),
];
const SIZES: &[(&str, u32)] = &[("0 B", 0), ("1 KiB", 1 << 10), ("64 KiB", 64 << 10), ("1.5 MB", 1_500_000)];

/// The work of the row whose handler computes.
const HANDLER: &str = "unary, 64 in flight, 0 B, handler of 50 µs";

struct Row<'p> {
    client: &'p BuiltPeer,
    port: u16,
    _server: Server,
}

pub(super) fn run(peers: &[BuiltPeer], log: &Log) -> Result<Vec<Table>, Failure> {
    let find = |name: &str| {
        let peer = peers.iter().find(|peer| peer.name == name);
        peer.ok_or_else(|| Failure::failed(format!("{} are compared: name all of them", PEERS.join(", "))))
    };
    let start = |(_, client, server, variant): &(&str, &str, &str, &str), work: &str| {
        let port = free_port()?;
        let serve = find(server)?.serve(port).words("--threads 1").words(variant).words(work);
        let server = Server::start(&serve.under(cores::SERVER), port, log)?;
        Ok(Row { client: find(client)?, port, _server: server })
    };
    let start_all = |work| PAIRS.iter().map(|pair| start(pair, work)).collect::<Result<Vec<_>, Failure>>();
    let compare = |work: &str, flags: &str, rows: &[Row<'_>]| {
        let window = |row: &Row<'_>| {
            let load = row.client.load(row.port, &format!("{flags} {WINDOW}"));
            Ok(measure(load.under(cores::CLIENT), log)?.rate_per_s)
        };
        let rounds =
            (0..ROUNDS).map(|_| there_and_back(rows, window)).collect::<Result<Vec<_>, Failure>>()?;
        Ok::<_, Failure>(line(work, &rounds))
    };
    let rows = start_all("")?;
    let mut lines = Vec::new();
    for (call, flags) in CALLS {
        for (size, bytes) in SIZES {
            lines.push(compare(&format!("{call}, {size}"), &format!("{flags} --size {bytes}"), &rows)?);
        }
    }
    drop(rows);
    let rows = start_all("--work 50us")?;
    lines.push(compare(HANDLER, "--call unary -c 64 --size 0", &rows)?);
    let title = format!(
        "Calls or messages of tonic's a second, and how many times as many there are on this transport (median of \
         {ROUNDS} rounds, there and back, and range); one connection over TCP loopback, client on core 0, server on \
         core 1:"
    );
    let mut heads = vec!["work"];
    heads.extend(PAIRS.iter().map(|(head, ..)| head));
    Ok(vec![Table::new(title, &heads, lines)])
}

fn line(work: &str, rounds: &[Vec<f64>]) -> Vec<String> {
    let (rate, ..) = median_and_range(rounds.iter().map(|round| round[0]).collect());
    let mut cells = vec![work.to_owned(), grouped(rate)];
    cells.extend((1..PAIRS.len()).map(|row| {
        let (median, least, greatest) = ratio(rounds, row, 0);
        format!("{median:.2} ({least:.2}–{greatest:.2})")
    }));
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_columns_are_over_the_first() {
        let rounds = [vec![1000.0, 5000.0, 3000.0, 2000.0, 1500.0, 9000.0], vec![2000.0; 6]];
        assert_eq!(
            line("unary", &rounds),
            [
                "unary",
                "1,500",
                "3.00 (1.00–5.00)",
                "2.00 (1.00–3.00)",
                "1.50 (1.00–2.00)",
                "1.25 (1.00–1.50)",
                "5.00 (1.00–9.00)"
            ]
        );
    }
}
