//! Any error.

/// Any error that can be sent between threads.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;
