//! Time limits for response headers, set by the channel or server or by the call.

use std::future::Future;
use std::pin::Pin;
#[cfg(feature = "channel")]
use std::sync::Arc;
#[cfg(feature = "channel")]
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::Request;
use pin_project_lite::pin_project;
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
    #[cfg(feature = "channel")]
    Shared(SharedTimeout),
}

/// A timeout that may change; none by default.
#[cfg(feature = "channel")]
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedTimeout(Arc<AtomicU64>);

#[cfg(feature = "channel")]
impl SharedTimeout {
    pub(crate) fn set(&self, timeout: Option<Duration>) {
        // 0 stands for none: 584 years are as good as none, and 1 ns as none at all.
        let nanos = timeout.map_or(0, |timeout| timeout.as_nanos().clamp(1, u128::from(u64::MAX)) as u64);
        self.0.store(nanos, Ordering::Relaxed);
    }

    fn get(&self) -> Option<Duration> {
        Some(self.0.load(Ordering::Relaxed)).filter(|&nanos| nanos > 0).map(Duration::from_nanos)
    }
}

impl<S> Timeout<S> {
    pub(crate) fn new(service: S, time_max: Option<Duration>) -> Self {
        Self { service, time_max: TimeMax::Fixed(time_max) }
    }

    #[cfg(feature = "channel")]
    pub(crate) fn inner(&self) -> &S {
        &self.service
    }

    #[cfg(feature = "channel")]
    pub(crate) fn shared(service: S, time_max: SharedTimeout) -> Self {
        Self { service, time_max: TimeMax::Shared(time_max) }
    }
}

impl TimeMax {
    fn get(&self) -> Option<Duration> {
        match self {
            Self::Fixed(time_max) => *time_max,
            #[cfg(feature = "channel")]
            Self::Shared(time_max) => time_max.get(),
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

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // Ignores an invalid value, like tonic.
        let call_timeout = thalweg_engine::request_timeout(request.headers()).unwrap_or(None);
        // The shorter of those that are set.
        let time = call_timeout.into_iter().chain(self.time_max.get()).min();
        TimeoutFuture {
            future: self.service.call(request),
            sleep: time.map(|time| Box::pin(tokio::time::sleep(time))),
        }
    }
}

pin_project! {
    #[derive(Debug)]
    pub(crate) struct TimeoutFuture<F> {
        #[pin]
        future: F,
        sleep: Option<Pin<Box<Sleep>>>,
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
        if let Some(sleep) = this.sleep {
            ready!(sleep.as_mut().poll(cx));
            return Poll::Ready(Err(TimeoutExpired(()).into()));
        }
        Poll::Pending
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
