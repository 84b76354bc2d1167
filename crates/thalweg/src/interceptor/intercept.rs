//! Code that wraps calls: [`Interceptor`], and functions of the request's head.

use std::future::Future;
use std::sync::Arc;

use thalweg_core::{Request, Status};

use super::call::{Call, Reply};
use super::next::{Link, Next};

/// Wraps calls; see [the module](crate::interceptor).
///
/// Closures `Fn(Call, Next) -> impl Future<Output = Result<Reply, Status>>` implement it:
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
    /// Receives the call, usually continues it with [`Next::run`], and returns the response.
    ///
    /// # Errors
    /// The status that the call ends with, from an inner interceptor, the handler or the server, or from this
    /// interceptor.
    fn intercept(&self, call: Call, next: Next) -> impl Future<Output = Result<Reply, Status>> + Send;

    /// Converts the interceptor into an element of a chain.
    #[doc(hidden)]
    fn into_link(self) -> InterceptorLink
    where
        Self: Sized,
    {
        let interceptor = Arc::new(self);
        InterceptorLink(Link::Call(Arc::new(move |call, next| {
            let interceptor = Arc::clone(&interceptor);
            Box::pin(async move { interceptor.intercept(call, next).await })
        })))
    }
}

/// An element of a chain of interceptors.
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
        InterceptorLink(Link::Call(Arc::new(move |call, next| Box::pin(self(call, next)))))
    }
}

/// Creates an interceptor from a function that sees a request's metadata and extensions, like tonic's interceptors.
///
/// On a server it runs before the messages are decoded if all interceptors outside of it are such functions, too.
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

/// The interceptor created by [`head`].
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
