//! Heap allocations per empty unary call, on both sides.

use crate::bench::table::Table;
use crate::bench::valgrind::Counter;
use crate::job::{Failure, Log};
use crate::peers::BuiltPeer;

/// memcheck without what makes it slow: only its account of the heap is wanted.
const MEMCHECK: Counter = Counter {
    options: "--tool=memcheck --undef-value-errors=no --leak-check=no",
    file: "",
    read: allocations,
};

pub(super) fn run(peers: &[BuiltPeer], log: &Log) -> Result<Vec<Table>, Failure> {
    let mut rows = Vec::new();
    for peer in peers {
        let cost = MEMCHECK.cost_per_call(peer, log)?;
        // A longer run that has some allocations fewer at its start and end is no gain of each call.
        let [server, client] = [cost.server, cost.client].map(|count| format!("{:.2}", count.max(0.0)));
        rows.push(vec![peer.name.to_owned(), server, client]);
    }
    let title = "Heap allocations per empty unary call (valgrind; 1 connection, 64 in flight):";
    Ok(vec![Table::new(title, &["stack", "server", "client"], rows)])
}

/// Reads `total heap usage: 1,234 allocs, 1,200 frees, 56,789 bytes allocated`.
fn allocations(text: &str) -> Option<u64> {
    let (_, after) = text.rsplit_once("total heap usage:")?;
    let (count, _) = after.split_once("allocs")?;
    count.trim().replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::allocations;

    #[test]
    fn the_heap_account_is_read() {
        let text = "==1==   total heap usage: 1,234 allocs, 1,200 frees, 56,789 bytes allocated";
        assert_eq!(allocations(text), Some(1234));
        assert_eq!(allocations("==1== nothing"), None);
    }
}
