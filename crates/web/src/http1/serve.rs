//! One connection: [`serve`].

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

/// How long a client may go on sending what nobody reads, so that it reads the answer that says so: bytes that come to
/// a closed socket would take the answer with them.
const LINGER_MAX: Duration = Duration::from_secs(2);
/// How much hyper reads at once, at most, of what is longer than a head.
const READ_BYTES_MAX: usize = 417_792;
/// The next request is not answered while so many bytes of responses wait to be written.
const UNSENT_MAX: usize = 64 << 10;

/// Answers the requests that come by `io`, until it ends, or `stop` is ready: then a request that is under way is
/// answered, and a connection without one ends at once.
///
/// It ends the connection when it is dropped, and what is under way on it.
pub async fn serve<IO, S, F>(io: IO, service: S, limits: &Http1Limits, stop: impl Future<Output = ()>)
where
    IO: AsyncRead + AsyncWrite + Unpin,
    S: Fn(Request<Body>) -> F,
    F: Future<Output = Response<Body>>,
{
    serve_counted(io, service, limits, stop, None).await;
}

/// The same: `requests` is told of each that is under way, until it is answered to its body's end.
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
                // hyper reads on, and finds it.
                Due::Body => progress.end(Ending::TooSlow),
                // hyper keeps a connection open on which it has read an empty line, which is not a request yet.
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

/// What has not come in its time, as soon as there is such a thing.
fn overdue(
    progress: &Progress,
    limits: &Http1Limits,
    mut timer: Pin<&mut Sleep>,
    cx: &mut std::task::Context<'_>,
) -> Poll<Due> {
    loop {
        let Some((at, due)) = progress.next_due(limits) else { return Poll::Pending };
        // One that is early stays: most of what it waits for comes, and the next thing is due later.
        if at < timer.deadline() || timer.is_elapsed() {
            timer.as_mut().reset(at);
        }
        ready!(timer.as_mut().poll(cx));
        if at <= Instant::now() {
            return Poll::Ready(due);
        }
    }
}

/// Ends a connection that hyper is done with. One that was cut is dropped as it is.
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
