//! Sockets of processes, from `/proc`.

use std::collections::HashSet;
use std::fmt::Display;
use std::fs;
use std::io;

/// Returns the inodes of all open sockets of the process, given by PID or `self`.
pub(super) fn sockets_of(pid: impl Display) -> io::Result<HashSet<u64>> {
    let mut inodes = HashSet::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))? {
        // A descriptor may be closed after the listing.
        let Ok(link) = fs::read_link(entry?.path()) else { continue };
        let name = link.to_str().unwrap_or_default();
        let inode = name.strip_prefix("socket:[").and_then(|name| name.strip_suffix(']'));
        inodes.extend(inode.and_then(|inode| inode.parse::<u64>().ok()));
    }
    Ok(inodes)
}

/// An established stream socket, from a row of a table in `/proc/PID/net`.
pub(super) struct SocketRow<'t> {
    pub(super) inode: u64,
    local_address: LocalAddress<'t>,
}

pub(super) enum LocalAddress<'t> {
    /// Local port of a TCP socket.
    Tcp(u16),
    /// Local path of a Unix socket; empty for the connecting side.
    Unix(&'t str),
}

impl SocketRow<'_> {
    pub(super) fn is_tcp_at(&self, port: u16) -> bool {
        matches!(self.local_address, LocalAddress::Tcp(local) if local == port)
    }

    pub(super) fn is_unix_at(&self, path: &str) -> bool {
        matches!(self.local_address, LocalAddress::Unix(local) if local == path)
    }
}

/// Parses a row `sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode …`.
/// TCP_ESTABLISHED is 01.
pub(super) fn tcp_row(text: &str) -> Option<SocketRow<'_>> {
    let columns: Vec<&str> = text.split_ascii_whitespace().collect();
    let &[_, local, _, "01", _, _, _, _, _, inode, ..] = columns.as_slice() else { return None };
    let (_, port) = local.rsplit_once(':')?;
    let local_address = LocalAddress::Tcp(u16::from_str_radix(port, 16).ok()?);
    Some(SocketRow { inode: inode.parse().ok()?, local_address })
}

/// Parses a row `Num RefCount Protocol Flags Type St Inode Path`. SOCK_STREAM is 0001, SS_CONNECTED is 03.
pub(super) fn unix_row(text: &str) -> Option<SocketRow<'_>> {
    let columns: Vec<&str> = text.split_ascii_whitespace().collect();
    let &[_, _, _, _, "0001", "03", inode, ref path @ ..] = columns.as_slice() else { return None };
    let local_address = LocalAddress::Unix(path.first().copied().unwrap_or_default());
    Some(SocketRow { inode: inode.parse().ok()?, local_address })
}
