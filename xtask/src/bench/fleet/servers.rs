//! Three servers, of which the third may be in trouble.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use super::namespace::{INSIDE, Namespace};
use crate::bench::pair::SERVER;
use crate::failure::Result;
use crate::job::Job;
use crate::server::terminate;
use crate::{log, tools, workspace};

/// State of the third server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Third {
    Up,
    /// Nothing listens.
    Refuses,
    DropsPackets,
    NeverSpeaks,
    /// Its packets are dropped after [`Fleet::silence`].
    FallsSilent,
    /// Every second call ends with UNAVAILABLE.
    Fails,
    /// It responds after [`SLOW`], the others after [`USUAL`].
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

/// Address of a silent server. Resolvers list `::1` before all others (RFC 6724).
const SILENT: Ipv6Addr = Ipv6Addr::LOCALHOST;

const USUAL: &str = "--delay 1ms";
const SLOW: &str = "--delay 20ms";
const FAILING: &str = "--fail-every 2";

/// Ports for servers that restart. Below the kernel's ephemeral ports: while a server is down, a socket of a client
/// could otherwise get its port, or connect to itself.
const PORTS: std::ops::Range<u16> = 20_000..32_768;

/// Generous: a server starts within milliseconds.
const START_LIMIT: Duration = Duration::from_secs(20);
const START_POLL: Duration = Duration::from_millis(1);

pub(super) struct Fleet {
    // Before the namespace: servers in it end first.
    servers: Vec<Option<Backend>>,
    namespace: Option<Namespace>,
    addresses: [SocketAddr; 3],
    name: String,
    program: PathBuf,
    third: Third,
    /// Kept open: it accepts connections into its queue, and nobody takes them from it.
    _silent: Option<TcpListener>,
}

impl Fleet {
    /// Starts fleet `number` on loopback addresses of its own.
    pub(super) fn start(program: &Path, third: Third, number: u8) -> Result<Self> {
        let mut addresses = free_addresses(number)?;
        let namespace = match third {
            Third::DropsPackets | Third::FallsSilent => Some(Namespace::create()?),
            _ => None,
        };
        if namespace.is_some() {
            addresses[2].set_ip(INSIDE.parse().expect("a valid address"));
        }
        let silent = (third == Third::NeverSpeaks).then(|| TcpListener::bind(addresses[2])).transpose()?;
        let (name, program) = (format!("fleet-{number}.test"), program.to_owned());
        let servers = Vec::new();
        let mut fleet = Self { servers, namespace, addresses, name, program, third, _silent: silent };
        for index in 0..fleet.addresses.len() {
            let server = fleet.is_served(index).then(|| fleet.server(index)).transpose()?;
            fleet.servers.push(server);
        }
        if third == Third::DropsPackets {
            fleet.silence()?;
        }
        Ok(fleet)
    }

    pub(super) fn third(&self) -> Third {
        self.third
    }

    fn is_served(&self, index: usize) -> bool {
        index < 2 || !matches!(self.third, Third::Refuses | Third::NeverSpeaks)
    }

    /// Returns the addresses of all servers, separated by commas.
    pub(super) fn addresses(&self) -> String {
        self.addresses.map(|address| address.to_string()).join(",")
    }

    /// Returns the name of all servers, with the port.
    pub(super) fn name(&self) -> String {
        format!("{}:{}", self.name, self.addresses[0].port())
    }

    /// Returns a script that runs a program for which the name has the addresses of all servers, after [`SILENT`] if
    /// that is to be `silent_first`. A mount namespace changes `/etc/hosts` for this program only.
    pub(super) fn resolving(&self, silent_first: bool) -> Result<Job> {
        let path = workspace::output().join(format!("{}.hosts", self.name));
        let silent = silent_first.then_some(IpAddr::V6(SILENT));
        let addresses = silent.into_iter().chain(self.addresses.map(|address| address.ip()));
        let lines = addresses.map(|ip| format!("{ip} {}\n", self.name)).collect::<Vec<_>>().concat();
        fs::write(&path, format!("127.0.0.1 localhost\n{lines}"))?;
        let script = r#"mount --bind "$0" /etc/hosts && exec "$@""#;
        let user = if tools::is_root() { "" } else { "--map-root-user" };
        Ok(Job::new("unshare").words("--mount").words(user).words("sh -c").arg(script).arg(path))
    }

