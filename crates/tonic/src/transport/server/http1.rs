//! Connections of HTTP/1.1 beside those of HTTP/2: what a connection is, its first bytes say.

use std::future::{Future, pending, poll_fn};
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use thalweg_engine::server::{Router, ServerConfig, serve_routed};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt as _};
use tower::{Service, ServiceExt as _};

use super::connect_info::Told;
use super::connection::Calls;
use crate::body::Body;
use crate::transport::error::BoxError;

/// Serves connections of both protocols: until `signal` is ready and all are over, or until none comes any more.
/// Without a `signal` those that there are go on then.
pub(super) async fn serve<IO, S>(
    config: ServerConfig,
    incoming: impl Stream<Item = (IO, S, Told)>,
    signal: Option<impl Future<Output = ()>>,
) where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: Service<Request<Body>, Response = Response<Body>, Error = BoxError, Future: Send>
        + Clone
        + Send
        + 'static,
{
    let (stop, stopped) = watch::channel(());
    let (http2, of_http2) = mpsc::channel(1);
    let stays = Stays {
        first_bytes_max: config.header_timeout,
        age_max: config.max_connection_age,
        age_grace: config.max_connection_age_grace,
        stopped,
    };
    let stopping = stays.clone().asked_to_stop();
    tokio::spawn(serve_routed(config, ReceiverStream::new(of_http2), Some(stopping)));
    let accepting = async move {
        let mut incoming = pin!(incoming);
        while let Some((io, service, told)) = incoming.next().await {
            tokio::spawn(connection(io, service, told, http2.clone(), stays.clone()));
        }
    };
    let Some(signal) = signal else { return accepting.await };
    let mut signal = pin!(signal);
    tokio::select! {
        biased;
        () = &mut signal => {}
        () = accepting => tokio::select! {
            () = &mut signal => {}
            () = stop.closed() => {}
        }
    }
    stop.send_replace(());
    // All that was told to stop is gone, the engine's server with it.
    stop.closed().await;
}

/// How long a connection may stay.
#[derive(Clone)]
struct Stays {
    first_bytes_max: Duration,
    age_max: Option<Duration>,
    age_grace: Option<Duration>,
    stopped: watch::Receiver<()>,
}

impl Stays {
    /// Ready when the server shall stop.
    async fn asked_to_stop(mut self) {
        if self.stopped.changed().await.is_err() {
            // Nobody can say so any more.
            pending::<()>().await;
        }
    }
}

async fn sleep(duration: Option<Duration>) {
    match duration {
        Some(duration) => tokio::time::sleep(duration).await,
        None => pending().await,
    }
}

async fn connection<IO, S>(
    io: IO,
    service: S,
    told: Told,
    http2: mpsc::Sender<(Rewound<IO>, Arc<dyn Router>)>,
    stays: Stays,
) where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: Service<Request<Body>, Response = Response<Body>, Error = BoxError, Future: Send>
        + Clone
        + Send
        + 'static,
{
    let looked_at = tokio::select! {
        () = stays.clone().asked_to_stop() => return,
        looked_at = tokio::time::timeout(stays.first_bytes_max, Rewound::look_at(io)) => looked_at,
    };
    match looked_at {
        Ok(Ok((io, Protocol::Http2))) => {
            // A server that does not take it any more has stopped.
            let _ = http2.send((io, Arc::new(Calls::new(service, told)))).await;
        }
        Ok(Ok((io, Protocol::Http1))) => {
            drop(http2);
            serve_http1(io, service, told, stays).await;
        }
        Ok(Err(error)) => tracing::debug!(%error, "a connection ended with its first bytes"),
        Err(_) => tracing::debug!("a connection did not begin"),
    }
}

async fn serve_http1<IO, S>(io: Rewound<IO>, service: S, told: Told, stays: Stays)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: Service<Request<Body>, Response = Response<Body>, Error = BoxError, Future: Send>
        + Clone
        + Send
        + 'static,
{
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().extend(told(None));
        service.clone().oneshot(request)
    });
    let mut http1 = hyper::server::conn::http1::Builder::new();
    // With a timer a request's head has its time.
    let connection = http1.timer(TokioTimer::new()).serve_connection(TokioIo::new(io), service);
    let mut connection = pin!(connection);
    let time_left = tokio::select! {
        ended = connection.as_mut() => return note(ended),
        () = stays.clone().asked_to_stop() => None,
        () = sleep(stays.age_max) => stays.age_grace,
    };
    connection.as_mut().graceful_shutdown();
    tokio::select! {
        ended = connection => note(ended),
        () = sleep(time_left) => {}
    }
    // The server waits for whom it told.
    drop(stays);
}

fn note(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection of HTTP/1.1 failed");
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Http1,
    Http2,
}

/// RFC 9113 §3.4.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A byte stream whose first bytes are there to be read once more.
struct Rewound<IO> {
    first: [u8; PREFACE.len()],
    /// Which of them are still to be read.
    start: usize,
    end: usize,
    io: IO,
}

impl<IO: AsyncRead + Unpin> Rewound<IO> {
    /// Reads as much as it takes to tell the protocol.
    async fn look_at(io: IO) -> io::Result<(Self, Protocol)> {
        let mut this = Self { first: [0; PREFACE.len()], start: 0, end: 0, io };
        loop {
            let Self { first, end, io, .. } = &mut this;
            let mut space = ReadBuf::new(&mut first[*end..]);
            poll_fn(|cx| Pin::new(&mut *io).poll_read(cx, &mut space)).await?;
            let len = space.filled().len();
            if len == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            *end += len;
            if first[..*end] != PREFACE[..*end] {
                return Ok((this, Protocol::Http1));
            }
            if *end == PREFACE.len() {
                return Ok((this, Protocol::Http2));
            }
        }
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for Rewound<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.start < self.end {
            let len = into.remaining().min(self.end - self.start);
            into.put_slice(&self.first[self.start..][..len]);
            self.start += len;
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.io).poll_read(cx, into)
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for Rewound<IO> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
