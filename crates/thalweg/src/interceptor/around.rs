//! What goes around calls: [`Interceptor`], and functions of the head.

use std::future::Future;
use std::sync::Arc;

use tonic::{Request, Status};

use super::call::{Call, Reply};
use super::next::{Link, Next};

/// Goes around calls; see [the module](crate::interceptor).
///
/// A closure `Fn(Call, Next) -> impl Future<Output = Result<Reply, Status>>` is one, too:
///
/// ```
/// use std::sync::Arc;
/// use thalweg::interceptor::{Call, Next};
/// use thalweg::{Server, Status};
/// use tokio::sync::Semaphore;
///
/// let places = Arc::new(Semaphore::new(100));
/// let server = Server::builder().interceptor(move |call: Call, next: Next| {
///     let places = Arc::clone(&places);
///     async move {
///         let _place = places.try_acquire().map_err(|_| Status::resource_exhausted("100 calls are in flight"))?;
///         next.run(call).await
///     }
/// });
/// ```
pub trait Interceptor: Send + Sync + 'static {
    /// Sees the call, goes on with it ([`Next::run`]), and sees the reply.
    ///
    /// # Errors
    /// The status that the call ends with, whether it came from behind or is this interceptor's own.
    fn intercept(&self, call: Call, next: Next) -> impl Future<Output = Result<Reply, Status>> + Send;

    /// What it becomes in a list of interceptors.
    #[doc(hidden)]
    fn into_link(self) -> InterceptorLink
    where
        Self: Sized,
    {
        let interceptor = Arc::new(self);
        InterceptorLink(Link::Around(Arc::new(move |call, next| {
            let interceptor = Arc::clone(&interceptor);
            Box::pin(async move { interceptor.intercept(call, next).await })
        })))
    }
}

/// One of a list of interceptors.
#[doc(hidden)]
pub struct InterceptorLink(pub(crate) Link);

impl<F, Fut> Interceptor for F
where
    F: Fn(Call, Next) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Reply, Status>> + Send + 'static,
{
    fn intercept(&self, call: Call, next: Next) -> impl Future<Output = Result<Reply, Status>> + Send {
        self(call, next)
    }

    fn into_link(self) -> InterceptorLink {
        InterceptorLink(Link::Around(Arc::new(move |call, next| Box::pin(self(call, next)))))
    }
}

/// An interceptor from a function that sees a request's head: metadata and extensions, as tonic's interceptors do.
///
/// At a server it runs before the messages are decoded, if all interceptors outside of it are such functions.
///
/// ```
/// use thalweg::interceptor::head;
/// use thalweg::{Request, Server, Status};
///
/// fn only_with_token(request: Request<()>) -> Result<Request<()>, Status> {
///     match request.metadata().get("authorization") {
///         Some(token) if token == "Bearer some-secret" => Ok(request),
///         _ => Err(Status::unauthenticated("no valid token")),
///     }
/// }
///
/// let server = Server::builder().interceptor(head(only_with_token));
/// ```
pub fn head<F>(function: F) -> Head<F>
where
    F: Fn(Request<()>) -> Result<Request<()>, Status> + Send + Sync + 'static,
{
    Head(function)
}

/// What [`head`] makes.
#[derive(Clone, Copy, Debug)]
pub struct Head<F>(F);

impl<F> Interceptor for Head<F>
where
    F: Fn(Request<()>) -> Result<Request<()>, Status> + Send + Sync + 'static,
{
    async fn intercept(&self, call: Call, next: Next) -> Result<Reply, Status> {
        next.run(call.with_head(&self.0)?).await
    }

    fn into_link(self) -> InterceptorLink {
        InterceptorLink(Link::Head(Arc::new(self.0)))
    }
}
