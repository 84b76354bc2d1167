//! Connections of HTTP/1.1: what serves them, and how their requests are counted.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;

use crate::connection::{AskedOf, Connection, ForeignRequest, RequestShare};
use crate::connection_info::ConnectionInfo;
use crate::memory_budget::Turn;

/// Serves connections of HTTP/1.1.
pub trait Http1: Send + Sync + 'static {
    /// Serves one to its end. Where it has to end at once, the future is dropped.
    fn serve(&self, connection: Http1Connection) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// A connection whose client speaks HTTP/1.1.
#[non_exhaustive]
pub struct Http1Connection {
    /// The connection from its first byte on.
    pub io: Box<dyn ByteStream>,
    /// Connection info for its requests, if the server passes it to calls.
    pub info: Option<Arc<ConnectionInfo>>,
    /// Ready when it shall end with the requests that are under way: the server stops, or the connection has been there
    /// or idle for as long as it may.
    pub stop: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Where the requests under way are counted: a connection without any is idle.
    pub requests: Http1Requests,
}

/// A byte stream of any kind.
pub trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<IO: AsyncRead + AsyncWrite + Unpin + Send> ByteStream for IO {}

/// Counts the requests of a connection of HTTP/1.1.
#[derive(Clone, Debug)]
pub struct Http1Requests(Arc<Connection>);

impl Http1Requests {
    /// One is under way until what this returns is dropped.
    pub fn begin(&self) -> Http1Request {
        Http1Request { _counted: ForeignRequest::begin(&self.0) }
    }

    /// Asks for room for a response, or for a part of one.
    pub fn admission(&self) -> Http1Admission {
        Http1Admission { connection: Arc::clone(&self.0), turn: Turn::default() }
    }

    /// Says that `unsent` bytes of responses are held that the client has not taken, and that it has taken `sent` more.
    pub fn note_responses(&self, unsent: usize, sent: usize) {
        self.0.lock().note_foreign(unsent, sent);
    }

    /// What a request takes of the connection while its body is gathered and decoded.
    pub fn share(&self) -> RequestShare {
        RequestShare::of_foreign(&self.0)
    }
}

/// Asks for room for what a request is answered with, before it is made.
#[derive(Debug)]
pub struct Http1Admission {
    connection: Arc<Connection>,
    turn: Turn,
}

impl Http1Admission {
    /// Ready while the client has taken all but `unsent_max` bytes of what was made for it before, and the server has
    /// memory for more. To be asked before each step that may make a response, or another part of one.
    pub fn poll(&mut self, unsent_max: usize, cx: &mut Context<'_>) -> Poll<()> {
        self.connection.poll_admission(&mut self.turn, unsent_max, cx)
    }
}

/// A request under way.
#[derive(Debug)]
pub struct Http1Request {
    _counted: ForeignRequest,
}

/// Serves a connection of HTTP/1.1 to its end, which is registered as `connection`. `drains`: the server has been told
/// to stop.
pub(super) async fn serve_http1(
    http1: &dyn Http1,
    io: Box<dyn ByteStream>,
    info: Option<Arc<ConnectionInfo>>,
    connection: Arc<Connection>,
    drains: bool,
) {
    connection.lock().give_away(drains);
    let (tell, told) = oneshot::channel::<()>();
    let mut tell = Some(tell);
    let stop = Box::pin(async move {
        // Who would tell it is not gone: that runs this.
        let _ = told.await;
    });
    let requests = Http1Requests(Arc::clone(&connection));
    let mut serving = http1.serve(Http1Connection { io, info, stop, requests });
    poll_fn(|cx| {
        loop {
            match connection.poll_asked(tell.is_none(), cx) {
                Poll::Pending => return serving.as_mut().poll(cx),
                Poll::Ready(AskedOf::Close) => return Poll::Ready(()),
                Poll::Ready(AskedOf::Drain) => drop(tell.take().map(|tell| tell.send(()))),
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
