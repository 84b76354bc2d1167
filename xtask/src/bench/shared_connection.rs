//! Small calls that share a connection with a stream of 4 MiB messages, compared with small calls while the stream is
//! on another connection. The processors do the same work; only the connection is not shared.

use serde_json::Value;

use super::pair::{CLIENT, SERVER};
use super::table::{Table, grouped};
use super::turns::{Spread, fixed};
use crate::failure::Result;
use crate::job::Job;
use crate::peers::BuiltPeer;
use crate::server::Server;
use crate::test::rust;

const ROUNDS: usize = 6;
/// The streaming side, and the number of small calls in flight.
const POINTS: &[(&str, u32)] = &[("client", 1), ("client", 4), ("server", 1), ("server", 4)];
/// Location of the stream, as named by the driver and by the table.
const PLACES: [(&str, &str); 3] = [
    ("same-connection", "on the same connection"),
    ("other-connection", "on another connection"),
    ("none", "no stream"),
];

pub(super) fn run(peers: &[BuiltPeer]) -> Result<Vec<Table>> {
    let driver = rust::release_example("thalweg-load", "interference")?;
    let mut tables = Vec::new();
    for peer in peers {
        let server = Server::start(|port| peer.serve(port).under(SERVER))?;
        for &(direction, in_flight) in POINTS {
            let title = format!(
                "Empty unary calls, {in_flight} in flight, next to a {direction} stream of 4 MiB messages over TCP \
                 loopback, Thalweg's client on core 0, {} on core 1; {ROUNDS} rounds, in alternating order; µs:",
                peer.name
            );
            let words = format!("{} --stream {direction} -c {in_flight} --rounds {ROUNDS}", server.address());
            let job = Job::new(&driver).words(&words).under(CLIENT);
            let rows = rows(&job.text()?).ok_or_else(|| failed!("`{job}` did not print all keys"))?;
            let columns = ["stream", "p50", "p99", "calls", "stream MB/s", "same's p99 ÷ this"];
            tables.push(Table::new(title, columns, rows));
        }
        server.stop()?;
    }
    Ok(tables)
}

/// One row per location of the stream, from one line per location and round.
fn rows(text: &str) -> Option<Vec<Vec<String>>> {
    let lines: Vec<Value> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>().ok()?;
    let values = |place: &str, key: &str| -> Option<Vec<f64>> {
        lines.iter().filter(|line| line["stream"] == place).map(|line| line[key].as_f64()).collect()
    };
    let same = values(PLACES[0].0, "p99_ns")?;
    let row = |(place, name): &(&str, &str)| {
        let median = |key: &str, unit: f64| {
            Some(grouped(values(place, key)?.into_iter().collect::<Spread>().median / unit))
        };
        let p99 = values(place, "p99_ns").filter(|values| !values.is_empty())?;
        let ratio: Spread = same.iter().zip(&p99).map(|(same, this)| same / this).collect();
        Some(vec![
            (*name).to_owned(),
            median("p50_ns", 1e3)?,
            median("p99_ns", 1e3)?,
            grouped(values(place, "calls")?.iter().sum()),
            median("stream_bytes_per_s", 1e6)?,
            if *place == PLACES[0].0 { String::new() } else { ratio.show(fixed(2)) },
        ])
    };
    PLACES.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::rows;

    #[test]
    fn rows_are_grouped_by_stream_place() {
        let line = |place: &str, p99_ns: u32| {
            format!(
                "{{\"round\":0,\"stream\":\"{place}\",\"calls\":10,\"p50_ns\":1000,\"p99_ns\":{p99_ns},\
                 \"stream_bytes_per_s\":2e6}}\n"
            )
        };
        let text = line("same-connection", 5000)
            + &line("other-connection", 4000)
            + &line("same-connection", 9000)
            + &line("other-connection", 3000);
        let found = rows(&(text.clone() + &line("none", 1000))).unwrap();
        assert_eq!(found[0], ["on the same connection", "1", "7", "20", "2", ""]);
        assert_eq!(found[1][1..], ["1", "4", "20", "2", "2.12 (1.25–3.00)"]);
        assert_eq!(found[2][..2], ["no stream", "1"]);
        assert_eq!(rows(&text), None);
    }
}
