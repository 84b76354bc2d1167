//! Layers around the calls of a channel: timeouts and limits that the engine does not have.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crate::body::Body;
use http::{Request, Response};
use hyper::rt::Executor;
use pin_project_lite::pin_project;
use tower::buffer::Buffer;
use tower::buffer::future::ResponseFuture;
use tower::limit::{ConcurrencyLimitLayer, RateLimitLayer};
use tower::util::BoxService;
use tower::{Service, ServiceBuilder};

use crate::transport::error::{BoxError, Error};
use crate::transport::timeout::{Timeout, TimeoutFuture};

/// An endpoint's settings for calls.
#[derive(Clone, Debug, Default)]
pub(super) struct Limits {
    pub(super) timeout: Option<Duration>,
    pub(super) concurrency: Option<usize>,
    pub(super) rate: Option<(u64, Duration)>,
    /// Maximum number of queued calls.
    pub(super) buffer: Option<usize>,
}

/// Default maximum number of queued calls.
pub(super) const BUFFER_DEFAULT: usize = 1024;

/// Executor of the task that queues calls.
pub(super) type SharedExecutor = Arc<dyn Executor<Pin<Box<dyn Future<Output = ()> + Send>>> + Send + Sync>;

type Call = Request<Body>;
type BoxedResponseFuture = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

impl Limits {
    pub(super) fn buffer_len(&self) -> usize {
        self.buffer.unwrap_or(BUFFER_DEFAULT)
    }

    /// Wraps `service` in the limits. Without a concurrency or rate limit, calls pass only a timeout check; with one,
    /// they pass a queue to a task that `executor` runs.
    pub(super) fn wrap<S>(&self, service: S, executor: &SharedExecutor) -> Stack<S>
    where
        S: Service<Call, Response = Response<Body>> + Clone + Send + 'static,
        S::Error: Into<BoxError> + Send + Sync,
        S::Future: Send,
    {
        let innermost = service.clone();
        let service = Timeout::new(service, self.timeout);
        if self.concurrency.is_none() && self.rate.is_none() {
            return Stack::Plain(service);
        }
        let service = ServiceBuilder::new()
            .option_layer(self.concurrency.map(ConcurrencyLimitLayer::new))
            .option_layer(self.rate.map(|(calls, time)| RateLimitLayer::new(calls, time)))
            .service(service);
        Stack::queued(service, innermost, self.buffer_len(), executor)
    }
}

/// A service with layers, cheap to clone.
pub(super) enum Stack<S> {
    Plain(Timeout<S>),
    /// The service is the innermost one, behind the queue.
    Queued(Buffer<Call, BoxedResponseFuture>, S),
    /// A channel that could not be set up; all its calls fail with this error.
    Failed(Error),
}

impl<S: Clone> Clone for Stack<S> {
    fn clone(&self) -> Self {
        match self {
            Self::Plain(service) => Self::Plain(service.clone()),
            Self::Queued(queue, service) => Self::Queued(queue.clone(), service.clone()),
            Self::Failed(error) => Self::Failed(error.clone()),
        }
    }
}

impl<S> Stack<S> {
    /// Returns the service without its layers; `None` if it could not be set up.
    pub(super) fn innermost(&self) -> Option<&S> {
        match self {
            Self::Plain(service) => Some(service.inner()),
            Self::Queued(_, service) => Some(service),
            Self::Failed(_) => None,
        }
    }

    /// Puts `service`, around `innermost`, behind a queue of `len` calls.
    fn queued<T>(service: T, innermost: S, len: usize, executor: &SharedExecutor) -> Self
    where
        T: Service<Call, Response = Response<Body>> + Send + 'static,
        T::Error: Into<BoxError> + Send + Sync,
        T::Future: Send,
    {
        let service = BoxService::new(tower::ServiceExt::map_err(service, Into::into));
        let (queue, worker) = Buffer::pair(service, len.max(1));
        executor.execute(Box::pin(worker));
        Self::Queued(queue, innermost)
    }
}

impl<S> Service<Call> for Stack<S>
where
    S: Service<Call, Response = Response<Body>>,
    S::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Error;
    type Future = StackFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        match self {
            Self::Plain(service) => service.poll_ready(cx).map_err(Error::transport),
            Self::Queued(queue, _) => queue.poll_ready(cx).map_err(Error::transport),
            // The call fails with the reason: clients do not report that of a channel that is not ready.
            Self::Failed(_) => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, request: Call) -> Self::Future {
        match self {
            Self::Plain(service) => StackFuture::Plain { future: service.call(request) },
            Self::Queued(queue, _) => StackFuture::Queued { future: queue.call(request) },
            Self::Failed(error) => StackFuture::Failed { error: error.clone() },
        }
    }
}

