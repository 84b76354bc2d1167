//! What a server has for connections of HTTP/1.1: [`Connections`].

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use http::Request;
use thalweg_engine::server::{Http1, Http1Connection};

use super::limits::Http1Limits;
use super::serve::serve_counted;
use crate::body::Body;
use crate::service::{LastCall, WebService};

/// Has a service answer what comes by connections of HTTP/1.1.
#[derive(Clone, Debug)]
pub struct Connections(Arc<Set>);

#[derive(Debug)]
struct Set {
    service: WebService,
    limits: Http1Limits,
}

impl Connections {
    /// `service` answers requests, within `limits`.
    pub fn new(service: WebService, limits: Http1Limits) -> Self {
        Self(Arc::new(Set { service, limits }))
    }
}

impl Http1 for Connections {
    fn serve(&self, connection: Http1Connection) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let Set { service, limits } = &*self.0;
        let (service, limits) = (service.clone(), limits.clone());
        Box::pin(async move {
            let Http1Connection { io, info, stop, requests, .. } = connection;
            let last = LastCall::default();
            let answer = |mut request: Request<Body>| {
                if let Some(info) = &info {
                    request.extensions_mut().insert(Arc::clone(info));
                }
                service.call_after(request, &last)
            };
            serve_counted(io, answer, &limits, stop, Some(requests)).await;
        })
    }
}
