//! A call of any protocol: [`MethodCall`].

use std::sync::Arc;

use bytes::Bytes;
use futures_core::Stream;
use thalweg_engine::server::{LocalStream, LocalUnary};
use thalweg_engine::{RequestHead, Status};

use super::context::Context;
use super::methods::Method;
use crate::codec::Codec;

/// A method and the codec of one call.
#[derive(Clone, Debug)]
pub(super) struct MethodCall {
    pub(super) context: Arc<Context>,
    pub(super) method: Arc<Method>,
    pub(super) codec: Codec,
}

impl MethodCall {
    /// Decodes a request to wire bytes.
    pub(super) fn read(&self, message: Bytes) -> Result<Bytes, Status> {
        self.method.read(self.codec, message)
    }

    /// Encodes a response from wire bytes.
    pub(super) fn write(&self, wire: Bytes) -> Result<Bytes, Status> {
        self.method.write(self.codec, wire)
    }

    pub(super) fn unary(&self, head: &RequestHead, message: Bytes) -> LocalUnary {
        self.method.call(&self.context.calls, head, message)
    }

    pub(super) fn stream<S>(&self, head: RequestHead, requests: S) -> LocalStream
    where
        S: Stream<Item = Result<Bytes, Status>> + Send + 'static,
    {
        self.context.calls.call_stream(self.method.path(), head, requests)
    }
}
