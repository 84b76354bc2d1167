//! Counting connections where they cannot be mistaken: in the kernel's tables.

use std::collections::HashSet;
use std::fs;
use std::io;

/// This process's established sockets at one moment, TCP and Unix stream; `None` when `/proc` does not say.
///
/// Two moments, before and after connecting, tell the connections made in between from everything else that the
/// process has open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Established(Option<u32>);

impl Established {
    pub(super) fn now() -> Self {
        Self(own_sockets().and_then(|own| count(&own)).ok())
    }

    /// How many there are more than `before`.
    pub(super) fn since(self, before: Self) -> Option<u32> {
        Some(self.0?.saturating_sub(before.0?))
    }
}

/// How many of these sockets are established.
fn count(own: &HashSet<u64>) -> io::Result<u32> {
    let tcp = count_rows(&fs::read_to_string("/proc/self/net/tcp")?, &TCP, own);
    // A kernel without IPv6 has no such table.
    let tcp6 = fs::read_to_string("/proc/self/net/tcp6").map_or(0, |table| count_rows(&table, &TCP, own));
    let unix = count_rows(&fs::read_to_string("/proc/self/net/unix")?, &UNIX, own);
    Ok(tcp + tcp6 + unix)
}

/// Inodes of the sockets that this process has open.
fn own_sockets() -> io::Result<HashSet<u64>> {
    let mut inodes = HashSet::new();
    for entry in fs::read_dir("/proc/self/fd")? {
        // A descriptor may be closed between the listing and the look at it.
        let Ok(link) = fs::read_link(entry?.path()) else { continue };
        let name = link.to_str().unwrap_or_default();
        let inode = name.strip_prefix("socket:[").and_then(|name| name.strip_suffix(']'));
        inodes.extend(inode.and_then(|inode| inode.parse::<u64>().ok()));
    }
    Ok(inodes)
}

/// Where a table of `/proc/net` has what matters here: columns counted from 0.
struct Table {
    state: usize,
    established: &'static str,
    inode: usize,
    /// A column that must have a value, too.
    kind: Option<(usize, &'static str)>,
}

/// `sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode …`; TCP_ESTABLISHED is 01.
const TCP: Table = Table { state: 3, established: "01", inode: 9, kind: None };
/// `Num RefCount Protocol Flags Type St Inode Path`; SS_CONNECTED is 03, SOCK_STREAM is 0001.
const UNIX: Table = Table { state: 5, established: "03", inode: 6, kind: Some((4, "0001")) };

fn count_rows(text: &str, table: &Table, own: &HashSet<u64>) -> u32 {
    let counts = |row: &str| {
        let columns: Vec<&str> = row.split_ascii_whitespace().collect();
        let column = |index: usize| columns.get(index).copied().unwrap_or_default();
        column(table.state) == table.established
            && table.kind.is_none_or(|(index, kind)| column(index) == kind)
            && column(table.inode).parse().is_ok_and(|inode| own.contains(&inode))
    };
    text.lines().skip(1).filter(|row| counts(row)).count() as u32
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn check(text: &str, table: &Table, expected: u32) {
        assert_eq!(count_rows(text, table, &HashSet::from([1001, 1002])), expected, "{text}");
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
        check("", &UNIX, 0);
    }

    #[test]
    fn a_connection_is_seen_at_both_its_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        let (one, other) = UnixStream::pair().unwrap();
        let inode =
            |fd: &dyn AsRawFd| fs::metadata(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap().ino();
        let ends = HashSet::from([&client as &dyn AsRawFd, &server, &one, &other].map(inode));

        assert!(own_sockets().unwrap().is_superset(&ends));
        assert_eq!(count(&ends).unwrap(), 4);
        assert_eq!(count(&HashSet::from([inode(&listener)])).unwrap(), 0);
    }
}
