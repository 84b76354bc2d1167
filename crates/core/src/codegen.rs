//! Names that generated code uses.

pub use std::future::Future;
pub use std::pin::Pin;
pub use std::sync::Arc;
pub use std::task::{Context, Poll};

pub use async_trait::async_trait;
pub use bytes::Bytes;
pub use http;
pub use http_body::Body;
pub use tokio_stream;
pub use tower_service::Service;

pub use crate::GrpcMethod;
pub use crate::codec::{CompressionEncoding, EnabledCompressionEncodings};
pub use crate::service::interceptor::InterceptedService;

/// Any error.
pub type StdError = Box<dyn std::error::Error + Send + Sync + 'static>;
/// A boxed future of a result.
pub type BoxFuture<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'static>>;
/// A boxed stream of results.
pub type BoxStream<T> = Pin<Box<dyn tokio_stream::Stream<Item = Result<T, crate::Status>> + Send + 'static>>;
