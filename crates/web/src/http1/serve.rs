//! Serving of one connection: [`serve`].

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Poll, ready};
use std::time::Duration;

use http::{Request, Response};
use hyper_util::rt::TokioIo;
use thalweg_engine::server::Http1Requests;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, Sleep, sleep_until, timeout};

use super::limits::Http1Limits;
use super::progress::{CloseReason, Progress, Timeout};
use super::strict_io::{IoParts, StrictIo};
use super::{request, response};
use crate::body::Body;

/// Maximum time to discard a client's data after the last response. Data that arrives at a closed socket could make the
/// client lose the response.
const LINGER_MAX: Duration = Duration::from_secs(2);
/// Maximum size of hyper's buffer, unless heads may be larger.
const READ_BYTES_MAX: usize = 417_792;
/// Unsent response bytes at which the next request has to wait.
const UNSENT_MAX: usize = 64 << 10;

/// Responds to the requests of `io` until it ends or `stop` is ready. On `stop` a current request is still answered; a
/// connection without one ends immediately.
///
/// Dropping the future closes the connection and cancels its request.
pub async fn serve<IO, S, F>(io: IO, service: S, limits: &Http1Limits, stop: impl Future<Output = ()>)
where
    IO: AsyncRead + AsyncWrite + Unpin,
    S: Fn(Request<Body>) -> F,
    F: Future<Output = Response<Body>>,
{
    serve_counted(io, service, limits, stop, None).await;
}

/// Like [`serve`]. `requests` counts each request until its response is complete.
pub(crate) async fn serve_counted<IO, S, F>(
    io: IO,
    service: S,
    limits: &Http1Limits,
    stop: impl Future<Output = ()>,
    requests: Option<Http1Requests>,
) where
    IO: AsyncRead + AsyncWrite + Unpin,
    S: Fn(Request<Body>) -> F,
    F: Future<Output = Response<Body>>,
{
    let progress = Progress::new(Instant::now(), requests);
    let service = hyper::service::service_fn(|request: Request<hyper::body::Incoming>| {
        let (number, active_request) = progress.start_request();
        let method = request.method().clone();
        let checked = request::check(request, number, &progress);
        let (progress, service) = (&progress, &service);
        async move {
            let response = match checked {
                Ok(request) => {
                    let (mut response_future, mut admission) = (pin!(service(request)), progress.admission());
                    let response = poll_fn(|cx| {
                        if let Some(admission) = &mut admission {
                            ready!(admission.poll(UNSENT_MAX, cx));
                        }
                        response_future.as_mut().poll(cx)
                    })
                    .await;
                    progress.response_starts(number).await;
                    response
                }
                Err(refusal) => refusal,
            };
            Ok::<_, Infallible>(response::prepare(
                response,
                &method,
                progress.is_last_response(number),
                active_request,
            ))
        }
    });
    let io = TokioIo::new(StrictIo::new(io, limits.max_head_size, progress.clone()));
    let mut connection = hyper::server::conn::http1::Builder::new()
        .max_header_size(limits.max_head_size)
        .max_headers(limits.max_headers)
        .max_buf_size(limits.max_head_size.max(READ_BYTES_MAX))
        .header_read_timeout(None)
        .serve_connection(io, service);

    let mut stop = pin!(stop);
    let (mut is_stopping, mut is_idle) = (false, false);
    let mut timer = pin!(sleep_until(Instant::now() + Duration::from_secs(3600)));
    let served = poll_fn(|cx| {
        if !is_stopping && stop.as_mut().poll(cx).is_ready() {
            is_stopping = true;
            Pin::new(&mut connection).graceful_shutdown();
        }
        loop {
            if let Poll::Ready(ended) = Pin::new(&mut connection).poll(cx) {
                return Poll::Ready(ended.map_err(Some));
            }
            if progress.close_reason() == Some(CloseReason::ClientClosed) {
                return Poll::Ready(Err(None));
            }
            match ready!(next_expired(&progress, limits, timer.as_mut(), cx)) {
                Timeout::Head | Timeout::Response => return Poll::Ready(Err(None)),
                // hyper finds the error at its next read.
                Timeout::Body => progress.close(CloseReason::TooSlow),
                // After an empty line, which is not a request yet, hyper keeps the connection open.
                Timeout::Idle if is_idle => return Poll::Ready(Err(None)),
                Timeout::Idle => {
                    is_idle = true;
                    Pin::new(&mut connection).graceful_shutdown();
                }
            }
        }
    })
    .await;
    if let Err(Some(error)) = &served {
        tracing::debug!(%error, "HTTP/1.1 connection failed");
    }
    let parts = connection.into_parts();
    let io_parts = parts.io.into_inner().into_parts();
    close(io_parts, served.is_ok(), !parts.read_buf.is_empty()).await;
}

/// Waits until a time limit has expired.
fn next_expired(
    progress: &Progress,
    limits: &Http1Limits,
    mut timer: Pin<&mut Sleep>,
    cx: &mut std::task::Context<'_>,
) -> Poll<Timeout> {
    loop {
        let Some((at, expired)) = progress.next_timeout(limits) else { return Poll::Pending };
        // A later deadline does not reset the timer before it fires, since most deadlines move before they expire.
        if at < timer.deadline() || timer.is_elapsed() {
            timer.as_mut().reset(at);
        }
        ready!(timer.as_mut().poll(cx));
        if at <= Instant::now() {
            return Poll::Ready(expired);
        }
    }
}

/// Ends a connection after hyper has finished with it. A cut connection is dropped without a shutdown.
async fn close<IO: AsyncRead + AsyncWrite + Unpin>(
    mut io_parts: IoParts<IO>,
    is_clean: bool,
    has_unread: bool,
) {
    let closing = async {
        if is_clean && !io_parts.is_shut {
            let _ = io_parts.io.shutdown().await;
            io_parts.is_shut = true;
        }
        let mut space = [0; 1024];
        while io_parts.is_shut
            && (io_parts.may_have_more || has_unread)
            && io_parts.io.read(&mut space).await.is_ok_and(|len| len > 0)
        {}
    };
    let _ = timeout(LINGER_MAX, closing).await;
}
