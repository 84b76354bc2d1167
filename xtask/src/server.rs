//! Servers started by a suite: each listens on a free loopback port and ends when its value is dropped.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::Result;
use crate::job::Job;
use crate::log;

/// Time limit from a server's start to its first accepted connection. Generous: some run under valgrind.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// Time limit for a server to end after SIGTERM.
const STOP_LIMIT: Duration = Duration::from_secs(15);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

pub(crate) struct Server {
    child: Child,
    name: String,
    port: u16,
}

impl Server {
    /// Starts the job that `job` returns for a free port, and waits until it accepts connections.
    pub(crate) fn start(job: impl FnOnce(u16) -> Job) -> Result<Self> {
        let port = free_port()?;
        Self::start_at(&job(port), port)
    }

    /// Starts `job`, which listens on `port`, and waits until it accepts connections.
    pub(crate) fn start_at(job: &Job, port: u16) -> Result<Self> {
        log::line(format_args!("$ {job} &"))?;
        let child = job.unbounded().stdout(log::file()?).stderr(log::file()?).spawn();
        let child = child.map_err(|error| failed!("`{job}`: {error}"))?;
        let mut server = Self { child, name: job.to_string(), port };
        server.wait_until_ready()?;
        Ok(server)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The address, for example `127.0.0.1:50051`.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The server's process id: wrappers replace themselves by exec.
    pub(crate) fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGTERM and waits. Any exit status is accepted, as few servers handle the signal.
    pub(crate) fn stop(mut self) -> Result<()> {
        self.end().map(drop)
    }

    /// Like [`stop`](Self::stop), but fails unless the server exits successfully.
    pub(crate) fn stop_gracefully(mut self) -> Result<()> {
        let status = self.end()?;
        ensure!(status.success(), "`{}` ended with {status} on SIGTERM", self.name);
        Ok(())
    }

    /// Waits until it ends by itself, for example because another process took over.
    pub(crate) fn wait_until_ended(mut self) -> Result<()> {
        let deadline = Instant::now() + STOP_LIMIT;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait()? {
                ensure!(status.success(), "`{}` ended with {status}", self.name);
                return Ok(());
            }
            thread::sleep(POLL_INTERVAL);
        }
        Err(failed!("`{}` did not end within {} s", self.name, STOP_LIMIT.as_secs()))
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let deadline = Instant::now() + READY_LIMIT;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait()? {
                bail!("`{}` exited at once: {status}", self.name);
            }
            if TcpStream::connect_timeout(&address, POLL_INTERVAL).is_ok() {
                return Ok(());
            }
            thread::sleep(POLL_INTERVAL);
        }
        Err(failed!("`{}` was not listening after {} s", self.name, READY_LIMIT.as_secs()))
    }

    fn end(&mut self) -> Result<ExitStatus> {
        if let Some(status) = self.child.try_wait()? {
            return Ok(status);
        }
        terminate(self.child.id())?;
        let deadline = Instant::now() + STOP_LIMIT;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            thread::sleep(POLL_INTERVAL);
        }
        self.child.kill()?;
        self.child.wait()?;
        Err(failed!("`{}` did not exit within {} s of SIGTERM", self.name, STOP_LIMIT.as_secs()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // After a failed suite the server's exit status does not matter.
        let _ = self.end();
    }
}

/// Sends SIGTERM to a process.
pub(crate) fn terminate(process: u32) -> Result<()> {
    Command::new("kill").arg("-TERM").arg(process.to_string()).status()?;
    Ok(())
}

/// A loopback port that was free a moment ago.
pub(crate) fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}
