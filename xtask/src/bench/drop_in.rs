//! A tonic program, the same program with one line of its manifest changed, and the same program with tonic replaced in
//! its whole tree. Measures both ends on this transport, one end, behind an axum router, and the native API for
//! comparison.

use super::pair::Pair;
use super::table::{Table, grouped};
use super::turns::{column, fixed, forward_and_reverse, ratio};
use crate::failure::Result;
use crate::peers::BuiltPeer;

const TONIC: &str = "tonic";
const ONE_LINE: &str = "thalweg-tonic";
const PATCHED: &str = "tonic-patched";
const NATIVE: &str = "thalweg";
pub(super) const PEERS: &[&str] = &[TONIC, ONE_LINE, PATCHED, NATIVE];

const ROUNDS: usize = 3;
const WINDOW: &str = "-z 400ms --warmup 200ms --threads 1";

/// Heading, client and server of a column, and the server's variant. The first is the baseline.
type Columns<'a> = [(&'a str, &'a str, &'a str, &'a str); 6];

fn columns(drop_in: &str) -> Columns<'_> {
    [
        ("tonic a second", TONIC, TONIC, ""),
        ("both ends", drop_in, drop_in, ""),
        ("behind axum", drop_in, drop_in, "--variant axum"),
        ("the client alone", drop_in, TONIC, ""),
        ("the server alone", TONIC, drop_in, ""),
        ("native", NATIVE, NATIVE, ""),
    ]
}

const UNARY: &[(&str, &str)] =
    &[("unary, one at a time", "--call unary -c 1"), ("unary, 64 in flight", "--call unary -c 64")];
const STREAMS: &[(&str, &str)] = &[
    ("client stream", "--call client-stream"),
    ("server stream", "--call server-stream"),
    ("bidi stream", "--call bidi-stream"),
];
const SIZES: &[(&str, u32)] = &[("0 B", 0), ("1 KiB", 1 << 10), ("64 KiB", 64 << 10), ("1.5 MB", 1_500_000)];

/// Keeps freed memory in both processes. Otherwise a tonic that sends small messages of a stream, and whose queue runs
/// empty, returns the top of its heap to the kernel each time, and page faults slow it down.
const KEEPS_HEAP: &str = "MALLOC_TRIM_THRESHOLD_=67108864";

/// The load of the row whose handler computes.
const HANDLER: &str = "unary, 64 in flight, 0 B, handler of 50 µs";

pub(super) fn run(peers: &[BuiltPeer]) -> Result<Vec<Table>> {
    let ways = [(ONE_LINE, "one line of the manifest changed"), (PATCHED, "tonic replaced by `[patch]`")];
    ways.iter().map(|(drop_in, change)| table(peers, &columns(drop_in), change)).collect()
}

fn table(peers: &[BuiltPeer], columns: &Columns<'_>, change: &str) -> Result<Table> {
    let find = |name: &str| {
        let peer = peers.iter().find(|peer| peer.name == name);
        peer.ok_or_else(|| failed!("{} are compared; name all of them", PEERS.join(", ")))
    };
    let start = |variable: &str, work: &str| {
        let pair = |(_, client, server, variant): &(&str, &str, &str, &str)| {
            let flags = format!("--threads 1 {variant} {work}");
            Pair::start_with(variable, find(client)?, find(server)?, &flags)
        };
        columns.iter().map(pair).collect::<Result<Vec<_>>>()
    };
    let compare = |work: &str, flags: &str, pairs: &[Pair<'_>]| {
        forward_and_reverse(ROUNDS, pairs, |pair| pair.rate(&format!("{flags} {WINDOW}")))
            .map(|rounds| line(work, &rounds))
    };
    let mut lines = Vec::new();
    let pairs = start("", "")?;
    for (call, flags) in UNARY.iter().chain(STREAMS) {
        for (size, bytes) in SIZES {
            lines.push(compare(&format!("{call}, {size}"), &format!("{flags} --size {bytes}"), &pairs)?);
        }
    }
    drop(pairs);
    lines.push(compare(HANDLER, "--call unary -c 64 --size 0", &start("", "--work 50us")?)?);
    let pairs = start(KEEPS_HEAP, "")?;
    for (call, flags) in STREAMS {
        let flags = format!("{flags} --size 1024");
        lines.push(compare(&format!("{call}, 1 KiB, freed memory is kept"), &flags, &pairs)?);
    }
    let title = format!(
        "Calls or messages per second on tonic, and the rate with {change} as a multiple of that (median of \
         {ROUNDS} rounds, in alternating order, and range); one connection over TCP loopback, client on core 0, \
         server on core 1. In the last rows, `{KEEPS_HEAP}`:"
    );
    Ok(Table::new(title, ["work"].into_iter().chain(columns.iter().map(|column| column.0)), lines))
}

fn line(work: &str, rounds: &[Vec<f64>]) -> Vec<String> {
    let ratios = (1..columns(ONE_LINE).len()).map(|row| ratio(rounds, row, 0).show(fixed(2)));
    [work.to_owned(), grouped(column(rounds, 0).median)].into_iter().chain(ratios).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_divided_by_the_first() {
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
