//! A client and a server, each on a core of its own: where both share two, the scheduler decides who waits. And a
//! process that holds idle connections to a server.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use crate::failure::Result;
use crate::job::Job;
use crate::log;
use crate::peers::{BuiltPeer, LoadResult, measure};
use crate::server::Server;

pub(super) const CLIENT: &str = "taskset -c 0";
pub(super) const SERVER: &str = "taskset -c 1";

/// A stack's load generator at a stack's server.
pub(super) struct Pair<'p> {
    pub(super) name: String,
    client: &'p BuiltPeer,
    client_flags: String,
    /// Under what the client runs.
    client_wrapper: String,
    pub(super) server: Server,
}

impl<'p> Pair<'p> {
    /// Starts the server with these flags.
    pub(super) fn start(client: &'p BuiltPeer, server: &BuiltPeer, flags: &str) -> Result<Self> {
        let server = Server::start(|port| server.serve(port).words(flags).under(SERVER))?;
        Ok(Self::of(client, server))
    }

    /// Starts a stack's own pair, its server under `wrapper`.
    pub(super) fn start_under(peer: &'p BuiltPeer, wrapper: &str, flags: &str) -> Result<Self> {
        let server = Server::start(|port| peer.serve(port).words(flags).under(wrapper))?;
        Ok(Self::of(peer, server))
    }

    fn of(client: &'p BuiltPeer, server: Server) -> Self {
        let (name, client_wrapper) = (client.name.to_owned(), CLIENT.to_owned());
        Self { name, client, client_flags: String::new(), client_wrapper, server }
    }

    /// With the client under `wrapper`.
    pub(super) fn under(self, wrapper: String) -> Self {
        Self { client_wrapper: wrapper, ..self }
    }

    /// Under another name, with these flags for the client.
    pub(super) fn with(self, name: String, client_flags: &str) -> Self {
        Self { name, client_flags: client_flags.to_owned(), ..self }
    }

    /// A run of the client.
    pub(super) fn measure(&self, flags: &str) -> Result<LoadResult> {
        self.measure_at(&self.server.address(), flags)
    }

    /// A run of the client at another address of the server.
    pub(super) fn measure_at(&self, address: &str, flags: &str) -> Result<LoadResult> {
        let load = self.client.command().words(&format!("load {address} {flags} {}", self.client_flags));
        measure(load.under(&self.client_wrapper))
    }

    /// What a run moves a second.
    pub(super) fn rate(&self, flags: &str) -> Result<f64> {
        Ok(self.measure(flags)?.rate_per_s)
    }
}

/// A process that holds idle connections until its standard input ends.
pub(super) struct Holder {
    child: Child,
    /// The line that it printed when all were open.
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
        ensure!(!line.is_empty(), "`{job}` did not open its connections; see {}", log::path().display());
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

/// Raises the soft limit of open files, of this program and those that it starts, to `count` where it is lower.
///
/// # Errors
///
/// When the hard limit is lower: that is the machine's, and only its owner can raise it.
pub(super) fn allow_open_files(count: usize) -> Result<()> {
    let pid = std::process::id();
    // The shell has this program's limits.
    let script = format!("test \"$(ulimit -Sn)\" -ge {count} || exec prlimit --pid {pid} --nofile={count}:");
    Job::new("sh").words("-c").arg(script).run().map_err(|_| {
        let raise = format!("raise it as root: `prlimit --pid $$ --nofile={count}:{count}`");
        missing!("{count} open files: the hard limit is lower; {raise}")
    })
}
