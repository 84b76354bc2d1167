//! Services with interceptors: [`InterceptedService`].

use super::methods::{Methods, Service};
use crate::interceptor::{Interceptor, InterceptorLink};

/// A service with an interceptor around its calls. Generated servers create it with `GreeterServer::with_interceptor`.
///
/// ```no_run
/// # use thalweg::server::{InterceptedService, Methods, Service};
/// # struct Greeter;
/// # impl Service for Greeter {
/// #     const NAME: &'static str = "a.Greeter";
/// #     fn register(self, _: &mut Methods) {}
/// # }
/// use thalweg::interceptor::{Call, Next};
///
/// let greeter = InterceptedService::new(Greeter, |call: Call, next: Next| next.run(call));
/// let server = thalweg::Server::builder().add_service(greeter);
/// ```
pub struct InterceptedService<S> {
    service: S,
    interceptor: InterceptorLink,
}

impl<S> InterceptedService<S> {
    /// Wraps a service, with any interceptors that it has, in an interceptor.
    pub fn new(service: S, interceptor: impl Interceptor) -> Self {
        Self { service, interceptor: interceptor.into_link() }
    }
}

impl<S: Clone> Clone for InterceptedService<S> {
    fn clone(&self) -> Self {
        Self { service: self.service.clone(), interceptor: InterceptorLink(self.interceptor.0.clone()) }
    }
}

impl<S: Service> Service for InterceptedService<S> {
    const NAME: &'static str = S::NAME;
    const FILE_DESCRIPTOR_SET: &'static [u8] = S::FILE_DESCRIPTOR_SET;

    fn register(self, methods: &mut Methods<'_>) {
        self.service.register(&mut methods.with_interceptor(self.interceptor.0));
    }
}
