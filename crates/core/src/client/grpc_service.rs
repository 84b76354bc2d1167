//! [`GrpcService`]: the channel of a generated client.

use std::future::Future;
use std::task::{Context, Poll};

use http_body::Body;
use tower_service::Service;

use crate::error::BoxError;

/// A channel, or a channel with layers: any tower service from HTTP requests to HTTP responses.
pub trait GrpcService<ReqBody> {
    /// The body of responses.
    type ResponseBody: Body;
    /// The error of a call without a response.
    type Error: Into<BoxError>;
    /// The response to come.
    type Future: Future<Output = Result<http::Response<Self::ResponseBody>, Self::Error>>;

    /// Waits until the service can take another call.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>>;

    /// Makes a call.
    fn call(&mut self, request: http::Request<ReqBody>) -> Self::Future;
}

impl<T, ReqBody, ResBody> GrpcService<ReqBody> for T
where
    T: Service<http::Request<ReqBody>, Response = http::Response<ResBody>>,
    T::Error: Into<BoxError>,
    ResBody: Body,
    ResBody::Error: Into<BoxError>,
{
    type ResponseBody = ResBody;
    type Error = T::Error;
    type Future = T::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), T::Error>> {
        Service::poll_ready(self, cx)
    }

    fn call(&mut self, request: http::Request<ReqBody>) -> T::Future {
        Service::call(self, request)
    }
}
