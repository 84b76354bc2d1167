//! Calls per second of whole pairs, client and server of the same stack, one core a side.
//!
//! The machine's speed drifts, so the stacks take turns in short windows, there and back again (A B C C B A): what is
//! compared are windows of the same round, and the result is a ratio with its spread.

use crate::bench::table::{self, grouped, median_and_range};
use crate::bench::{CLIENT_CORE, SERVER_CORE};
use crate::job::{Failure, Log};
use crate::peers::{BuiltPeer, LoadResult, measure};
use crate::server::{Server, free_port};

/// One load: connections and calls in flight over all of them.
const POINTS: &[(u32, u32)] = &[(1, 1), (1, 16), (1, 64), (1, 256), (4, 64)];
/// Each round measures every stack twice.
const ROUNDS: usize = 5;
const WINDOW: &str = "-z 500ms --warmup 200ms";

struct Pair<'p> {
    peer: &'p BuiltPeer,
    port: u16,
    /// Kept for as long as the pair is measured.
    _server: Server,
}

pub(super) fn run(peers: &[BuiltPeer], log: &Log) -> Result<(), Failure> {
    let start = |peer| {
        let port = free_port()?;
        let server = Server::start(&BuiltPeer::serve(peer, port).under(SERVER_CORE), port, log)?;
        Ok(Pair { peer, port, _server: server })
    };
    let pairs = peers.iter().map(start).collect::<Result<Vec<_>, Failure>>()?;

    println!(
        "Empty unary calls over TCP loopback, client on core 0, server on core 1; {ROUNDS} rounds, there and back:"
    );
    for &(connections, in_flight) in POINTS {
        println!("\n{connections} connection(s), {in_flight} in flight");
        let rounds =
            (0..ROUNDS).map(|_| round(&pairs, connections, in_flight, log)).collect::<Result<Vec<_>, _>>()?;
        print(&pairs, &rounds);
    }
    Ok(())
}

/// The mean rate and p50 of each pair over its two windows of one round.
fn round(
    pairs: &[Pair<'_>],
    connections: u32,
    in_flight: u32,
    log: &Log,
) -> Result<Vec<(f64, f64)>, Failure> {
    let window = |pair: &Pair<'_>| {
        let words = format!("-c {in_flight} --connections {connections} {WINDOW}");
        measure(pair.peer.load(pair.port, &words).under(CLIENT_CORE), log)
    };
    let there = pairs.iter().map(window).collect::<Result<Vec<_>, _>>()?;
    let mut back = pairs.iter().rev().map(window).collect::<Result<Vec<_>, _>>()?;
    back.reverse();
    let mean = |(one, other): (&LoadResult, &LoadResult)| {
        (f64::midpoint(one.rate_per_s, other.rate_per_s), f64::midpoint(one.p50_ns, other.p50_ns))
    };
    Ok(there.iter().zip(&back).map(mean).collect())
}

fn print(pairs: &[Pair<'_>], rounds: &[Vec<(f64, f64)>]) {
    let row = |(index, pair): (usize, &Pair<'_>)| {
        let (rate, least, greatest) = median_and_range(rounds.iter().map(|round| round[index].0).collect());
        let (p50_ns, ..) = median_and_range(rounds.iter().map(|round| round[index].1).collect());
        let ratios = rounds.iter().map(|round| round[0].0 / round[index].0).collect();
        let (ratio, ratio_least, ratio_greatest) = median_and_range(ratios);
        vec![
            pair.peer.name.to_owned(),
            grouped(rate),
            format!("{}–{}", grouped(least), grouped(greatest)),
            format!("{:.1}", p50_ns / 1e3),
            format!("{ratio:.2}"),
            format!("{ratio_least:.2}–{ratio_greatest:.2}"),
        ]
    };
    let rows: Vec<Vec<String>> = pairs.iter().enumerate().map(row).collect();
    let ratio = format!("{} ÷ it", pairs[0].peer.name);
    table::print(&["stack", "calls/s", "range", "p50 µs", &ratio, "range"], &rows);
}
