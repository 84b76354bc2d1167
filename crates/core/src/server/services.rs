//! The traits of services, one for each type of call.

use std::future::Future;

use tokio_stream::Stream;
use tower_service::Service;

use crate::{Request, Response, Status, Streaming};

/// A service with a name, by which a server routes to it.
pub trait NamedService {
    /// The full name, such as `shop.Orders`.
    const NAME: &'static str;
}

/// A unary method.
pub trait UnaryService<R> {
    /// The response.
    type Response;
    /// The response to come.
    type Future: Future<Output = Result<Response<Self::Response>, Status>>;

    /// Handles a call.
    fn call(&mut self, request: Request<R>) -> Self::Future;
}

impl<T, M1, M2> UnaryService<M1> for T
where
    T: Service<Request<M1>, Response = Response<M2>, Error = Status>,
{
    type Response = M2;
    type Future = T::Future;

    fn call(&mut self, request: Request<M1>) -> Self::Future {
        Service::call(self, request)
    }
}

/// A server-streaming method.
pub trait ServerStreamingService<R> {
    /// A message of the response.
    type Response;
    /// The messages of the response.
    type ResponseStream: Stream<Item = Result<Self::Response, Status>>;
    /// The response to come.
    type Future: Future<Output = Result<Response<Self::ResponseStream>, Status>>;

    /// Handles a call.
    fn call(&mut self, request: Request<R>) -> Self::Future;
}

impl<T, S, M1, M2> ServerStreamingService<M1> for T
where
    T: Service<Request<M1>, Response = Response<S>, Error = Status>,
    S: Stream<Item = Result<M2, Status>>,
{
    type Response = M2;
    type ResponseStream = S;
    type Future = T::Future;

    fn call(&mut self, request: Request<M1>) -> Self::Future {
        Service::call(self, request)
    }
}

/// A client-streaming method.
pub trait ClientStreamingService<R> {
    /// The response.
    type Response;
    /// The response to come.
    type Future: Future<Output = Result<Response<Self::Response>, Status>>;

    /// Handles a call.
    fn call(&mut self, request: Request<Streaming<R>>) -> Self::Future;
}

impl<T, M1, M2> ClientStreamingService<M1> for T
where
    T: Service<Request<Streaming<M1>>, Response = Response<M2>, Error = Status>,
{
    type Response = M2;
    type Future = T::Future;

    fn call(&mut self, request: Request<Streaming<M1>>) -> Self::Future {
        Service::call(self, request)
    }
}

/// A bidirectional method.
pub trait StreamingService<R> {
    /// A message of the response.
    type Response;
    /// The messages of the response.
    type ResponseStream: Stream<Item = Result<Self::Response, Status>>;
    /// The response to come.
    type Future: Future<Output = Result<Response<Self::ResponseStream>, Status>>;

    /// Handles a call.
    fn call(&mut self, request: Request<Streaming<R>>) -> Self::Future;
}

impl<T, S, M1, M2> StreamingService<M1> for T
where
    T: Service<Request<Streaming<M1>>, Response = Response<S>, Error = Status>,
    S: Stream<Item = Result<M2, Status>>,
{
    type Response = M2;
    type ResponseStream = S;
    type Future = T::Future;

    fn call(&mut self, request: Request<Streaming<M1>>) -> Self::Future {
        Service::call(self, request)
    }
}
