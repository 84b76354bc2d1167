//! tower layers as interceptors: [`layer`].

use std::error::Error;
use std::future::{poll_fn, ready};
use std::task::{Context, Poll};

use thalweg_core::Status;
use tower_layer::Layer;
use tower_service::Service;

use super::call::{Call, Reply};
use super::intercept::Interceptor;
use super::next::{BoxFuture, Next};

/// Creates an interceptor from a tower layer whose service takes a [`Call`] and returns a [`Reply`].
///
/// The layer creates one service, which is cloned for each call and polled until it is ready. All calls share the state
/// that clones share; wrap a service that is not `Clone` in tower's `Buffer`. An error that is, or was caused by, a
/// [`Status`] ends the call with that status, any other with UNKNOWN.
///
/// ```
/// # use tower_layer::Layer;
/// # use thalweg::interceptor::{Call, Innermost, Reply, layer};
/// # use thalweg::{Server, Status};
/// # fn example<L>(concurrency_limit: L)
/// # where
/// #     L: Layer<Innermost>,
/// #     L::Service: tower_service::Service<Call, Response = Reply, Error = Status> + Clone + Send + Sync + 'static,
/// #     <L::Service as tower_service::Service<Call>>::Future: Send,
/// # {
/// let server = Server::builder().interceptor(layer(concurrency_limit));
/// # }
/// ```
pub fn layer<L: Layer<Innermost>>(layer: L) -> Layered<L::Service> {
    Layered(layer.layer(Innermost(())))
}

/// The interceptor created by [`layer`].
#[derive(Clone, Debug)]
pub struct Layered<S>(S);

/// The innermost service: it continues the call.
#[derive(Clone, Debug)]
pub struct Innermost(());

/// The rest of the chain, carried in the call's extensions because a tower service receives only the call.
#[derive(Clone)]
struct RemainingChain(Next);

impl<S> Interceptor for Layered<S>
where
    S: Service<Call, Response = Reply> + Clone + Send + Sync + 'static,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    S::Future: Send,
{
    async fn intercept(&self, mut call: Call, next: Next) -> Result<Reply, Status> {
        call.extensions_mut().insert(RemainingChain(next));
        let mut service = self.0.clone();
        poll_fn(|cx| service.poll_ready(cx).map_err(status)).await?;
        service.call(call).await.map_err(status)
    }
}

fn status(error: impl Into<Box<dyn Error + Send + Sync>>) -> Status {
    Status::from_error(error.into())
}

impl Service<Call> for Innermost {
    type Response = Reply;
    type Error = Status;
    type Future = BoxFuture<Result<Reply, Status>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut call: Call) -> Self::Future {
        if let Some(RemainingChain(next)) = call.extensions_mut().remove() {
            return next.run_boxed(call);
        }
        let status = Status::internal("a layer called the service with the call of another interceptor");
        Box::pin(ready(Err(status)))
    }
}
