//! Established connections, from the kernel's socket tables.

mod servers;
mod sockets;

use std::collections::HashSet;
use std::fmt::Display;
use std::fs;
use std::io;

pub use servers::ServerLocation;
use sockets::{SocketRow, sockets_of, tcp_row, unix_row};

/// Length of a tick of `/proc/stat`, in ms. USER_HZ is 100 on practically all architectures of Linux.
pub(crate) const TICK_MS: u64 = 10;

/// Number of established TCP and Unix stream sockets of this process at one moment.
///
/// Take it before and after connecting. The difference is the number of connections made in between.
#[derive(Clone, Copy, Debug)]
pub struct Established(Option<u32>);

impl Established {
    /// Counts the sockets now. If `/proc` is not readable, [`since`](Self::since) returns `None`.
    pub fn now() -> Self {
        Self(sockets_of("self").and_then(|own| count("self", &own, |_| true)).ok())
    }

    /// Returns how many more sockets there are than `before`, at least 0. `None` if either count is unknown.
    pub fn since(self, before: Self) -> Option<u32> {
        Some(self.0?.saturating_sub(before.0?))
    }
}

/// Returns the number of established connections that `pid` has at its listen address, `HOST:PORT` or `unix:PATH`.
///
/// TCP connections are matched by local port only. A path must not contain white space.
///
/// # Errors
///
/// Returns an error if the address has no port or `/proc` is not readable.
pub fn connections_at(pid: u32, address: &str) -> io::Result<u32> {
    let own = sockets_of(pid)?;
    if let Some(path) = address.strip_prefix("unix:") {
        return count(pid, &own, |row| row.is_unix_at(path));
    }
    let port = address.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    let port = port.ok_or_else(|| io::Error::other(format!("no port in address `{address}`")))?;
    count(pid, &own, |row| row.is_tcp_at(port))
}

/// Number of times that the tables are read. The kernel writes them in pieces while sockets open and close, so one
/// reading may miss a row. Missing it twice is unlikely.
const READINGS: usize = 2;

/// Returns how many of the sockets `own` are established and match `wanted`.
fn count(pid: impl Display, own: &HashSet<u64>, wanted: impl Fn(&SocketRow) -> bool) -> io::Result<u32> {
    let table = |name: &str| fs::read_to_string(format!("/proc/{pid}/net/{name}"));
    let mut found = HashSet::new();
    for _ in 0..READINGS {
        found.extend(inodes(&table("tcp")?, tcp_row, own, &wanted));
        // A kernel without IPv6 does not have this table.
        found.extend(inodes(&table("tcp6").unwrap_or_default(), tcp_row, own, &wanted));
        found.extend(inodes(&table("unix")?, unix_row, own, &wanted));
    }
    Ok(found.len() as u32)
}

/// Parser for a row of a table. Returns `None` for other sockets.
type Parse = for<'t> fn(&'t str) -> Option<SocketRow<'t>>;

/// Returns the inodes in a table that are in `own` and match `wanted`.
fn inodes(text: &str, parse: Parse, own: &HashSet<u64>, wanted: impl Fn(&SocketRow) -> bool) -> HashSet<u64> {
    let rows = text.lines().skip(1).filter_map(parse);
    rows.filter(|row| own.contains(&row.inode) && wanted(row)).map(|row| row.inode).collect()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    const TCP: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:C383 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1001 1 0 100 0 0 10 0
   1: 0100007F:9C40 0100007F:C383 01 00000000:00000000 00:00000000 00000000     0        0 1002 1 0 20 4 30 10 -1
   2: 0100007F:9C41 0100007F:C383 01 00000000:00000000 00:00000000 00000000     0        0 1003 1 0 20 4 30 10 -1
";
    const UNIX: &str = "\
Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000003 00000000 00000000 0001 03 1001
0000000000000000: 00000003 00000000 00000000 0002 03 1002
0000000000000000: 00000002 00000000 00010000 0001 01 1002 /tmp/socket
0000000000000000: 00000003 00000000 00000000 0001 03 1002 /tmp/socket
0000000000000000: 00000003 00000000 00000000 0001 03 1003 /tmp/socket
";

    fn check(text: &str, parse: Parse, wanted: impl Fn(&SocketRow) -> bool, expected: usize) {
        let found = inodes(text, parse, &HashSet::from([1001, 1002]), wanted);
        assert_eq!(found.len(), expected, "{text}");
    }

    #[test]
    fn only_established_sockets_of_the_process_are_counted() {
        check(TCP, tcp_row, |_| true, 1);
        check(UNIX, unix_row, |_| true, 2);
        check("", unix_row, |_| true, 0);
    }

    #[test]
    fn connections_at_other_addresses_are_not_counted() {
        check(TCP, tcp_row, |row| row.is_tcp_at(0x9C40), 1);
        check(TCP, tcp_row, |row| row.is_tcp_at(0xC383), 0);
        check(UNIX, unix_row, |row| row.is_unix_at("/tmp/socket"), 1);
        check(UNIX, unix_row, |row| row.is_unix_at("/tmp/other"), 0);
    }

    #[test]
    fn both_ends_of_a_connection_are_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        let (one, other) = UnixStream::pair().unwrap();
        let inode =
            |fd: &dyn AsRawFd| fs::metadata(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap().ino();
        let ends = HashSet::from([&client as &dyn AsRawFd, &server, &one, &other].map(inode));

        assert!(sockets_of("self").unwrap().is_superset(&ends));
        assert_eq!(count("self", &ends, |_| true).unwrap(), 4);
        assert_eq!(count("self", &HashSet::from([inode(&listener)]), |_| true).unwrap(), 0);
    }

    #[test]
    fn connections_at_counts_accepted_connections_of_listen_address() {
        let pid = std::process::id();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(connections_at(pid, &address.to_string()).unwrap(), 0);
        let _clients = [(); 2].map(|()| TcpStream::connect(address).unwrap());
        let _servers = [(); 2].map(|()| listener.accept().unwrap());
        assert_eq!(connections_at(pid, &address.to_string()).unwrap(), 2);

        let directory = std::env::temp_dir().join(format!("thalweg-measure-kernel-{pid}"));
        fs::create_dir(&directory).unwrap();
        let path = directory.join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let _client = UnixStream::connect(&path).unwrap();
        let _server = listener.accept().unwrap();
        assert_eq!(connections_at(pid, &format!("unix:{}", path.display())).unwrap(), 1);
        fs::remove_dir_all(directory).unwrap();
        assert!(connections_at(pid, "nowhere").is_err());
    }
}
