//! HTTP/1.1 connections accepted by the engine: [`Http1Service`] serves their requests.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use pin_project_lite::pin_project;
use thalweg_engine::server::{Http1, Http1Connection, Http1Request};
use tower::{Service, ServiceExt as _};

use super::connect_info::RequestExtensions;
use crate::body::Body;
use crate::transport::error::BoxError;

/// Serves an HTTP/1.1 connection with its service.
pub(super) struct Http1Service<S> {
    service: Mutex<S>,
    extensions: RequestExtensions,
}

impl<S> Http1Service<S> {
    pub(super) fn new(service: S, extensions: RequestExtensions) -> Self {
        Self { service: Mutex::new(service), extensions }
    }
}

impl<S> Http1 for Http1Service<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = BoxError, Future: Send>
        + Clone
        + Send
        + 'static,
{
    fn serve(&self, connection: Http1Connection) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let extensions = Arc::clone(&self.extensions);
        Box::pin(async move {
            let Http1Connection { io, info, stop, requests, .. } = connection;
            let service = hyper::service::service_fn(move |request: Request<Incoming>| {
                let in_flight = requests.begin();
                let mut request = request.map(Body::new);
                request.extensions_mut().extend(extensions(info.as_ref()));
                let response_future = service.clone().oneshot(request);
                async move {
                    let outcome = response_future.await.map_err(io::Error::other);
                    outcome.map(|response| response.map(|body| CountedBody { body, _counted: in_flight }))
                }
            });
            let mut http1 = hyper::server::conn::http1::Builder::new();
            // The timer enables hyper's timeout for request headers.
            let connection = http1.timer(TokioTimer::new()).serve_connection(TokioIo::new(io), service);
            let mut connection = pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = stop => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "HTTP/1.1 connection failed");
            }
        })
    }
}

pin_project! {
    /// A response body that counts as in flight until it is dropped.
    struct CountedBody {
        #[pin]
        body: Body,
        _counted: Http1Request,
    }
}

impl http_body::Body for CountedBody {
    type Data = Bytes;
    type Error = <Body as http_body::Body>::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.project().body.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
