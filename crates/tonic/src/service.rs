//! Middleware, and routing to services: [`Routes`].

#[cfg(feature = "router")]
mod routes;

#[cfg(feature = "router")]
pub use routes::{Routes, RoutesBuilder, RoutesFuture};
#[cfg(feature = "router")]
pub use tonic::service::{AxumBody, AxumRouter};
pub use tonic::service::{
    Interceptor, InterceptorLayer, LayerExt, Layered, RecoverError, RecoverErrorLayer, interceptor,
    recover_error,
};
