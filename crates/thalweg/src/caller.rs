//! What makes calls: [`Caller`].

use std::future::Future;

use futures_core::Stream;
use thalweg_engine::{CallOptions, Method};
use tonic::{Request, Response, Status};

use crate::channel::Channel;
use crate::message::Message;
use crate::streaming::Streaming;

/// What generated clients make their calls with: a [`Channel`], one with interceptors around it
/// ([`InterceptedChannel`](crate::InterceptedChannel)), or what stands in for either in a test.
///
/// A clone is cheap, and is the same.
pub trait Caller: Clone + Send + Sync + 'static {
    /// The options of calls that set none of their own.
    fn call_options(&self) -> CallOptions {
        CallOptions::default()
    }

    /// Calls a unary method. Dropping the future cancels the call.
    fn unary<Req: Message, Res: Message>(
        &self,
        method: &Method,
        request: Request<Req>,
        options: &CallOptions,
    ) -> impl Future<Output = Result<Response<Res>, Status>> + Send;

    /// Calls a client-streaming method, and returns with the reply.
    fn client_streaming<S, Res>(
        &self,
        method: &Method,
        request: Request<S>,
        options: &CallOptions,
    ) -> impl Future<Output = Result<Response<Res>, Status>> + Send
    where
        S: Stream + Send + 'static,
        S::Item: Message,
        Res: Message;

    /// Calls a server-streaming method; returns when the server has sent its head.
    fn server_streaming<Req: Message, Res: Message>(
        &self,
        method: &Method,
        request: Request<Req>,
        options: &CallOptions,
    ) -> impl Future<Output = Result<Response<Streaming<Res>>, Status>> + Send;

    /// Calls a bidirectional method; returns when the server has sent its head.
    fn bidi_streaming<S, Res>(
        &self,
        method: &Method,
        request: Request<S>,
        options: &CallOptions,
    ) -> impl Future<Output = Result<Response<Streaming<Res>>, Status>> + Send
    where
        S: Stream + Send + 'static,
        S::Item: Message,
        Res: Message;
}

impl Caller for Channel {
    fn call_options(&self) -> CallOptions {
        Channel::call_options(self).clone()
    }

    #[inline]
    fn unary<Req: Message, Res: Message>(
        &self,
        method: &Method,
        request: Request<Req>,
        options: &CallOptions,
    ) -> impl Future<Output = Result<Response<Res>, Status>> + Send {
        Channel::unary(self, method, request, options)
    }

    #[inline]
    fn client_streaming<S, Res>(
        &self,
        method: &Method,
        request: Request<S>,
        options: &CallOptions,
    ) -> impl Future<Output = Result<Response<Res>, Status>> + Send
    where
        S: Stream + Send + 'static,
        S::Item: Message,
        Res: Message,
    {
        Channel::client_streaming(self, method, request, options)
    }

    #[inline]
    fn server_streaming<Req: Message, Res: Message>(
        &self,
        method: &Method,
        request: Request<Req>,
        options: &CallOptions,
    ) -> impl Future<Output = Result<Response<Streaming<Res>>, Status>> + Send {
        Channel::server_streaming(self, method, request, options)
    }

    #[inline]
    fn bidi_streaming<S, Res>(
        &self,
        method: &Method,
        request: Request<S>,
        options: &CallOptions,
    ) -> impl Future<Output = Result<Response<Streaming<Res>>, Status>> + Send
    where
        S: Stream + Send + 'static,
        S::Item: Message,
        Res: Message,
    {
        Channel::bidi_streaming(self, method, request, options)
    }
}
