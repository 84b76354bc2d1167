//! Middleware of calls: interceptors, and layers that keep a service's name.

pub mod interceptor;
mod layered;
pub mod recover_error;
#[cfg(test)]
pub(crate) mod testing;

pub use self::interceptor::{Interceptor, InterceptorLayer};
pub use self::layered::{LayerExt, Layered};
pub use self::recover_error::{RecoverError, RecoverErrorLayer};