pin_project! {
    #[project = StackProjection]
    pub(super) enum StackFuture<F> {
        Plain { #[pin] future: TimeoutFuture<F> },
        Queued { #[pin] future: ResponseFuture<BoxedResponseFuture> },
        Failed { error: Error },
    }
}

impl<F, E> Future for StackFuture<F>
where
    F: Future<Output = Result<Response<Body>, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Response<Body>, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = match self.project() {
            StackProjection::Plain { future } => ready!(future.poll(cx)),
            StackProjection::Queued { future } => ready!(future.poll(cx)),
            StackProjection::Failed { error } => Err(error.clone().into()),
        };
        Poll::Ready(outcome.map_err(Error::transport))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::error::Error as _;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use hyper_util::rt::TokioExecutor;
    use tokio::time::Instant;
    use tower::{ServiceExt, service_fn};
    use vocabulary::{Code, Status};

    use super::*;
    use crate::transport::error::Kind;

    /// Makes `calls` concurrent calls of a service that takes a second. Returns the maximum concurrency and the
    /// duration in seconds.
    async fn run(limits: Limits, calls: usize) -> (usize, u64) {
        let in_flight = Arc::new(AtomicUsize::new(0));
        let most = Arc::new(AtomicUsize::new(0));
        let (now, max) = (Arc::clone(&in_flight), Arc::clone(&most));
        let service = service_fn(move |_: Call| {
            let now = Arc::clone(&now);
            max.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                now.fetch_sub(1, Ordering::Relaxed);
                Ok::<_, Infallible>(Response::new(Body::empty()))
            }
        });
        let executor: SharedExecutor = Arc::new(TokioExecutor::new());
        let stack = limits.wrap(service, &executor);
        let started = Instant::now();
        let tasks: Vec<_> =
            (0..calls).map(|_| tokio::spawn(stack.clone().oneshot(Request::new(Body::empty())))).collect();
        for call in tasks {
            call.await.unwrap().unwrap();
        }
        (most.load(Ordering::Relaxed), started.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn limits_apply() {
        let none = Limits::default();
        assert_eq!(run(none.clone(), 6).await, (6, 1));
        assert_eq!(run(Limits { concurrency: Some(2), ..none.clone() }, 6).await, (2, 3));
        let rate = Some((2, Duration::from_secs(10)));
        assert_eq!(run(Limits { rate, ..none.clone() }, 6).await, (2, 21));
        let both = Limits { rate, concurrency: Some(1), buffer: Some(1), ..none };
        assert_eq!(run(both, 4).await, (1, 12));
    }

    #[tokio::test(start_paused = true)]
    async fn failures_become_statuses() {
        let check = async |stack: Stack<_>, code: Code, message: &str| {
            let error = stack.oneshot(Request::new(Body::empty())).await.unwrap_err();
            assert_eq!(error.to_string(), "transport error");
            assert!(error.source().is_some());
            let status = Status::from_error(Box::new(error));
            assert_eq!((status.code(), status.message()), (code, message));
        };
        let service = || {
            service_fn(async |request: Call| {
                tokio::time::sleep(Duration::from_secs(3)).await;
                Err::<Response<Body>, _>(Status::not_found(request.uri().path()))
            })
        };
        let executor: SharedExecutor = Arc::new(TokioExecutor::new());
        let wrap = |limits: Limits| limits.wrap(service(), &executor);
        let timeout = Some(Duration::from_secs(2));
        check(wrap(Limits::default()), Code::NotFound, "/").await;
        check(wrap(Limits { concurrency: Some(1), ..Limits::default() }), Code::NotFound, "/").await;
        check(wrap(Limits { timeout, ..Limits::default() }), Code::Cancelled, "Timeout expired").await;
        let both = Limits { timeout, concurrency: Some(1), ..Limits::default() };
        check(wrap(both), Code::Cancelled, "Timeout expired").await;
        let failed = Stack::Failed(Error::new(Kind::InvalidUri).with(Status::aborted("no host")));
        let _same_type = [wrap(Limits::default()), failed.clone()];
        check(failed, Code::Aborted, "no host").await;
    }
}
