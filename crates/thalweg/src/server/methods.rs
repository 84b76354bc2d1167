//! Methods of services, and routing by path.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use futures_core::Stream;
use thalweg_core::{Code, Request, Response, Status};
use thalweg_engine::server::{Handler, ServerMethod, StreamingCall, StreamingHandler};
use thalweg_engine::{self as engine, Encoding, Method, RequestHead, ServiceOptions};

use super::handle::ServerHandle;
use super::handler::{
    BidiMethod, ClientStreamingMethod, HeadInterceptedStreaming, HeadInterceptedUnaryMethod,
    ServerStreamingMethod, StreamingMethod, StreamingMethodHandler, UnaryMethod,
};
use super::intercepted::{Intercepted, many_to_many, many_to_one, one_to_many, one_to_one};
#[cfg(feature = "opentelemetry")]
use super::traced::Tracing;
#[cfg(not(feature = "opentelemetry"))]
use super::untraced::Tracing;
use crate::interceptor::{CallType, Chain, Last, Link};
use crate::message::Message;
use crate::streaming::Streaming;

/// A service that a [`Server`](super::Server) can serve; `thalweg-build` generates it for each service of a `.proto`
/// file.
pub trait Service: Send + Sync + 'static {
    /// Full name, `package.Service`.
    const NAME: &'static str;

    /// Descriptors of its methods and messages: an encoded `google.protobuf.FileDescriptorSet` with all imports. Empty
    /// by default; `thalweg_build::Builder::embed_descriptors` sets it.
    const FILE_DESCRIPTOR_SET: &'static [u8] = &[];

    /// Adds the service's methods to `methods`.
    fn register(self, methods: &mut Methods<'_>);
}

/// Registers the methods of one service.
#[derive(Debug)]
pub struct Methods<'a> {
    service: &'static str,
    router: &'a mut Router,
    /// The interceptors of the server, followed by those of the service.
    chain: Chain,
}

impl<'a> Methods<'a> {
    pub(super) fn new<S: Service>(router: &'a mut Router, chain: Chain) -> Self {
        router.server.add_service(S::NAME, S::FILE_DESCRIPTOR_SET);
        Self { service: S::NAME, router, chain }
    }

