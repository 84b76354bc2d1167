//! The service as the non-gRPC handler of a server's port.

use std::pin::Pin;
use std::sync::Arc;

use http::Request;
use thalweg_engine::server::{Fallback, Http1, Http1Connection};

use crate::body::Body;
use crate::http1::serve::serve_counted;
use crate::service::{CallCache, WebService};

impl WebService {
    /// Returns this service as the fallback of a server's port. It handles non-gRPC requests over HTTP/2, gRPC requests
    /// with a codec other than Protobuf, and HTTP/1.1 connections.
    pub fn port_fallback(&self) -> Fallback {
        let fallback = Fallback::new(self.clone(), Arc::new(self.clone()));
        if self.has_grpc_codecs() { fallback.with_content_subtypes() } else { fallback }
    }
}

impl Http1 for WebService {
    fn serve(&self, connection: Http1Connection) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let service = self.clone();
        Box::pin(async move {
            let Http1Connection { io, info, stop, requests, .. } = connection;
            let cache = CallCache::default();
            let respond = |mut request: Request<Body>| {
                if let Some(info) = &info {
                    request.extensions_mut().insert(Arc::clone(info));
                }
                service.call_cached(request, &cache)
            };
            serve_counted(io, respond, service.http1_limits(), stop, Some(requests)).await;
        })
    }
}
