//! Time limits for response headers, set by the channel or server or by the call.

use std::future::Future;
use std::pin::Pin;
#[cfg(feature = "channel")]
use std::sync::Arc;
#[cfg(feature = "channel")]
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::Request;
use pin_project_lite::pin_project;
#[cfg(feature = "channel")]
use thalweg_engine::CallPeer;
#[cfg(feature = "channel")]
use tokio::time::Instant;
use tokio::time::Sleep;
use tower::Service;
use vocabulary::TimeoutExpired;

use super::error::BoxError;

/// Ends a call with [`TimeoutExpired`] if its response headers take longer than its `grpc-timeout` or `time_max`.
#[derive(Clone, Debug)]
pub(crate) struct Timeout<S> {
    service: S,
    time_max: TimeMax,
}

#[derive(Clone, Debug)]
enum TimeMax {
    Fixed(Option<Duration>),
    /// That of the endpoint that a call is sent to, from then on.
    #[cfg(feature = "channel")]
    OfEndpoint(EndpointTimeouts),
}

/// Whether endpoints of a balanced channel may have timeouts; true by default, since its first calls may start before
/// its endpoints are known.
#[cfg(feature = "channel")]
#[derive(Clone, Debug)]
pub(crate) struct EndpointTimeouts(Arc<AtomicBool>);

#[cfg(feature = "channel")]
impl EndpointTimeouts {
    pub(crate) fn set(&self, may_apply: bool) {
        self.0.store(may_apply, Ordering::Relaxed);
    }
}

#[cfg(feature = "channel")]
impl Default for EndpointTimeouts {
    fn default() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }
}

/// Extension of a request: reports where its call is sent.
#[cfg(feature = "channel")]
#[derive(Clone, Debug)]
pub(crate) struct SentTo(pub(crate) CallPeer);

impl<S> Timeout<S> {
    pub(crate) fn new(service: S, time_max: Option<Duration>) -> Self {
        Self { service, time_max: TimeMax::Fixed(time_max) }
    }

    #[cfg(feature = "channel")]
    pub(crate) fn inner(&self) -> &S {
        &self.service
    }

    #[cfg(feature = "channel")]
    pub(crate) fn of_endpoints(service: S, timeouts: EndpointTimeouts) -> Self {
        Self { service, time_max: TimeMax::OfEndpoint(timeouts) }
    }
}

impl TimeMax {
    /// Returns the limit of a call with this timeout of its own.
    #[cfg_attr(not(feature = "channel"), expect(unused_variables, reason = "only endpoints' limits note it"))]
    fn limit<B>(&self, call_timeout: Option<Duration>, request: &mut Request<B>) -> Limit {
        match self {
            Self::Fixed(time_max) => {
                // The shorter of those that are set.
                let time = call_timeout.into_iter().chain(*time_max).min();
                time.map_or(Limit::None, |time| Limit::OfCall(Box::pin(tokio::time::sleep(time))))
            }
            #[cfg(feature = "channel")]
            Self::OfEndpoint(timeouts) if timeouts.0.load(Ordering::Relaxed) => {
                let peer = CallPeer::new();
                request.extensions_mut().insert(SentTo(peer.clone()));
                let of_call = call_timeout.and_then(|timeout| Instant::now().checked_add(timeout));
                Limit::OfEndpoint(Box::new(EndpointLimit { peer, of_call, deadline: None, sleep: None }))
            }
            #[cfg(feature = "channel")]
            Self::OfEndpoint(_) => Self::Fixed(None).limit(call_timeout, request),
        }
    }
}

/// The time limit of one call.
#[derive(Debug)]
enum Limit {
    None,
    OfCall(Pin<Box<Sleep>>),
    #[cfg(feature = "channel")]
    OfEndpoint(Box<EndpointLimit>),
}

/// The limit of a call that has an endpoint's timeout once it is sent there. A call that is sent again gets another.
#[cfg(feature = "channel")]
#[derive(Debug)]
struct EndpointLimit {
    peer: CallPeer,
    /// Deadline of the call's own timeout.
    of_call: Option<Instant>,
    /// Deadline of `sleep`.
    deadline: Option<Instant>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Limit {
    /// Polls whether the time is up. The call was polled before, so it is known where it was sent.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::None => Poll::Pending,
            Self::OfCall(sleep) => sleep.as_mut().poll(cx),
            #[cfg(feature = "channel")]
            Self::OfEndpoint(limit) => limit.poll(cx),
        }
    }
}

#[cfg(feature = "channel")]
impl EndpointLimit {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let deadline = self.of_call.into_iter().chain(self.peer.endpoint_deadline()).min();
        if deadline != self.deadline {
            self.sleep = deadline.map(|deadline| Box::pin(tokio::time::sleep_until(deadline)));
            self.deadline = deadline;
        }
        match &mut self.sleep {
            None => Poll::Pending,
            Some(sleep) => sleep.as_mut().poll(cx),
        }
    }
}

impl<S, B> Service<Request<B>> for Timeout<S>
where
    S: Service<Request<B>>,
    S::Error: Into<BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = TimeoutFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.service.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        // Ignores an invalid value, like tonic.
        let call_timeout = thalweg_engine::request_timeout(request.headers()).unwrap_or(None);
        let limit = self.time_max.limit(call_timeout, &mut request);
        TimeoutFuture { future: self.service.call(request), limit }
    }
}

pin_project! {
    #[derive(Debug)]
    pub(crate) struct TimeoutFuture<F> {
        #[pin]
        future: F,
        limit: Limit,
    }
}

impl<F, T, E> Future for TimeoutFuture<F>
where
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
{
    type Output = Result<T, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(outcome) = this.future.poll(cx) {
            return Poll::Ready(outcome.map_err(Into::into));
        }
        ready!(this.limit.poll(cx));
        Poll::Ready(Err(TimeoutExpired(()).into()))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::Response;
    use tokio::time::Instant;
    use tower::{ServiceExt, service_fn};

    use super::*;

    /// Checks after how many seconds a service that takes five seconds times out, if at all.
    async fn check(header: Option<&'static str>, time_max: Option<u64>, expected: Option<u64>) {
        let slow = service_fn(async |_: Request<()>| {
            tokio::time::sleep(Duration::from_secs(5)).await;
            Ok::<_, Infallible>(Response::new(()))
        });
        let mut request = Request::new(());
        if let Some(header) = header {
            request.headers_mut().insert("grpc-timeout", header.parse().unwrap());
        }
        let started = Instant::now();
        let outcome = Timeout::new(slow, time_max.map(Duration::from_secs)).oneshot(request).await;
        let took = started.elapsed().as_secs();
        match expected {
            None => assert!(outcome.is_ok(), "{header:?}, {time_max:?}"),
            Some(seconds) => {
                let error = outcome.expect_err("it takes too long");
                assert!(error.is::<TimeoutExpired>(), "{error}");
                assert_eq!(took, seconds, "{header:?}, {time_max:?}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn shorter_timeout_applies() {
        check(None, None, None).await;
        check(None, Some(6), None).await;
        check(Some("6S"), None, None).await;
        check(None, Some(2), Some(2)).await;
        check(Some("2S"), None, Some(2)).await;
        check(Some("1S"), Some(2), Some(1)).await;
        check(Some("3S"), Some(2), Some(2)).await;
        check(Some("soon"), None, None).await;
        check(Some("soon"), Some(2), Some(2)).await;
    }
}
