//! Which method of which service a path names.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use futures_core::Stream;
use thalweg_engine::server::{Handler, ServerMethod};
use thalweg_engine::{self as engine, ServiceOptions};
use tonic::{Request, Response, Status};

use super::handle::ServerHandle;
use super::handler::{BidiMethod, ClientStreamingMethod, ServerStreamingMethod, UnaryMethod};
use crate::message::Message;
use crate::streaming::Streaming;

/// A service as a [`Server`](super::Server) takes it; `thalweg-build` writes it for each service of a `.proto` file.
pub trait Service: Send + Sync + 'static {
    /// `package.Service`.
    const NAME: &'static str;

    /// Says what there is to call.
    fn register(self, methods: &mut Methods<'_>);
}

/// Takes the methods of one service.
#[derive(Debug)]
pub struct Methods<'a> {
    service: &'static str,
    router: &'a mut Router,
}

impl<'a> Methods<'a> {
    pub(super) fn new(service: &'static str, router: &'a mut Router) -> Self {
        router.server.add_service(service);
        Self { service, router }
    }

    /// Adds another service to the server: for one that comes in several versions, or in a bundle.
    pub fn add_service<S: Service>(&mut self, service: S) {
        service.register(&mut Methods::new(S::NAME, self.router));
    }

    /// The server that the service becomes a part of.
    pub fn server(&self) -> ServerHandle {
        self.router.server.clone()
    }

    fn insert(&mut self, name: &str, handler: Handler, options: &ServiceOptions) {
        let path = format!("/{}/{name}", self.service);
        let method = ServerMethod::new(&path[1..], options.clone(), handler);
        self.router.methods.insert(path.into_bytes(), Arc::new(method));
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
        let method = UnaryMethod::new(Arc::clone(service), call);
        self.insert(name, Handler::unary(method), options);
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
        let method = ClientStreamingMethod::new(Arc::clone(service), call);
        self.insert(name, Handler::streaming(method), options);
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
        let method = ServerStreamingMethod::new(Arc::clone(service), call);
        self.insert(name, Handler::streaming(method), options);
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
        let method = BidiMethod::new(Arc::clone(service), call);
        self.insert(name, Handler::streaming(method), options);
    }
}

/// All methods of a server, by path.
pub(super) struct Router {
    pub(super) server: ServerHandle,
    methods: HashMap<Vec<u8>, Arc<ServerMethod>>,
}

impl Router {
    pub(super) fn new(server: ServerHandle) -> Self {
        Self { server, methods: HashMap::new() }
    }
}

impl engine::server::Router for Router {
    /// # Errors
    /// UNIMPLEMENTED, in grpc-go's words.
    fn find(&self, path: &[u8]) -> Result<Arc<ServerMethod>, engine::Status> {
        if let Some(method) = self.methods.get(path) {
            return Ok(Arc::clone(method));
        }
        let path = String::from_utf8_lossy(path);
        let Some((service, name)) = path.strip_prefix('/').and_then(|path| path.rsplit_once('/')) else {
            return Err(unimplemented(format!("malformed method name: {path:?}")));
        };
        Err(unimplemented(if self.server.has_service(service) {
            format!("unknown method {name} for service {service}")
        } else {
            format!("unknown service {service}")
        }))
    }
}

fn unimplemented(message: String) -> engine::Status {
    engine::Status::new(engine::Code::Unimplemented, message)
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router")
            .field("services", &self.server.services())
            .field("methods", &self.methods.len())
            .finish()
    }
}
