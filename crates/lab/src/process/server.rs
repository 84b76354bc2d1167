//! Server processes.

use std::ffi::OsString;
use std::process::Command;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use thalweg_measure::cpus::{CpuAssignment, CpuList};
use thalweg_measure::process::Process;

use super::program::Program;
use crate::load::Transport;
use crate::stack::Stack;

/// Time limit for a server to start listening.
const LISTEN_PATIENCE: Duration = Duration::from_secs(20);

/// A `PROGRAM serve` process and its addresses. Killed on drop.
#[derive(Debug)]
pub(super) struct Server {
    process: Process,
    tcp: String,
    uds: String,
    /// Address for JSON, if requested.
    json: Option<String>,
    /// Removed after the server has stopped.
    _scratch: TempDir,
}

/// Addresses of a server: gRPC on TCP, and optionally another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Addresses {
    /// gRPC on TCP only.
    Tcp,
    /// Also a Unix domain socket.
    TcpAndUds,
    /// Also JSON on TCP.
    TcpAndJson,
}

/// Returns the flags for the number of server threads, if set.
pub(super) fn threads(cpus: &CpuAssignment) -> Vec<OsString> {
    let flags = |threads: u32| vec!["--threads".into(), threads.to_string().into()];
    cpus.server_threads.map(flags).unwrap_or_default()
}

impl Server {
    /// Starts the stack's server in its variant, and waits until it listens on all addresses.
    pub(super) fn start(
        program: &Program,
        stack: &Stack,
        addresses: Addresses,
        flags: &[OsString],
        cpus: Option<&CpuList>,
    ) -> Result<Self, String> {
        let started = Self::try_start(program, stack, addresses, flags, cpus);
        started.map_err(|why| format!("failed to start the server `{} serve`: {why}", program.path.display()))
    }

    fn try_start(
        program: &Program,
        stack: &Stack,
        addresses: Addresses,
        flags: &[OsString],
        cpus: Option<&CpuList>,
    ) -> Result<Self, String> {
        let scratch = tempfile::tempdir()
            .map_err(|error| format!("failed to create a folder for its files: {error}"))?;
        let uds = format!("unix:{}", scratch.path().join("server.sock").display());
        let mut command = program.command("serve");
        command.args(["--listen", "127.0.0.1:0"]);
        match addresses {
            Addresses::Tcp => {}
            Addresses::TcpAndUds => drop(command.args(["--listen", &uds])),
            Addresses::TcpAndJson => drop(command.args(["--json", "127.0.0.1:0"])),
        }
        if let Some(variant) = program.server_variant(stack) {
            command.args(["--variant", variant]);
        }
        command.args(flags);
        let (process, listening) =
            wait_until_listening(command, cpus, 1 + usize::from(addresses != Addresses::Tcp))?;
        // The gRPC address is printed first.
        let mut on_tcp = listening.into_iter().filter(|address| !address.starts_with("unix"));
        let tcp = on_tcp.next().ok_or("it did not report its TCP address")?;
        Ok(Self { process, tcp, uds, json: on_tcp.next(), _scratch: scratch })
    }

    /// Returns the TCP addresses for gRPC and for JSON.
    pub(super) fn tcp(&self) -> (&str, Option<&str>) {
        (&self.tcp, self.json.as_deref())
    }

    /// Returns the address for a transport.
    pub(super) fn target(&self, transport: Transport) -> &str {
        match transport {
            Transport::Tcp => &self.tcp,
            Transport::Uds => &self.uds,
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.child.id()
    }

    /// Returns whether the process has exited.
    pub(super) fn has_exited(&mut self) -> bool {
        matches!(self.process.child.try_wait(), Ok(Some(_)))
    }

    /// Returns why the server stopped, if it has.
    pub(super) fn exit_reason(&mut self) -> Option<String> {
        let status = self.process.child.try_wait().ok().flatten()?;
        Some(format!("the server exited ({status}): {}", self.process.stderr_tail_or_default()))
    }
}

/// Starts the process and waits until it has printed `count` addresses.
fn wait_until_listening(
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
                return Err(format!("it was not listening after {} s", LISTEN_PATIENCE.as_secs()));
            }
            Err(RecvTimeoutError::Disconnected) => return Err(process.stderr_tail_or_default()),
        }
    }
    Ok((process, addresses))
}

/// Returns the address in a line such as `listening on 127.0.0.1:50051`.
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
    fn listen_address_is_parsed() {
        let check =
            |line: &str, address: Option<&str>| assert_eq!(address_in(line).as_deref(), address, "{line}");
        check("listening on 127.0.0.1:41233", Some("127.0.0.1:41233"));
        check("listening on 127.0.0.1:41233 (TCP).", Some("127.0.0.1:41233"));
        check("listening on unix:/tmp/a b", Some("unix:/tmp/a"));
        check("ready: [::1]:80,", Some("[::1]:80"));
        check("thalweg 0.1.0", None);
    }
}
