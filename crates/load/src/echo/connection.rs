//! HTTP requests: raw calls of the engine for HTTP/2, hyper for HTTP/1.1.

use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use thalweg::{CallOptions, Status};
use thalweg_engine::RawBody;
use thalweg_engine::raw::{OutgoingBody, Piece, Trailers};
use tokio::net::TcpStream;

/// A whole response.
#[derive(Debug)]
pub(super) struct EchoResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) trailers: Option<HeaderMap>,
}

#[derive(Debug)]
pub(super) enum Connections {
    H2(thalweg_engine::Channel),
    Http1(Http1),
}

impl Connections {
    /// Sends a request and receives the whole response.
    pub(super) async fn send(&self, request: Request<Bytes>) -> Result<EchoResponse, Status> {
        match self {
            Self::H2(channel) => send_h2(channel, request).await,
            Self::Http1(http1) => http1.send(request).await,
        }
    }
}

async fn send_h2(channel: &thalweg_engine::Channel, request: Request<Bytes>) -> Result<EchoResponse, Status> {
    let options = CallOptions::default();
    let response = channel.raw(request.map(|bytes| FullBody(Some(bytes))), &options).await?;
    let (head, body) = response.into_parts();
    let (body, trailers) = collect(body).await?;
    Ok(EchoResponse { status: head.status, headers: head.headers, body, trailers })
}

async fn collect(mut body: RawBody) -> Result<(Bytes, Option<HeaderMap>), Status> {
    if let Some((bytes, trailers)) = body.take_complete() {
        return Ok((bytes, trailers.into_fields()));
    }
    let collected = body.collect().await?;
    let trailers = collected.trailers().cloned();
    Ok((collected.to_bytes(), trailers))
}

/// A body available at once.
struct FullBody(Option<Bytes>);

impl Body for FullBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

impl OutgoingBody for FullBody {
    fn status(error: Status) -> Status {
        error
    }

    fn take_complete(&mut self) -> Option<(Piece, Trailers)> {
        Some((self.0.take().unwrap_or_default().into(), Trailers::None))
    }
}

/// HTTP/1.1 connections to one server, one per concurrent request. A connection is reused once its response has been
/// read to the end.
#[derive(Debug)]
pub(super) struct Http1 {
    /// `HOST:PORT`.
    address: String,
    idle: Mutex<Vec<SendRequest<Full<Bytes>>>>,
}

impl Http1 {
    pub(super) fn new(address: String) -> Self {
        Self { address, idle: Mutex::default() }
    }

    async fn send(&self, mut request: Request<Bytes>) -> Result<EchoResponse, Status> {
        let host =
            self.address.parse().map_err(|_| Status::internal("the address is not a valid header value"))?;
        request.headers_mut().insert(http::header::HOST, host);
        let mut connection = match self.idle_one().await {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        let response = connection.send_request(request.map(Full::new)).await.map_err(|error| lost(&error))?;
        let (head, body) = response.into_parts();
        let collected = body.collect().await.map_err(|error| lost(&error))?;
        let trailers = collected.trailers().cloned();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        Ok(EchoResponse { status: head.status, headers: head.headers, body: collected.to_bytes(), trailers })
    }

    /// Returns the most recently used connection that the server has not closed.
    async fn idle_one(&self) -> Option<SendRequest<Full<Bytes>>> {
        loop {
            let mut connection = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
            // It is ready only if hyper's task saw the end of the previous response.
            if connection.ready().await.is_ok() {
                return Some(connection);
            }
        }
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, Status> {
        let failed = |error| Status::unavailable(format!("failed to connect to {}: {error}", self.address));
        let stream = TcpStream::connect(&self.address).await.map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| lost(&error))?;
        // The task ends with the sender or the peer; its error is reported by the sender.
        tokio::spawn(connection);
        Ok(sender)
    }
}

fn lost(error: &hyper::Error) -> Status {
    Status::unavailable(format!("the exchange over HTTP/1.1 failed: {error}"))
}
