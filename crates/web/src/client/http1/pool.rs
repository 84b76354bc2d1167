//! The connections of HTTP/1.1 of a client: those that are idle, and how many there may be.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::HeaderValue;
use http::header::InvalidHeaderValue;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use thalweg_engine::{ByteStreams, Code, Status};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::sending::{Sending, Sent};

/// How many connections there are of HTTP/1.1, and how long.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Http1Options {
    /// How many there are at once, at most; 256. Calls beyond wait for one of them, in the order of their coming.
    pub connections_max: usize,
    /// How many of them are kept while they have no call; 32.
    pub idle_max: usize,
    /// How long one without a call is taken again; 90 s. Nothing is done when the time is over: it is closed when it is
    /// looked at next.
    pub idle_timeout: Duration,
}

impl Default for Http1Options {
    fn default() -> Self {
        Self { connections_max: 256, idle_max: 32, idle_timeout: Duration::from_secs(90) }
    }
}

pub(super) struct Pool {
    pub(super) streams: ByteStreams,
    pub(super) options: Http1Options,
    pub(super) host: HeaderValue,
    pub(super) user_agent: HeaderValue,
    /// The one that has been idle for the shortest time is last, and is taken first.
    idle: Mutex<Vec<Idle>>,
    /// One for each connection that has a call. Those that are idle have none: another is only opened where there is no
    /// idle one, so that there are never more than `connections_max` of both.
    permits: Arc<Semaphore>,
}

struct Idle {
    connection: Connection,
    since: Instant,
}

/// A connection. Dropping it closes it.
pub(super) struct Connection {
    pub(super) sender: SendRequest<Sending>,
    task: JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A connection that has a call.
pub(super) struct Busy {
    pub(super) connection: Connection,
    _permit: OwnedSemaphorePermit,
}

impl Busy {
    pub(super) fn new(connection: Connection, permit: OwnedSemaphorePermit) -> Busy {
        Busy { connection, _permit: permit }
    }
}

impl Pool {
    pub(super) fn new(streams: ByteStreams, options: Http1Options) -> Result<Pool, InvalidHeaderValue> {
        Ok(Pool {
            host: HeaderValue::try_from(streams.authority())?,
            user_agent: HeaderValue::try_from(streams.user_agent())?,
            streams,
            permits: Arc::new(Semaphore::new(options.connections_max.min(Semaphore::MAX_PERMITS))),
            options,
            idle: Mutex::default(),
        })
    }

    pub(super) fn idle_count(&self) -> usize {
        self.lock().len()
    }

    /// Waits until there may be one more connection that has a call.
    pub(super) async fn permit(&self) -> Result<OwnedSemaphorePermit, Status> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        permit.map_err(|_| Status::local(Code::Internal, "the connections are closed"))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One that can take a call.
    pub(super) async fn take_idle(&self) -> Option<Connection> {
        loop {
            let Idle { mut connection, since } = self.lock().pop()?;
            if since.elapsed() > self.options.idle_timeout {
                // The others are older.
                self.lock().clear();
                return None;
            }
            // Its task may have to look once more at the answer that has just ended.
            if connection.sender.ready().await.is_ok() {
                return Some(connection);
            }
        }
    }

    pub(super) async fn open(&self) -> Result<Connection, Status> {
        let stream = self.streams.connect().await?;
        let (sender, connection) =
            handshake(TokioIo::new(stream)).await.map_err(|error| self.failed(&error, &Sent::default()))?;
        let task = tokio::spawn(async move {
            if let Err(error) = connection.await {
                // The call that was on it has its own.
                tracing::debug!(%error, "a connection of HTTP/1.1 failed");
            }
        });
        Ok(Connection { sender, task })
    }

    /// A connection whose call is over.
    pub(super) fn keep(&self, connection: Connection) {
        if connection.sender.is_closed() {
            return;
        }
        let mut idle = self.lock();
        idle.retain(|other| !other.connection.sender.is_closed());
        let excess = (idle.len() + 1).saturating_sub(self.options.idle_max).min(idle.len());
        // Dropped behind the lock.
        let closed: Vec<Idle> = idle.drain(..excess).collect();
        if self.options.idle_max > 0 {
            idle.push(Idle { connection, since: Instant::now() });
        }
        drop(idle);
        drop(closed);
    }

    /// Why there is no answer, or no more of it.
    #[cold]
    pub(super) fn failed(&self, error: &hyper::Error, sent: &Sent) -> Status {
        if let Some(status) = sent.failure() {
            return status;
        }
        let authority = self.streams.authority();
        let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
        if error.is_parse() {
            let why = format!("{authority} does not answer by the rules of HTTP/1.1: {error}{cause}");
            return Status::local(Code::Internal, why);
        }
        let why = if error.is_incomplete_message() {
            format!("{authority} ended the connection before its answer")
        } else {
            format!("the connection to {authority} was lost: {error}{cause}")
        };
        Status::local(Code::Unavailable, why)
    }
}