    /// Starts a silent server at [`SILENT`], with the port of the others.
    pub(super) fn silent(&self) -> Result<Backend> {
        let address = SocketAddr::from((SILENT, self.addresses[0].port()));
        let job = Job::new(&self.program).arg(address.to_string()).words("--silent").under(SERVER);
        let server = Backend::spawn(&job)?;
        ensure!(server.speaks_within(START_LIMIT), "`{job}` was not silent after {START_LIMIT:?}");
        Ok(server)
    }

    /// Drops the packets of the third server from now on.
    pub(super) fn silence(&self) -> Result<()> {
        let namespace = self.namespace.as_ref().expect("the fleet has a server that can fall silent");
        namespace.silence()
    }

    /// Stops the server whose turn it is, starts it again as soon as it has ended, and returns it.
    pub(super) fn restart(&mut self, number: usize, stop: Stop) -> Result<&Backend> {
        let index = number % self.servers.len();
        if let Some(server) = self.servers[index].take() {
            match stop {
                Stop::Terminate => drop(server.end()?),
                Stop::Kill => server.kill()?,
            }
        }
        let server = self.server(index)?;
        Ok(self.servers[index].insert(server))
    }

    /// Ends all servers and returns the part of their calls that the third got, if it got any differently from the
    /// others.
    pub(super) fn share_of_third(mut self) -> Result<Option<f64>> {
        let mut calls = [0; 3];
        for (count, server) in calls.iter_mut().zip(&mut self.servers) {
            *count = server.take().map_or(Ok(0), Backend::end)?;
        }
        let all = calls.iter().sum::<u64>().max(1);
        Ok((self.third != Third::Up).then(|| calls[2] as f64 / all as f64))
    }

    fn server(&self, index: usize) -> Result<Backend> {
        let address = self.addresses[index];
        let flags = match self.third {
            Third::Slow if index == 2 => SLOW,
            Third::Slow => USUAL,
            Third::Fails if index == 2 => FAILING,
            _ => "",
        };
        let job = Job::new(&self.program).arg(address.to_string()).words(flags).under(SERVER);
        match &self.namespace {
            Some(namespace) if index == 2 => Backend::start(&job.under(&namespace.wrapper()), address),
            _ => Backend::start(&job, address),
        }
    }
}

/// The process of a server: the example `fleet_server`.
pub(super) struct Backend {
    child: Child,
    /// Its output: `called` after the first call, or `silent`; `calls N` at its end.
    lines: Receiver<String>,
}

impl Backend {
    /// Starts it and waits until it listens.
    fn start(job: &Job, address: SocketAddr) -> Result<Self> {
        let mut server = Self::spawn(job)?;
        let start = Instant::now();
        while TcpStream::connect(address).is_err() {
            if let Some(status) = server.child.try_wait()? {
                bail!("`{job}` exited at once: {status}");
            }
            ensure!(start.elapsed() < START_LIMIT, "`{job}` was not listening after {START_LIMIT:?}");
            thread::sleep(START_POLL);
        }
        Ok(server)
    }

    fn spawn(job: &Job) -> Result<Self> {
        let mut child = job.unbounded().stdout(Stdio::piped()).stderr(log::file()?).spawn()?;
        let output = child.stdout.take().expect("it is piped");
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).try_for_each(|it| sender.send(it))
        });
        Ok(Self { child, lines })
    }

    /// Waits for its first line, which says that it was called, or that it is silent.
    pub(super) fn speaks_within(&self, limit: Duration) -> bool {
        self.lines.recv_timeout(limit).is_ok()
    }

    /// Sends SIGTERM, waits, and returns the number of calls it got.
    fn end(mut self) -> Result<u64> {
        terminate(self.child.id())?;
        let status = self.child.wait()?;
        ensure!(status.success(), "a server ended with {status} on SIGTERM");
        let calls = self.lines.iter().find_map(|line| line.strip_prefix("calls ")?.parse().ok());
        calls.ok_or_else(|| failed!("a server did not print its number of calls"))
    }

    fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        // Without effect on one that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Three loopback addresses with one port.
fn free_addresses(number: u8) -> Result<[SocketAddr; 3]> {
    // Another process starts elsewhere.
    let offset = std::process::id() as usize * 7 % PORTS.len();
    let addresses = |port| [1, 2, 3].map(|host| SocketAddr::from(([127, 77, number, host], port)));
    let mut ports = PORTS.cycle().skip(offset).take(PORTS.len());
    let is_free = |port: &u16| addresses(*port).iter().all(|address| TcpListener::bind(address).is_ok());
    ports.find(is_free).map(addresses).ok_or_else(|| failed!("none of the ports {PORTS:?} is free"))
}
