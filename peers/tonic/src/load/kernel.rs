//! Counts connections in the kernel's tables, which are authoritative.

use std::collections::HashSet;
use std::fs;
use std::io;

/// Returns the number of this process's established TCP and Unix stream sockets; `None` if `/proc` is not readable.
pub fn established() -> Option<u32> {
    let inodes = socket_inodes().ok()?;
    let tcp = count(&fs::read_to_string("/proc/self/net/tcp").ok()?, &TCP, &inodes);
    // A kernel without IPv6 has no such table.
    let tcp6 = fs::read_to_string("/proc/self/net/tcp6").map_or(0, |table| count(&table, &TCP, &inodes));
    let unix = count(&fs::read_to_string("/proc/self/net/unix").ok()?, &UNIX, &inodes);
    Some(tcp + tcp6 + unix)
}

/// Returns the inodes of this process's open sockets.
fn socket_inodes() -> io::Result<HashSet<u64>> {
    let mut inodes = HashSet::new();
    for entry in fs::read_dir("/proc/self/fd")? {
        // A descriptor may be closed between listing and reading it.
        let Ok(link) = fs::read_link(entry?.path()) else { continue };
        let name = link.to_str().unwrap_or_default();
        let inode = name.strip_prefix("socket:[").and_then(|name| name.strip_suffix(']'));
        inodes.extend(inode.and_then(|inode| inode.parse::<u64>().ok()));
    }
    Ok(inodes)
}

/// Columns of a table in `/proc/net`, from 0, and their values for an established socket.
struct Table {
    conditions: &'static [(usize, &'static str)],
    inode: usize,
}

/// TCP_ESTABLISHED is 01.
const TCP: Table = Table { conditions: &[(3, "01")], inode: 9 };
/// SOCK_STREAM is 0001, SS_CONNECTED 03.
const UNIX: Table = Table { conditions: &[(4, "0001"), (5, "03")], inode: 6 };

fn count(text: &str, table: &Table, inodes: &HashSet<u64>) -> u32 {
    let counts = |line: &str| {
        let columns: Vec<&str> = line.split_ascii_whitespace().collect();
        let column = |index: usize| columns.get(index).copied().unwrap_or_default();
        table.conditions.iter().all(|&(index, value)| column(index) == value)
            && column(table.inode).parse().is_ok_and(|inode| inodes.contains(&inode))
    };
    text.lines().skip(1).filter(|line| counts(line)).count() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, table: &Table, expected: u32) {
        assert_eq!(count(text, table, &HashSet::from([1001, 1002])), expected, "{text}");
    }

    #[test]
    fn only_established_sockets_of_this_process_count() {
        let tcp = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:C383 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1001 1 0 100 0 0 10 0
   1: 0100007F:9C40 0100007F:C383 01 00000000:00000000 00:00000000 00000000     0        0 1002 1 0 20 4 30 10 -1
   2: 0100007F:9C41 0100007F:C383 01 00000000:00000000 00:00000000 00000000     0        0 1003 1 0 20 4 30 10 -1
";
        check(tcp, &TCP, 1);
        let unix = "\
Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000003 00000000 00000000 0001 03 1001
0000000000000000: 00000003 00000000 00000000 0002 03 1002
0000000000000000: 00000002 00000000 00010000 0001 01 1002 /tmp/socket
0000000000000000: 00000003 00000000 00000000 0001 03 1003 /tmp/socket
";
        check(unix, &UNIX, 1);
    }
}
