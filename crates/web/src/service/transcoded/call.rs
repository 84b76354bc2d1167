//! One request and the conversion of its messages: [`TranscodedCall`].

use std::sync::Arc;

use bytes::Bytes;
use http::Uri;
use thalweg_engine::raw::RawHead;
use thalweg_engine::server::LocalUnary;
use thalweg_engine::{Code, RequestHead, Status, compact};
use thalweg_protobuf::json::PrintError;

use super::failure::Failure;
use super::head::TranscodedHead;
use super::metadata;
use super::target::{Routes, Target};
use crate::transcoding::{Binding, Content, RouteKey, request as to_request, response};

/// A request for a binding.
#[derive(Clone)]
pub(super) struct TranscodedCall {
    pub(super) routes: Arc<Routes>,
    key: RouteKey,
    uri: Uri,
    head: TranscodedHead,
}

impl TranscodedCall {
    /// Reads the head of a request.
    ///
    /// # Errors
    /// The refusal to respond with.
    pub(super) fn read(
        routes: &Arc<Routes>,
        key: RouteKey,
        head: &RawHead<'_>,
        has_body: bool,
    ) -> Result<(TranscodedCall, RequestHead), Failure> {
        let target = &routes.targets[key.index];
        let binding = &routes.router.rules().bindings()[key.index];
        let read = TranscodedHead::read(head, target, binding, has_body, routes.allows_simple_posts)?;
        let metadata = metadata::received(head.headers)?;
        let timeout = metadata::timeout(head.headers)?;
        let request_head = RequestHead::new(metadata, timeout, head.connection.cloned());
        Ok((
            TranscodedCall { routes: Arc::clone(routes), key, uri: head.uri.clone(), head: read },
            request_head,
        ))
    }

    /// Makes a unary call.
    pub(super) fn unary(&self, request_head: &RequestHead, message: Bytes) -> LocalUnary {
        let calls = &self.routes.context.calls;
        match &self.target().method {
            Some(method) => method.call(calls, request_head, message),
            None => calls.call_unary(self.binding().path(), request_head, message),
        }
    }

    /// Returns the wire bytes of a message. The first one includes the fields of path and query.
    pub(super) fn wire(&self, content: &Content, is_first: bool) -> Result<Bytes, Status> {
        let (router, options) = (&self.routes.router, &self.target().requests);
        let mut wire = Vec::with_capacity(content.data.len() + self.uri.path().len());
        if is_first {
            let route = router.route(self.key, self.uri.path());
            let query = self.uri.query().unwrap_or_default();
            to_request::to_wire(router.rules(), &route, query, content, options, &mut wire)?;
        } else {
            to_request::later_to_wire(router.rules(), self.binding(), content, options, &mut wire)?;
        }
        Ok(compact(wire))
    }

    pub(super) fn content(&self, wire: &Bytes) -> Result<Content, Status> {
        let rules = self.routes.router.rules();
        response::from_wire(rules, self.binding(), wire, &self.target().print)
            .map_err(|error| unprintable(&error))
    }

    /// Returns the data of a raw response.
    pub(super) fn raw(&self, wire: &Bytes) -> Result<Bytes, Status> {
        self.content(wire).map(|content| content.data)
    }

    /// Appends a response as JSON; on failure `json` is unchanged.
    pub(super) fn print(&self, wire: &[u8], json: &mut Vec<u8>) -> Result<(), Status> {
        let (rules, options) = (self.routes.router.rules(), &self.target().print);
        let start = json.len();
        response::print(rules, self.binding(), wire, options, json).map_err(|error| unprintable(&error))?;
        // The last value may be printed completely before the limit is checked.
        if json.len() - start > options.len_max {
            json.truncate(start);
            return Err(unprintable(&PrintError::TooLong { max: options.len_max }));
        }
        Ok(())
    }

    /// Returns a status as JSON in one line.
    pub(super) fn status(&self, status: &Status) -> Vec<u8> {
        crate::transcoding::error::to_json(&self.routes.context.schema, status, &self.target().print)
    }

    pub(super) fn binding(&self) -> &Binding {
        &self.routes.router.rules().bindings()[self.key.index]
    }

    pub(super) fn target(&self) -> &Target {
        &self.routes.targets[self.key.index]
    }

    pub(super) fn head(&self) -> &TranscodedHead {
        &self.head
    }

    pub(super) fn size_max(&self) -> usize {
        self.target().options.max_decoding_message_size
    }
}

/// Returns the status for a response that is malformed or too long.
#[cold]
fn unprintable(error: &PrintError) -> Status {
    let code = match error {
        PrintError::TooLong { .. } => Code::ResourceExhausted,
        _ => Code::Internal,
    };
    Status::new(code, format!("failed to write the response as JSON: {error}"))
}
