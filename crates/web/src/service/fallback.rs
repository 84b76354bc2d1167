//! The user's service for requests that are not calls.

use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use tower_service::Service;

use super::response::ResponseFuture;
use crate::body::Body;

/// A type-erased tower service.
#[derive(Clone)]
pub(crate) struct Fallback(Arc<dyn Fn(Request<Body>) -> ResponseFuture + Send + Sync>);

impl Fallback {
    pub(crate) fn new<S, B>(service: S) -> Fallback
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Error: Into<Box<dyn Error + Send + Sync>>,
        S::Future: Send,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        Fallback(Arc::new(move |request: Request<Body>| {
            let mut service = service.clone();
            ResponseFuture::from_future(async move {
                let path = request.uri().path().to_owned();
                if let Err(error) = poll_fn(|cx| service.poll_ready(cx)).await {
                    return failure(&path, &*error.into());
                }
                match service.call(request).await {
                    Ok(response) => response.map(Body::new),
                    Err(error) => failure(&path, &*error.into()),
                }
            })
        }))
    }

    pub(crate) fn call(&self, request: Request<Body>) -> ResponseFuture {
        (self.0)(request)
    }
}

impl fmt::Debug for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fallback")
    }
}

/// Hides the error from the client.
#[cold]
fn failure(path: &str, error: &(dyn Error + Send + Sync)) -> Response<Body> {
    tracing::error!(path, %error, "the fallback service failed");
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    response
}
