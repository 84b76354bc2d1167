//! Three servers, of which the third may be in trouble.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::bench::pair::SERVER;
use crate::failure::Result;
use crate::job::Job;
use crate::server::Server;

/// State of the third server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Third {
    Up,
    /// Nothing listens.
    Refuses,
    DropsPackets,
    NeverSpeaks,
    /// Its handlers compute for [`SLOW_WORK`], those of the others for [`WORK`].
    Slow,
}

/// How a server is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// SIGTERM: the server waits for its calls.
    Terminate,
    /// SIGKILL.
    Kill,
}

const WORK: &str = "--work 100us";
const SLOW_WORK: &str = "--work 2ms";

/// Ports for servers that restart. Below the kernel's ephemeral ports: while a server is down, a socket of a client
/// could otherwise get its port, or connect to itself.
const PORTS: std::ops::Range<u16> = 20_000..32_768;

/// Longer than any accepted connection takes on loopback.
const CONNECT_LIMIT: Duration = Duration::from_millis(200);
/// More than the accept queue of any listener holds: net.core.somaxconn is 4096 by default.
const QUEUED_MAX: usize = 1 << 16;

pub(super) struct Fleet {
    ports: [u16; 3],
    servers: Vec<Option<Server>>,
    program: PathBuf,
    work: &'static str,
    /// Kept open.
    _silent: Option<Silent>,
}

/// A listener that accepts nothing, and the connections that fill its queue.
#[derive(Debug)]
struct Silent {
    #[expect(dead_code, reason = "kept open")]
    listener: TcpListener,
    queued: Vec<TcpStream>,
}

impl Fleet {
    pub(super) fn start(program: &Path, third: Third) -> Result<Self> {
        let ports = free_ports()?;
        let silent = match third {
            Third::DropsPackets => Some(Silent::dropping_packets(ports[2])?),
            Third::NeverSpeaks => Some(Silent::accepting(ports[2])?),
            Third::Up | Third::Refuses | Third::Slow => None,
        };
        let work = if third == Third::Slow { WORK } else { "" };
        let (program, servers) = (program.to_owned(), Vec::new());
        let mut fleet = Self { ports, servers, program, work, _silent: silent };
        for port in &ports[..2] {
            fleet.servers.push(Some(fleet.server(*port, work)?));
        }
        match third {
            Third::Up => fleet.servers.push(Some(fleet.server(ports[2], "")?)),
            Third::Slow => fleet.servers.push(Some(fleet.server(ports[2], SLOW_WORK)?)),
            Third::Refuses | Third::DropsPackets | Third::NeverSpeaks => {}
        }
        Ok(fleet)
    }

    /// Returns the addresses of all servers, separated by commas.
    pub(super) fn addresses(&self) -> String {
        self.ports.map(|port| format!("127.0.0.1:{port}")).join(",")
    }

    /// Stops the server whose turn it is, and starts it again as soon as it has ended.
    pub(super) fn restart(&mut self, number: usize, stop: Stop) -> Result<()> {
        let at = number % self.servers.len();
        if let Some(server) = self.servers[at].take() {
            match stop {
                Stop::Terminate => server.stop_gracefully()?,
                Stop::Kill => server.kill()?,
            }
        }
        self.servers[at] = Some(self.server(self.ports[at], self.work)?);
        Ok(())
    }

    fn server(&self, port: u16, flags: &str) -> Result<Server> {
        let job = Job::new(&self.program).words(&format!("serve --listen 127.0.0.1:{port}")).words(flags);
        Server::start_at(&job.under(SERVER), port)
    }
}

impl Silent {
    /// The kernel accepts connections into the listener's queue, and nobody takes them from it.
    fn accepting(port: u16) -> Result<Self> {
        Ok(Self { listener: TcpListener::bind((Ipv4Addr::LOCALHOST, port))?, queued: Vec::new() })
    }

    /// Linux drops the SYNs for a listener whose accept queue is full. `listen` with a short queue would need a crate,
    /// so this fills the queue that the standard library asks for, until an attempt gets no answer.
    fn dropping_packets(port: u16) -> Result<Self> {
        let mut silent = Self::accepting(port)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        while silent.queued.len() < QUEUED_MAX {
            match TcpStream::connect_timeout(&address, CONNECT_LIMIT) {
                Ok(stream) => silent.queued.push(stream),
                Err(_) => return Ok(silent),
            }
        }
        Err(failed!("the queue of a listener holds more than {QUEUED_MAX} connections"))
    }
}

fn free_ports() -> Result<[u16; 3]> {
    // Another process starts elsewhere.
    let offset = std::process::id() as usize * 3 % PORTS.len();
    let ports = PORTS.cycle().skip(offset).take(PORTS.len());
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    let free: Vec<u16> = ports.filter(is_free).take(3).collect();
    free.try_into().map_err(|_| failed!("fewer than 3 of the ports {PORTS:?} are free"))
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn full_queue_drops_packets() {
        let [port, ..] = free_ports().unwrap();
        let silent = Silent::dropping_packets(port).unwrap();
        assert!(!silent.queued.is_empty());
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let error = TcpStream::connect_timeout(&address, CONNECT_LIMIT).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    }
}
