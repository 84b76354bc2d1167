//! Stand-in for the tracing of calls, without the feature `opentelemetry`.

#![allow(
    clippy::unused_self,
    clippy::trivially_copy_pass_by_ref,
    reason = "has the signatures of the stateful type"
)]

use std::sync::Arc;

use thalweg_engine::Status;
use thalweg_engine::server::{Handler, ServerMethod};

use super::intercepted::Intercepted;
use crate::message::Message;

#[derive(Clone, Debug, Default)]
pub(super) struct Tracing(());

impl Tracing {
    pub(super) fn is_on(&self) -> bool {
        false
    }

    pub(super) fn unary<Req: Message>(&self, method: Intercepted<Req>, _path: &str) -> Handler {
        Handler::unary(method)
    }

    pub(super) fn streaming<Req: Message>(&self, method: Intercepted<Req>, _path: &str) -> Handler {
        Handler::streaming(method)
    }

    pub(super) fn reject_unknown(&self, _path: &str, status: Status) -> Result<Arc<ServerMethod>, Status> {
        Err(status)
    }
}
