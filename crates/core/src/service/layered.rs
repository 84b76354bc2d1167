//! [`LayerExt`]: layers around one service of a server.

use std::task::{Context, Poll};

use tower_layer::Layer;
use tower_service::Service;

use crate::server::NamedService;

/// A layered service with the name of the service inside, so that a server can route to it.
#[derive(Clone, Debug)]
pub struct Layered<S, T> {
    inner: S,
    of: std::marker::PhantomData<T>,
}

impl<S, T: NamedService> NamedService for Layered<S, T> {
    const NAME: &'static str = T::NAME;
}

impl<R, S: Service<R>, T> Service<R> for Layered<S, T> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> S::Future {
        self.inner.call(request)
    }
}

/// Adds layers to one service.
pub trait LayerExt<L>: sealed::Sealed {
    /// Adds these layers to `service`, which keeps its name.
    fn named_layer<S>(&self, service: S) -> Layered<L::Service, S>
    where
        L: Layer<S>;
}

impl<L> LayerExt<L> for L {
    fn named_layer<S>(&self, service: S) -> Layered<L::Service, S>
    where
        L: Layer<S>,
    {
        Layered { inner: self.layer(service), of: std::marker::PhantomData }
    }
}

impl<L> sealed::Sealed for L {}

mod sealed {
    pub trait Sealed {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::interceptor::InterceptorLayer;
    use crate::service::testing::Echo;

    #[tokio::test]
    async fn layered_service_keeps_its_name() {
        fn name<S: NamedService>(_: &S) -> &'static str {
            S::NAME
        }
        let mut service = InterceptorLayer::new(Ok::<_, crate::Status>).named_layer(Echo);
        assert_eq!(name(&service), "echo.Echo");
        let response =
            service.call(http::Request::new(http_body_util::Full::<bytes::Bytes>::default())).await.unwrap();
        assert!(response.headers().contains_key("echo"));
    }
}
