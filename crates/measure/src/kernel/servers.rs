//! Finds the processes at the other end of a process's connections, if they run on this machine.

use std::collections::HashSet;
use std::fs;
use std::io;

use super::sockets::{sockets_of, unix_row};

/// Location of the servers that a process is connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerLocation {
    /// On other machines, or there is no connection.
    Elsewhere,
    /// On this machine, with these PIDs. Empty for the process itself.
    Here(Vec<u32>),
    /// On this machine, in a process that cannot be found, for example in a container or of another user.
    Hidden,
}

/// Both ends of a TCP connection, in the kernel's notation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Ends {
    local: String,
    remote: String,
}

impl ServerLocation {
    /// Finds the servers of a process. Reads the open files of all processes, which takes some ms.
    ///
    /// `targets` are the addresses that it is connected to; those of Unix domain sockets start with `unix:`.
    ///
    /// # Errors
    ///
    /// Returns an error if `/proc` is not readable.
    pub fn of(pid: u32, targets: &[String]) -> io::Result<Self> {
        let unix: Vec<&str> = targets.iter().filter_map(|target| target.strip_prefix("unix:")).collect();
        let own = sockets_of(pid)?;
        let table = |name: &str| fs::read_to_string(format!("/proc/{pid}/net/{name}"));
        let (tcp, unix_table) = ([table("tcp")?, table("tcp6").unwrap_or_default()], table("unix")?);
        let rows: Vec<(Ends, u64)> =
            tcp.iter().flat_map(|table| table.lines().filter_map(tcp_ends)).collect();
        let mut wanted: HashSet<u64> = HashSet::new();
        let mut is_here = false;
        for (ends, _) in rows.iter().filter(|(_, inode)| own.contains(inode)) {
            let others = rows.iter().filter(|(other, _)| other.is_other_end(ends));
            let before = wanted.len();
            wanted.extend(others.map(|(_, inode)| *inode));
            is_here |= wanted.len() > before || ends.is_loopback();
        }
        let listening = unix_table.lines().skip(1).filter_map(unix_row);
        let listening = listening.filter(|row| unix.iter().any(|path| row.is_unix_at(path)));
        wanted.extend(listening.map(|row| row.inode));
        is_here |= !unix.is_empty();
        if !is_here {
            return Ok(Self::Elsewhere);
        }
        let pids = owners(&wanted);
        let others = pids.iter().copied().filter(|other| *other != pid).collect();
        Ok(if pids.is_empty() { Self::Hidden } else { Self::Here(others) })
    }
}

impl Ends {
    fn is_other_end(&self, other: &Self) -> bool {
        self.local == other.remote && self.remote == other.local
    }

    /// Returns whether the address is in 127.0.0.0/8 or is ::1. Addresses are written in words of the machine's byte
    /// order.
    fn is_loopback(&self) -> bool {
        let (address, _) = self.remote.split_once(':').unwrap_or_default();
        let last = if cfg!(target_endian = "little") { "01000000" } else { "00000001" };
        let first = if cfg!(target_endian = "little") { address.get(6..8) } else { address.get(0..2) };
        match address.len() {
            8 => first == Some("7F"),
            _ => address.strip_prefix("000000000000000000000000") == Some(last),
        }
    }
}

/// Parses the ends and the inode of an established connection. Converts IPv4-mapped addresses to IPv4.
fn tcp_ends(row: &str) -> Option<(Ends, u64)> {
    const MAPPED: [&str; 2] = ["0000000000000000FFFF0000", "00000000000000000000FFFF"];
    let columns: Vec<&str> = row.split_ascii_whitespace().collect();
    let &[_, local, remote, "01", _, _, _, _, _, inode, ..] = columns.as_slice() else { return None };
    let plain =
        |end: &str| MAPPED.iter().find_map(|mapped| end.strip_prefix(mapped)).unwrap_or(end).to_owned();
    Some((Ends { local: plain(local), remote: plain(remote) }, inode.parse().ok()?))
}

/// Returns the processes that hold one of these sockets.
fn owners(inodes: &HashSet<u64>) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    // A process may belong to another user, or have exited since the listing.
    let holds = |pid: &u32| sockets_of(pid).is_ok_and(|sockets| !sockets.is_disjoint(inodes));
    pids.filter(holds).collect()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::process::{Child, Command, Stdio};

    use super::*;

    const ALONE: &str = "THALWEG_TEST_SERVER";

    /// This test in another process, which accepts connections until it is killed.
    struct Server(Child, String);

    impl Server {
        fn at(address: &str) -> Self {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args([
                "--exact",
                "kernel::servers::tests::server_in_another_process_is_found",
                "--nocapture",
            ]);
            let mut child = command.env(ALONE, address).stdout(Stdio::piped()).spawn().unwrap();
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
            let at = lines.find_map(|line| Some(line.split_once("listens at ")?.1.to_owned())).unwrap();
            Self(child, at)
        }
    }

    impl Drop for Server {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    fn serve(address: &str) {
        if let Some(path) = address.strip_prefix("unix:") {
            let listener = UnixListener::bind(path).unwrap();
            println!("listens at {path}");
            keep_all(listener.incoming());
        }
        let listener = TcpListener::bind(address).unwrap();
        println!("listens at {}", listener.local_addr().unwrap());
        keep_all(listener.incoming());
    }

    fn keep_all<S>(incoming: impl Iterator<Item = S>) {
        let mut streams = Vec::new();
        for stream in incoming {
            streams.push(stream);
        }
    }

    /// Other tests of this process may have connections, too.
    fn is_found(targets: &[String], server: &Server) {
        // The server accepts asynchronously.
        loop {
            if let ServerLocation::Here(pids) = ServerLocation::of(std::process::id(), targets).unwrap()
                && pids.contains(&server.0.id())
            {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    #[test]
    fn server_in_another_process_is_found() {
        if let Ok(address) = std::env::var(ALONE) {
            return serve(&address);
        }
        let server = Server::at("127.0.0.1:0");
        let _stream = TcpStream::connect(&server.1).unwrap();
        is_found(&[], &server);

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let target = format!("unix:{}", path.display());
        let server = Server::at(&target);
        let _stream = UnixStream::connect(path).unwrap();
        is_found(&[target], &server);
    }

    #[test]
    fn ends_are_those_of_established_connections() {
        let row = "1: 0100007F:9C40 0100007F:C383 01 00000000:00000000 00:00000000 00000000 0 0 1002 1 0 20";
        let (ends, inode) = tcp_ends(row).unwrap();
        assert_eq!((inode, ends.is_loopback()), (1002, cfg!(target_endian = "little")));
        let mapped = "2: 0000000000000000FFFF00000100007F:C383 0000000000000000FFFF00000100007F:9C40 01 \
                      0:0 00:0 0 0 0 1003 1 0 20";
        assert!(tcp_ends(mapped).unwrap().0.is_other_end(&ends));
        assert_eq!(tcp_ends(&row.replace(" 01 ", " 0A ")), None);
        let v6 = Ends { local: String::new(), remote: "00000000000000000000000001000000:C383".to_owned() };
        assert_eq!(v6.is_loopback(), cfg!(target_endian = "little"));
        let far = Ends { local: String::new(), remote: "0101A8C0:C383".to_owned() };
        assert!(!far.is_loopback());
    }
}
