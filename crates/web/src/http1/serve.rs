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

use super::guarded::{Guarded, Rest};
use super::limits::Http1Limits;
use super::progress::{Due, Ending, Progress};
use super::{answer, request};
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
        let (number, under_way) = progress.answering();
        let method = request.method().clone();
        let checked = request::checked(request, number, &progress);
        let (progress, service) = (&progress, &service);
        async move {
            let answer = match checked {
                Ok(request) => {
                    let (mut answering, mut admission) = (pin!(service(request)), progress.admission());
                    let answer = poll_fn(|cx| {
                        if let Some(admission) = &mut admission {
                            ready!(admission.poll(UNSENT_MAX, cx));
                        }
                        answering.as_mut().poll(cx)
                    })
                    .await;
                    progress.begins(number).await;
                    answer
                }
                Err(refusal) => refusal,
            };
            Ok::<_, Infallible>(answer::prepared(answer, &method, progress.is_last(number), under_way))
        }
    });
    let io = TokioIo::new(Guarded::new(io, limits.max_head_size, progress.clone()));
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
            if progress.ending() == Some(Ending::Cut) {
                return Poll::Ready(Err(None));
            }
            match ready!(overdue(&progress, limits, timer.as_mut(), cx)) {
                Due::Head | Due::Reading => return Poll::Ready(Err(None)),
                // hyper finds the error at its next read.
                Due::Body => progress.end(Ending::TooSlow),
                // After an empty line, which is not a request yet, hyper keeps the connection open.
                Due::Request if is_idle => return Poll::Ready(Err(None)),
                Due::Request => {
                    is_idle = true;
                    Pin::new(&mut connection).graceful_shutdown();
                }
            }
        }
    })
    .await;
    if let Err(Some(error)) = &served {
        tracing::debug!(%error, "a connection of HTTP/1.1 failed");
    }
    let parts = connection.into_parts();
    let rest = parts.io.into_inner().into_rest();
    end(rest, served.is_ok(), !parts.read_buf.is_empty()).await;
}

/// Waits until something is overdue.
fn overdue(
    progress: &Progress,
    limits: &Http1Limits,
    mut timer: Pin<&mut Sleep>,
    cx: &mut std::task::Context<'_>,
) -> Poll<Due> {
    loop {
        let Some((at, due)) = progress.next_due(limits) else { return Poll::Pending };
        // A later deadline does not reset the timer before it fires, since most deadlines move before they expire.
        if at < timer.deadline() || timer.is_elapsed() {
            timer.as_mut().reset(at);
        }
        ready!(timer.as_mut().poll(cx));
        if at <= Instant::now() {
            return Poll::Ready(due);
        }
    }
}

/// Ends a connection after hyper has finished with it. A cut connection is dropped without a shutdown.
async fn end<IO: AsyncRead + AsyncWrite + Unpin>(mut rest: Rest<IO>, is_whole: bool, has_unread: bool) {
    let ending = async {
        if is_whole && !rest.is_shut {
            let _ = rest.io.shutdown().await;
            rest.is_shut = true;
        }
        let mut space = [0; 1024];
        while rest.is_shut
            && (rest.may_have_more || has_unread)
            && rest.io.read(&mut space).await.is_ok_and(|len| len > 0)
        {}
    };
    let _ = timeout(LINGER_MAX, ending).await;
}
