//! Making calls: [`Caller`].

use std::future::{Future, ready};

use futures_core::Stream;
use thalweg_core::{Request, Response, Status};
use thalweg_engine::{CallOptions, Method};

use crate::channel::Channel;
use crate::message::Message;
use crate::streaming::Streaming;

/// Makes the calls of generated clients: a [`Channel`], a channel with interceptors
/// ([`InterceptedChannel`](crate::InterceptedChannel)), or a stand-in for either in a test.
///
/// Clones are cheap and share everything. Call types that an implementation omits end with UNIMPLEMENTED.
///
/// # In tests
///
/// Code that accepts the client of any caller, `fn greet<C: Caller>(greeter: &GreeterClient<C>)`, can be tested without
/// a server. The shortest way for all call types is an interceptor that responds without calling
/// [`Next::run`](crate::interceptor::Next::run). Other interceptors can wrap it as they wrap a channel, and nothing
/// ever connects:
///
/// ```
/// use thalweg::bytes::Bytes;
/// use thalweg::interceptor::{AnyMessage, Call, Messages, Next, Reply};
/// use thalweg::{CallOptions, Caller, Channel, Method, Raw, Request, Response, Status};
///
/// async fn answer(call: Call, _: Next) -> Result<Reply, Status> {
///     match call.method().name() {
///         "SayHello" => {
///             // With generated code, a `HelloRequest` and a `HelloReply`.
///             let request = call.request().get_ref().as_one().and_then(AnyMessage::downcast_ref::<Raw>);
///             Ok(Response::new(Messages::one(request.unwrap().clone())))
///         }
///         other => Err(Status::unimplemented(other)),
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let channel = Channel::builder("nowhere:1").connect_lazy()?.with_interceptor(answer);
/// // let greeter = GreeterClient::new(channel);
/// # let (method, options) = (Method::new("/helloworld.Greeter/SayHello"), CallOptions::default());
/// # let request = Request::new(Raw(Bytes::from_static(b"Ada")));
/// # let reply: Response<Raw> = channel.unary(&method, request, &options).await?;
/// # assert_eq!(reply.into_inner().0, "Ada");
/// # Ok(()) }
/// ```
///
/// An in-memory server ([`ChannelBuilder::connector`](crate::channel::ChannelBuilder::connector)) also tests the real
/// transport. An implementation of this trait receives its message types as type parameters;
/// [`AnyMessage`](crate::interceptor::AnyMessage) converts to and from them.
pub trait Caller: Clone + Send + Sync + 'static {
    /// Returns the default options of calls.
    fn call_options(&self) -> CallOptions {
        CallOptions::default()
    }

    /// Calls a unary method. Dropping the future cancels the call.
    fn unary<Req: Message, Res: Message>(
        &self,
        method: &Method,
        request: Request<Req>,
        options: &CallOptions,
    ) -> impl Future<Output = Result<Response<Res>, Status>> + Send {
        let _ = (method, request, options);
        ready(absent("unary"))
    }

    /// Calls a client-streaming method; returns the response.
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
        let _ = (method, request, options);
        ready(absent("client-streaming"))
    }

    /// Calls a server-streaming method; returns when the response headers have arrived.
    fn server_streaming<Req: Message, Res: Message>(
        &self,
        method: &Method,
        request: Request<Req>,
        options: &CallOptions,
    ) -> impl Future<Output = Result<Response<Streaming<Res>>, Status>> + Send {
        let _ = (method, request, options);
        ready(absent("server-streaming"))
    }

    /// Calls a bidirectional method; returns when the response headers have arrived.
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
        let _ = (method, request, options);
        ready(absent("bidirectional"))
    }
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

fn absent<T>(kind: &str) -> Result<T, Status> {
    Err(Status::unimplemented(format!("this caller does not support {kind} calls")))
}
