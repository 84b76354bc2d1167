//! Middleware, and routing to services: [`Routes`].

#[cfg(feature = "router")]
mod routes;

#[cfg(feature = "router")]
pub use axum::{Router as AxumRouter, body::Body as AxumBody};
#[cfg(feature = "router")]
pub use routes::{Routes, RoutesBuilder, RoutesFuture};
pub use vocabulary::service::{
    Interceptor, InterceptorLayer, LayerExt, Layered, RecoverError, RecoverErrorLayer, interceptor,
    recover_error,
};
