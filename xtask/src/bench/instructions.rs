//! User-space instructions per empty unary call, on both sides: they repeat on a machine whose clock does not.

use crate::bench::table::{self, Table};
use crate::bench::valgrind::Counter;
use crate::job::{Failure, Log};
use crate::peers::BuiltPeer;

const CALLGRIND: Counter = Counter {
    options: "--tool=callgrind --callgrind-out-file=FILE",
    file: "callgrind.out",
    read: total_instructions,
};

pub(super) fn run(peers: &[BuiltPeer], log: &Log) -> Result<Vec<Table>, Failure> {
    let mut rows = Vec::new();
    for peer in peers {
        let cost = CALLGRIND.cost_per_call(peer, log)?;
        rows.push(vec![peer.name.to_owned(), table::grouped(cost.server), table::grouped(cost.client)]);
    }
    let title = "User-space instructions per empty unary call (callgrind; 1 connection, 64 in flight):";
    Ok(vec![Table::new(title, &["stack", "server", "client"], rows)])
}

/// callgrind's output ends with `totals: N`.
fn total_instructions(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("totals:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::total_instructions;

    #[test]
    fn the_total_is_read() {
        assert_eq!(total_instructions("events: Ir\nfn=(1) main\n1 5\n\ntotals: 123456\n"), Some(123_456));
        assert_eq!(total_instructions("events: Ir\n"), None);
    }
}
