//! A server that is driven.

use std::ffi::OsStr;
use std::process::Command;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use thalweg_measure::cpus::CpuList;
use thalweg_measure::process::Process;

use super::program::Program;
use crate::load::Transport;

/// How long a server may take until it listens.
const LISTEN_PATIENCE: Duration = Duration::from_secs(20);

/// `PROGRAM serve`, and where it listens. Ended when dropped.
#[derive(Debug)]
pub(super) struct Server {
    process: Process,
    tcp: String,
    uds: String,
    /// Where it serves JSON, if it was asked to.
    json: Option<String>,
    /// Removed after the server has ended.
    _scratch: TempDir,
}

impl Server {
    /// Starts it on TCP and on a Unix domain socket, and waits until it listens on both.
    pub(super) fn start(
        program: &Program,
        variant: Option<&str>,
        threads: Option<u32>,
        cpus: Option<&CpuList>,
    ) -> Result<Self, String> {
        let scratch = tempfile::tempdir().map_err(|error| format!("no place for its socket: {error}"))?;
        let uds = format!("unix:{}", scratch.path().join("server.sock").display());
        let mut command = program.command("serve");
        command.args(["--listen", "127.0.0.1:0", "--listen", &uds]);
        if let Some(variant) = variant {
            command.args(["--variant", variant]);
        }
        if let Some(threads) = threads {
            command.args(["--threads", &threads.to_string()]);
        }
        let (process, addresses) = listening(command, cpus, 2)?;
        let tcp = addresses.into_iter().find(|address| !address.starts_with("unix"));
        let tcp = tcp.ok_or("it does not say its TCP address")?;
        Ok(Self { process, tcp, uds, json: None, _scratch: scratch })
    }

    /// Starts it on TCP alone, for gRPC and, if asked to, for JSON too, and waits until it listens.
    pub(super) fn start_on_tcp(
        program: &Program,
        variant: Option<&str>,
        with_json: bool,
        flags: &[&OsStr],
        cpus: Option<&CpuList>,
    ) -> Result<Self, String> {
        let scratch = tempfile::tempdir().map_err(|error| format!("no place for its files: {error}"))?;
        let mut command = program.command("serve");
        command.args(["--listen", "127.0.0.1:0"]);
        if with_json {
            command.args(["--json", "127.0.0.1:0"]);
        }
        if let Some(variant) = variant {
            command.args(["--variant", variant]);
        }
        command.args(flags);
        // gRPC's address is said first.
        let (process, mut addresses) = listening(command, cpus, 1 + usize::from(with_json))?;
        let tcp = addresses.remove(0);
        Ok(Self { process, tcp, uds: String::new(), json: addresses.pop(), _scratch: scratch })
    }

    /// Where it serves gRPC over TCP, and where JSON.
    pub(super) fn tcp(&self) -> (&str, Option<&str>) {
        (&self.tcp, self.json.as_deref())
    }

    /// Where it listens.
    pub(super) fn target(&self, transport: Transport) -> &str {
        match transport {
            Transport::Tcp => &self.tcp,
            Transport::Uds => &self.uds,
        }
    }

    /// Its process.
    pub(super) fn pid(&self) -> u32 {
        self.process.child.id()
    }

    /// It is no more.
    pub(super) fn has_ended(&mut self) -> bool {
        matches!(self.process.child.try_wait(), Ok(Some(_)))
    }

    /// Why the server is no more, when it is no more.
    pub(super) fn ended(&mut self) -> Option<String> {
        let status = self.process.child.try_wait().ok().flatten()?;
        Some(format!("the server ended ({status}): {}", self.process.last_words()))
    }
}

/// The process, when it has said so many addresses.
fn listening(
    mut command: Command,
    cpus: Option<&CpuList>,
    count: usize,
) -> Result<(Process, Vec<String>), String> {
    let mut process = Process::spawn(&mut command, cpus).map_err(|error| error.to_string())?;
    let lines = process.lines();
    let deadline = Instant::now() + LISTEN_PATIENCE;
    let mut addresses = Vec::new();
    while addresses.len() < count {
        match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => addresses.extend(address_in(&line)),
            Err(RecvTimeoutError::Timeout) => {
                return Err(format!("it did not listen within {} s", LISTEN_PATIENCE.as_secs()));
            }
            Err(RecvTimeoutError::Disconnected) => return Err(process.last_words()),
        }
    }
    Ok((process, addresses))
}

/// The address in a line such as `listening on 127.0.0.1:50051`.
fn address_in(line: &str) -> Option<String> {
    line.split_whitespace()
        .map(|word| {
            word.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '[' && c != ']' && c != '/')
        })
        .find(|word| word.starts_with("unix:") || word.parse::<std::net::SocketAddr>().is_ok())
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_says_where_it_listens() {
        let check =
            |line: &str, address: Option<&str>| assert_eq!(address_in(line).as_deref(), address, "{line}");
        check("listening on 127.0.0.1:41233", Some("127.0.0.1:41233"));
        check("listening on 127.0.0.1:41233 (TCP).", Some("127.0.0.1:41233"));
        check("listening on unix:/tmp/a b", Some("unix:/tmp/a"));
        check("ready: [::1]:80,", Some("[::1]:80"));
        check("thalweg 0.1.0", None);
    }
}
