//! HTTP/1.1 connections: the handler's interface and the accounting of requests.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;

use crate::connection::{Connection, Http1Command, Http1InFlight, RequestAccounting};
use crate::connection_info::ConnectionInfo;
use crate::memory_budget::Turn;

/// Serves HTTP/1.1 connections.
pub trait Http1: Send + Sync + 'static {
    /// Serves a connection until it ends. To close it at once, the future is dropped.
    fn serve(&self, connection: Http1Connection) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// An HTTP/1.1 connection.
#[non_exhaustive]
pub struct Http1Connection {
    /// The connection from its first byte on.
    pub io: Box<dyn ByteStream>,
    /// Connection info for its requests, if the server passes it to calls.
    pub info: Option<Arc<ConnectionInfo>>,
    /// Completes when the connection should finish its current requests and close: on shutdown, or at its maximum age
    /// or idle time.
    pub stop: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Counts requests in progress. A connection without any is idle.
    pub requests: Http1Requests,
}

/// Any byte stream.
pub trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<IO: AsyncRead + AsyncWrite + Unpin + Send> ByteStream for IO {}

/// Accounting of an HTTP/1.1 connection's requests.
#[derive(Clone, Debug)]
pub struct Http1Requests(Arc<Connection>);

impl Http1Requests {
    /// Registers a request, which counts until the returned value is dropped.
    pub fn begin(&self) -> Http1Request {
        Http1Request { _counted: Http1InFlight::begin(&self.0) }
    }

    /// Creates the admission control of a response or a part of one.
    pub fn admission(&self) -> Http1Admission {
        Http1Admission { connection: Arc::clone(&self.0), turn: Turn::default() }
    }

    /// Reports `unsent` bytes of buffered responses, and `sent` bytes received by the client since the last report.
    pub fn note_responses(&self, unsent: usize, sent: usize) {
        self.0.lock().note_http1_responses(unsent, sent);
    }

    /// Creates the memory accounting of a request body while it is gathered and decoded.
    pub fn accounting(&self) -> RequestAccounting {
        RequestAccounting::of_http1(&self.0)
    }
}

/// Admission control of a response, polled before it is built.
#[derive(Debug)]
pub struct Http1Admission {
    connection: Arc<Connection>,
    turn: Turn,
}

impl Http1Admission {
    /// Waits until at most `unsent_max` bytes of earlier responses are unsent and the server's memory budget has room.
    /// Poll it before each step that may build a response or a part of one.
    pub fn poll(&mut self, unsent_max: usize, cx: &mut Context<'_>) -> Poll<()> {
        self.connection.poll_admission(&mut self.turn, unsent_max, cx)
    }
}

/// A request in progress.
#[derive(Debug)]
pub struct Http1Request {
    _counted: Http1InFlight,
}

/// Serves the HTTP/1.1 connection registered as `connection`. `drains` means that the server is already shutting down.
pub(super) async fn serve_http1(
    http1: &dyn Http1,
    io: Box<dyn ByteStream>,
    info: Option<Arc<ConnectionInfo>>,
    connection: Arc<Connection>,
    drains: bool,
) {
    connection.lock().hand_to_http1(drains);
    let (sender, receiver) = oneshot::channel::<()>();
    let mut sender = Some(sender);
    let stop = Box::pin(async move {
        // The sender lives as long as this runs.
        let _ = receiver.await;
    });
    let requests = Http1Requests(Arc::clone(&connection));
    let mut serving = http1.serve(Http1Connection { io, info, stop, requests });
    poll_fn(|cx| {
        loop {
            match connection.poll_command(sender.is_none(), cx) {
                Poll::Pending => return serving.as_mut().poll(cx),
                Poll::Ready(Http1Command::Close) => return Poll::Ready(()),
                Poll::Ready(Http1Command::Drain) => drop(sender.take().map(|sender| sender.send(()))),
            }
        }
    })
    .await;
}

impl fmt::Debug for Http1Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http1Connection").field("info", &self.info).finish_non_exhaustive()
    }
}
