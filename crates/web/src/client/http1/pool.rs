//! Pool of a client's HTTP/1.1 connections.

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

use super::sending::{SendProgress, SendingBody};

/// Limits of an HTTP/1.1 connection pool.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Http1Options {
    /// Maximum number of connections, 256 by default. Further calls wait in order.
    pub connections_max: usize,
    /// Maximum number of idle connections, 32 by default.
    pub idle_max: usize,
    /// Maximum idle time of a reused connection, 90 s by default. An expired connection is closed at the next access,
    /// not by a timer.
    pub idle_timeout: Duration,
}

impl Default for Http1Options {
    fn default() -> Self {
        Self { connections_max: 256, idle_max: 32, idle_timeout: Duration::from_secs(90) }
    }
}

impl Http1Options {
    /// Sets [`connections_max`](field@Self::connections_max).
    pub fn connections_max(mut self, connections_max: usize) -> Self {
        self.connections_max = connections_max;
        self
    }

    /// Sets [`idle_max`](field@Self::idle_max).
    pub fn idle_max(mut self, idle_max: usize) -> Self {
        self.idle_max = idle_max;
        self
    }

    /// Sets [`idle_timeout`](field@Self::idle_timeout).
    pub fn idle_timeout(mut self, idle_timeout: Duration) -> Self {
        self.idle_timeout = idle_timeout;
        self
    }
}

pub(super) struct Pool {
    pub(super) streams: ByteStreams,
    pub(super) options: Http1Options,
    pub(super) host: HeaderValue,
    pub(super) user_agent: HeaderValue,
    /// The most recently used connection is last and is taken first.
    idle: Mutex<Vec<IdleConnection>>,
    /// One permit per connection with a call. Idle connections hold none: connections are opened only if none is idle,
    /// so both together never exceed `connections_max`.
    permits: Arc<Semaphore>,
}

struct IdleConnection {
    connection: Connection,
    since: Instant,
}

/// A connection. Dropping it closes it.
pub(super) struct Connection {
    pub(super) sender: SendRequest<SendingBody>,
    task: JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A connection with a call.
pub(super) struct BusyConnection {
    pub(super) connection: Connection,
    _permit: OwnedSemaphorePermit,
}

impl BusyConnection {
    pub(super) fn new(connection: Connection, permit: OwnedSemaphorePermit) -> BusyConnection {
        BusyConnection { connection, _permit: permit }
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

    /// Waits until another call may use a connection.
    pub(super) async fn permit(&self) -> Result<OwnedSemaphorePermit, Status> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        permit.map_err(|_| Status::local(Code::Internal, "the connections are closed"))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<IdleConnection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an idle connection that accepts a call.
    pub(super) async fn take_idle(&self) -> Option<Connection> {
        loop {
            let IdleConnection { mut connection, since } = self.lock().pop()?;
            if since.elapsed() > self.options.idle_timeout {
                // The remaining ones are older.
                self.lock().clear();
                return None;
            }
            // Its task may still have to process the end of the last response.
            if connection.sender.ready().await.is_ok() {
                return Some(connection);
            }
        }
    }

    pub(super) async fn open(&self) -> Result<Connection, Status> {
        let stream = self.streams.connect().await?;
        let (sender, connection) = handshake(TokioIo::new(stream))
            .await
            .map_err(|error| self.failure_of(&error, &SendProgress::default()))?;
        let task = tokio::spawn(async move {
            if let Err(error) = connection.await {
                // The call on the connection has its own error.
                tracing::debug!(%error, "HTTP/1.1 connection failed");
            }
        });
        Ok(Connection { sender, task })
    }

    /// Returns a connection to the pool after its call.
    pub(super) fn put_back(&self, connection: Connection) {
        if connection.sender.is_closed() {
            return;
        }
        let mut idle = self.lock();
        idle.retain(|other| !other.connection.sender.is_closed());
        let excess = (idle.len() + 1).saturating_sub(self.options.idle_max).min(idle.len());
        // Dropped after the lock is released.
        let closed: Vec<IdleConnection> = idle.drain(..excess).collect();
        if self.options.idle_max > 0 {
            idle.push(IdleConnection { connection, since: Instant::now() });
        }
        drop(idle);
        drop(closed);
    }

    /// Returns the status for a response that is missing or incomplete.
    #[cold]
    pub(super) fn failure_of(&self, error: &hyper::Error, sent: &SendProgress) -> Status {
        if let Some(status) = sent.failure() {
            return status;
        }
        let authority = self.streams.authority();
        let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
        if error.is_parse() {
            let why = format!("invalid HTTP/1.1 response from {authority}: {error}{cause}");
            return Status::local(Code::Internal, why);
        }
        let why = if error.is_incomplete_message() {
            format!("{authority} closed the connection before it responded")
        } else {
            format!("connection to {authority} lost: {error}{cause}")
        };
        Status::local(Code::Unavailable, why)
    }
}