    /// Returns the same registration with one more interceptor, innermost.
    pub(super) fn with_interceptor(&mut self, link: Link) -> Methods<'_> {
        Methods { service: self.service, router: &mut *self.router, chain: self.chain.with(link) }
    }

    /// Returns a method for interceptors that see its calls.
    fn intercepted<Req: Message>(
        &self,
        name: &str,
        call_type: CallType,
        last: Arc<Last>,
    ) -> Intercepted<Req> {
        // The calls of an invalid name are refused by `insert`.
        let method = Method::from_path(&self.path(name)).unwrap_or(Method::new("/invalid/invalid"));
        Intercepted::new(self.chain.clone(), method, call_type, last)
    }

    /// Adds another service to the server, for services with several versions and for bundles.
    pub fn add_service<S: Service>(&mut self, service: S) {
        service.register(&mut Methods::new::<S>(self.router, self.chain.clone()));
    }

    /// Returns a handle to the server that the service is added to.
    pub fn server(&self) -> ServerHandle {
        self.router.server.clone()
    }

    /// Registers a handler; the requests are decoded as `Req`. Calls of a method without a valid name fail with
    /// INTERNAL.
    fn insert<Req: Message>(&mut self, name: &str, handler: Handler, options: &ServiceOptions) {
        let path = self.path(name);
        let handler = match Method::from_path(&path) {
            Ok(_) => handler,
            Err(error) => Handler::streaming(InvalidName(Status::new(Code::Internal, error.to_string()))),
        };
        let mut options = options.clone();
        options.send_compressed = options.send_compressed.or(self.router.send_compressed);
        let method =
            ServerMethod::new(&path[1..], options, handler).with_content_subtype(Req::CONTENT_SUBTYPE);
        self.router.methods.insert(path.into_bytes(), Arc::new(method));
    }

    fn path(&self, name: &str) -> String {
        format!("/{}/{name}", self.service)
    }

    /// Returns true if only the handler sees messages.
    fn has_only_head_functions(&self) -> bool {
        self.chain.has_only_head_functions() && !self.router.tracing.is_on()
    }

    /// Creates the handler of a streaming method whose messages interceptors or traces see.
    fn intercepted_streaming<Req: Message>(
        &self,
        name: &str,
        call_type: CallType,
        last: Arc<Last>,
    ) -> Handler {
        let method = self.intercepted::<Req>(name, call_type, last);
        self.router.tracing.streaming(method, &self.path(name))
    }

    /// Creates the handler of a streaming method whose messages no interceptor sees.
    fn streaming(&self, method: impl StreamingMethod) -> Handler {
        if self.chain.is_empty() {
            Handler::streaming(StreamingMethodHandler(method))
        } else {
            Handler::streaming(HeadInterceptedStreaming { chain: self.chain.clone(), method })
        }
    }

    /// Adds a method with one request and one response.
    pub fn unary<S, F, Fut, Req, Res>(
        &mut self,
        name: &str,
        service: &Arc<S>,
        options: &ServiceOptions,
        call: F,
    ) where
        S: Send + Sync + 'static,
        F: Fn(Arc<S>, Request<Req>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Response<Res>, Status>> + Send + 'static,
        Req: Message,
        Res: Message,
    {
        let service = Arc::clone(service);
        let handler = if self.router.tracing.is_on() {
            let method = self.intercepted::<Req>(name, CallType::Unary, one_to_one(service, call));
            self.router.tracing.unary(method, &self.path(name))
        } else if self.chain.is_empty() {
            Handler::unary(UnaryMethod::new(service, call))
        } else if self.chain.has_only_head_functions() {
            Handler::unary(HeadInterceptedUnaryMethod::new(self.chain.clone(), service, call))
        } else {
            let last = one_to_one(service, call);
            Handler::unary(self.intercepted::<Req>(name, CallType::Unary, last))
        };
        self.insert::<Req>(name, handler, options);
    }

    /// Adds a method with a stream of requests and one response.
    pub fn client_streaming<S, F, Fut, Req, Res>(
        &mut self,
        name: &str,
        service: &Arc<S>,
        options: &ServiceOptions,
        call: F,
    ) where
        S: Send + Sync + 'static,
        F: Fn(Arc<S>, Request<Streaming<Req>>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Response<Res>, Status>> + Send + 'static,
        Req: Message,
        Res: Message,
    {
        let handler = if self.has_only_head_functions() {
            self.streaming(ClientStreamingMethod::new(Arc::clone(service), call))
        } else {
            self.intercepted_streaming::<Req>(
                name,
                CallType::ClientStreaming,
                many_to_one(Arc::clone(service), call),
            )
        };
        self.insert::<Req>(name, handler, options);
    }

    /// Adds a method with one request and a stream of responses.
    pub fn server_streaming<S, F, Fut, Req, St, Res>(
        &mut self,
        name: &str,
        service: &Arc<S>,
        options: &ServiceOptions,
        call: F,
    ) where
        S: Send + Sync + 'static,
        F: Fn(Arc<S>, Request<Req>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Response<St>, Status>> + Send + 'static,
        St: Stream<Item = Result<Res, Status>> + Send + 'static,
        Req: Message,
        Res: Message,
    {
        let handler = if self.has_only_head_functions() {
            self.streaming(ServerStreamingMethod::new(Arc::clone(service), call))
        } else {
            self.intercepted_streaming::<Req>(
                name,
                CallType::ServerStreaming,
                one_to_many(Arc::clone(service), call),
            )
        };
        self.insert::<Req>(name, handler, options);
    }

    /// Adds a method with a stream of requests and a stream of responses.
    pub fn bidi_streaming<S, F, Fut, Req, St, Res>(
        &mut self,
        name: &str,
        service: &Arc<S>,
        options: &ServiceOptions,
        call: F,
    ) where
        S: Send + Sync + 'static,
        F: Fn(Arc<S>, Request<Streaming<Req>>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Response<St>, Status>> + Send + 'static,
        St: Stream<Item = Result<Res, Status>> + Send + 'static,
        Req: Message,
        Res: Message,
    {
        let handler = if self.has_only_head_functions() {
            self.streaming(BidiMethod::new(Arc::clone(service), call))
        } else {
            self.intercepted_streaming::<Req>(
                name,
                CallType::BidiStreaming,
                many_to_many(Arc::clone(service), call),
            )
        };
        self.insert::<Req>(name, handler, options);
    }
}

/// Handler of a method whose name is invalid.
struct InvalidName(Status);

impl StreamingHandler for InvalidName {
    fn start(&self, _: &RequestHead, call: StreamingCall) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        call.fail(&self.0);
        Box::pin(std::future::ready(()))
    }
}

/// All methods of a server, by path.
pub(super) struct Router {
    pub(super) server: ServerHandle,
    /// For services without a compression setting of their own.
    send_compressed: Option<Encoding>,
    tracing: Tracing,
    methods: HashMap<Vec<u8>, Arc<ServerMethod>>,
}

impl Router {
    pub(super) fn new(server: ServerHandle, send_compressed: Option<Encoding>, tracing: Tracing) -> Self {
        Self { server, send_compressed, tracing, methods: HashMap::new() }
    }
}

impl Router {
    /// Returns the error for an unknown `path`.
    fn unknown_path_status(&self, path: &str) -> Status {
        let Some((service, name)) = path.strip_prefix('/').and_then(|path| path.rsplit_once('/')) else {
            return unimplemented(format!("malformed method name: {path:?}"));
        };
        unimplemented(if self.server.has_service(service) {
            format!("unknown method {name} for service {service}")
        } else {
            format!("unknown service {service}")
        })
    }
}

impl engine::server::Router for Router {
    /// # Errors
    /// UNIMPLEMENTED, with grpc-go's messages.
    fn find(&self, path: &[u8]) -> Result<Arc<ServerMethod>, Status> {
        if let Some(method) = self.methods.get(path) {
            return Ok(Arc::clone(method));
        }
        let path = String::from_utf8_lossy(path);
        self.tracing.reject_unknown(&path, self.unknown_path_status(&path))
    }

    fn method_names(&self) -> Vec<Arc<str>> {
        let mut names: Vec<Arc<str>> =
            self.methods.values().map(|method| Arc::clone(method.name())).collect();
        names.sort_unstable();
        names
    }
}

fn unimplemented(message: String) -> Status {
    Status::new(Code::Unimplemented, message)
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router")
            .field("services", &self.server.services())
            .field("methods", &self.methods.len())
            .field("send_compressed", &self.send_compressed)
            .field("tracing", &self.tracing)
            .finish()
    }
}
