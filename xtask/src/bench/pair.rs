//! A client and a server, each on its own core, because on shared cores the scheduler decides which waits. Also a
//! process that holds idle connections.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use crate::failure::Result;
use crate::job::Job;
use crate::log;
use crate::peers::{BuiltPeer, LoadResult, measure};
use crate::server::Server;

pub(super) const CLIENT: &str = "taskset -c 0";
pub(super) const SERVER: &str = "taskset -c 1";

/// The load generator of one stack with the server of a stack.
pub(super) struct Pair<'p> {
    pub(super) name: String,
    client: &'p BuiltPeer,
    client_flags: String,
    /// Command that the client runs under.
    client_wrapper: String,
    pub(super) server: Server,
}

impl<'p> Pair<'p> {
    /// Starts the server with these flags.
    pub(super) fn start(client: &'p BuiltPeer, server: &BuiltPeer, flags: &str) -> Result<Self> {
        Self::start_with("", client, server, flags)
    }

    /// Like [`start`](Self::start), with an environment variable for both ends, `NAME=VALUE`, unless it is empty.
    pub(super) fn start_with(
        variable: &str,
        client: &'p BuiltPeer,
        server: &BuiltPeer,
        flags: &str,
    ) -> Result<Self> {
        let wrapper = format!("env {variable} {SERVER}");
        let server = Server::start(|port| server.serve(port).words(flags).under(&wrapper))?;
        Ok(Self::of(client, server).under(format!("env {variable} {CLIENT}")))
    }

    /// Starts client and server of one stack, the server under `wrapper`.
    pub(super) fn start_under(peer: &'p BuiltPeer, wrapper: &str, flags: &str) -> Result<Self> {
        let server = Server::start(|port| peer.serve(port).words(flags).under(wrapper))?;
        Ok(Self::of(peer, server))
    }

    fn of(client: &'p BuiltPeer, server: Server) -> Self {
        let (name, client_wrapper) = (client.name.to_owned(), CLIENT.to_owned());
        Self { name, client, client_flags: String::new(), client_wrapper, server }
    }

    /// Runs the client under `wrapper`.
    pub(super) fn under(self, wrapper: String) -> Self {
        Self { client_wrapper: wrapper, ..self }
    }

    /// Sets the name and the client's flags.
    pub(super) fn with(self, name: String, client_flags: &str) -> Self {
        Self { name, client_flags: client_flags.to_owned(), ..self }
    }

    pub(super) fn measure(&self, flags: &str) -> Result<LoadResult> {
        self.measure_at(&self.server.address(), flags)
    }

    /// Runs the client with another address of the server.
    pub(super) fn measure_at(&self, address: &str, flags: &str) -> Result<LoadResult> {
        let load = self.client.command().words(&format!("load {address} {flags} {}", self.client_flags));
        measure(load.under(&self.client_wrapper))
    }

    /// Calls or messages per second of a run.
    pub(super) fn rate(&self, flags: &str) -> Result<f64> {
        Ok(self.measure(flags)?.rate_per_s)
    }
}

/// A process that holds idle connections until end of its standard input.
pub(super) struct Holder {
    child: Child,
    /// The line printed once all connections are open.
    pub(super) line: String,
}

impl Holder {
    pub(super) fn open(job: &Job) -> Result<Self> {
        log::line(format_args!("$ {job} &"))?;
        let mut command = job.unbounded();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log::file()?);
        let mut child = command.spawn()?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        ensure!(!line.is_empty(), "`{job}` did not open all connections; see {}", log::path().display());
        Ok(Self { child, line })
    }

    pub(super) fn process_id(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn close(mut self) -> Result<()> {
        drop(self.child.stdin.take());
        self.child.wait()?;
        Ok(())
    }
}

/// Raises the soft limit of open files for this process and its children to at least `count`.
///
/// # Errors
///
/// Fails if the hard limit is lower than `count`; only root can raise it.
pub(super) fn allow_open_files(count: usize) -> Result<()> {
    let pid = std::process::id();
    // The shell inherits this process's limits.
    let script = format!("test \"$(ulimit -Sn)\" -ge {count} || exec prlimit --pid {pid} --nofile={count}:");
    Job::new("sh").words("-c").arg(script).run().map_err(|_| {
        let raise = format!("raise it as root: `prlimit --pid $$ --nofile={count}:{count}`");
        missing!("{count} open files: the hard limit is lower; {raise}")
    })
}
