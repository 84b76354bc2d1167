//! Services for tests.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tower_service::Service;

use crate::error::BoxError;
use crate::server::NamedService;

/// Returns headers, extensions and body of the request.
#[derive(Clone, Debug)]
pub(crate) struct Echo;

impl NamedService for Echo {
    const NAME: &'static str = "echo.Echo";
}

impl Service<Request<Full<Bytes>>> for Echo {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Full<Bytes>>) -> Self::Future {
        let line = format!("{} {} {:?}", request.method(), request.uri(), request.version());
        let (head, body) = request.into_parts();
        let mut response = Response::new(body);
        (*response.headers_mut(), *response.extensions_mut()) = (head.headers, head.extensions);
        response.headers_mut().insert("echo", line.parse().unwrap());
        ready(Ok(response))
    }
}

/// Fails with an error.
pub(crate) struct Failing(pub(crate) fn() -> BoxError);

impl<R> Service<R> for Failing {
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = Ready<Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: R) -> Self::Future {
        ready(Err((self.0)()))
    }
}
