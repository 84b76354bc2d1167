//! Time of an empty unary call with each stack: alone, with a handler that computes, and over a link with a round trip.
//! The table puts a ratio next to the time that it saves.

use super::pair::Pair;
use super::table::Table;
use super::turns::{column, fixed, forward_and_reverse, ratio};
use crate::failure::Result;
use crate::job::Job;
use crate::peers::BuiltPeer;
use crate::server::Server;

const ROUNDS: usize = 3;
const WINDOW: &str = "--size 0 -z 400ms --warmup 200ms --threads 1";
/// Calls in flight: one at a time, and enough to saturate both cores.
const IN_FLIGHT: [u32; 2] = [1, 64];
/// Work before each response, with the server's flags for it.
const HANDLERS: &[(&str, &str)] = &[
    ("nothing else", ""),
    ("a handler that computes for 10 µs", "--work 10us"),
    ("a handler that computes for 50 µs", "--work 50us"),
    ("a handler that computes for 200 µs", "--work 200us"),
];
const LINK: &str = "a link with a round trip of 0.5 ms";
const LINK_FLAGS: &str = "--delay 250us";

struct Row<'p> {
    pair: Pair<'p>,
    /// Proxy in front of the server.
    link: Option<Server>,
}

pub(super) fn run(peers: &[BuiltPeer]) -> Result<Vec<Table>> {
    let Some((ours, others)) = peers.split_first().filter(|(ours, _)| ours.name == "thalweg") else {
        bail!("thalweg is compared with the others; name it first");
    };
    let direct = |peer, flags: &str| {
        Ok(Row { pair: Pair::start(peer, peer, &format!("--threads 1 {flags}"))?, link: None })
    };
    let linked = |peer| {
        let row: Row<'_> = direct(peer, "")?;
        let to = row.pair.server.address();
        let link = Server::start(|port| {
            Job::new(&ours.program).words(&format!("link --listen 127.0.0.1:{port} --to {to} {LINK_FLAGS}"))
        })?;
        Ok(Row { link: Some(link), ..row })
    };
    let mut lines = Vec::new();
    for (behind, flags) in HANDLERS {
        let rows = peers.iter().map(|peer| direct(peer, flags)).collect::<Result<Vec<_>>>()?;
        lines.extend(compared(behind, &rows, others)?);
    }
    let rows = peers.iter().map(linked).collect::<Result<Vec<_>>>()?;
    lines.extend(compared(LINK, &rows, others)?);
    let title = format!(
        "Time of an empty unary call in µs (of 64 in flight, the time divided by the number of calls), one connection \
         over TCP loopback, client on core 0, server on core 1; medians of {ROUNDS} rounds, in alternating order, and \
         ranges of the ratios:"
    );
    let columns = ["call behind", "in flight", "thalweg"].map(str::to_owned).into_iter();
    let of_others = others.iter().flat_map(|peer| {
        [peer.name.to_owned(), format!("saved relative to {}", peer.name), format!("÷ {}", peer.name)]
    });
    let columns: Vec<String> = columns.chain(of_others).collect();
    Ok(vec![Table::new(title, columns.iter().map(String::as_str), lines)])
}

/// One line per number of calls in flight.
fn compared(behind: &str, rows: &[Row<'_>], others: &[BuiltPeer]) -> Result<Vec<Vec<String>>> {
    let line = |in_flight: u32| {
        let flags = format!("--call unary -c {in_flight} {WINDOW}");
        let times = forward_and_reverse(ROUNDS, rows, |row| {
            let address = row.link.as_ref().map_or_else(|| row.pair.server.address(), Server::address);
            Ok(1e6 / row.pair.measure_at(&address, &flags)?.rate_per_s)
        })?;
        Ok(line(behind, in_flight, &times, others.len()))
    };
    IN_FLIGHT.into_iter().map(line).collect()
}

/// Formats the times of each round, ours first.
fn line(behind: &str, in_flight: u32, times_us: &[Vec<f64>], others: usize) -> Vec<String> {
    let ours = column(times_us, 0).median;
    let of_other = |other: usize| {
        let theirs = column(times_us, other).median;
        [fixed(2)(theirs), fixed(2)(theirs - ours), ratio(times_us, other, 0).show(fixed(2))]
    };
    let first = [behind.to_owned(), in_flight.to_string(), fixed(2)(ours)].into_iter();
    first.chain((1..=others).flat_map(of_other)).collect()
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn saved_time_and_ratio_are_computed() {
        let times = [vec![2.0, 10.0], vec![2.0, 12.0], vec![4.0, 12.0]];
        let expected = ["nothing else", "64", "2.00", "12.00", "10.00", "5.00 (3.00–6.00)"];
        assert_eq!(line("nothing else", 64, &times, 1), expected);
    }
}
