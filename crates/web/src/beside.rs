//! The service as what a server's port has beside gRPC.

use std::sync::Arc;

use thalweg_engine::server::Beside;

use crate::http1::Connections;
use crate::service::WebService;

impl WebService {
    /// What a server's port has beside gRPC: this service, for requests over HTTP/2 that are not gRPC, for those of
    /// gRPC whose messages are no wire bytes, and for connections of HTTP/1.1.
    pub fn beside(&self) -> Beside {
        let http1 = Connections::new(self.clone(), self.http1_limits().clone());
        let beside = Beside::new(self.clone(), Arc::new(http1));
        if self.has_grpc_codecs() { beside.with_content_subtypes() } else { beside }
    }
}
