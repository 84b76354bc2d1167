//! Parses request headers into routes: [`parse`].

use std::sync::Arc;

use http::HeaderMap;

use super::dispatch::{self, RawRequest, Route, Router, ServerMethod, StartsOn};
use super::fallback::Fallback;
use super::http_error_response::HttpErrorResponse;
use super::respond::{self, FixedHeaders};
use crate::connection::Outgoing;
use crate::connection_info::ConnectionInfo;
use crate::grpc::compression::{Encoding, EncodingSet};
use crate::grpc::request::{self, Refusal, RequestHead};
use crate::grpc::{content_type, metadata};
use crate::measure::SpanSource;
use crate::raw;
use crate::status::{Code, Status};

/// Maximum size of a cached header block, in bytes. The protocol gives a larger one a new id each time.
pub(super) const CACHED_HEADERS_SIZE_MAX: usize = 2 << 10;

/// Parsed request headers.
#[derive(Clone)]
pub(super) enum ParsedRequest {
    Call(Arc<Route>),
    /// A gRPC request rejected before dispatch, with its fixed response headers.
    Refused(Arc<RefusedRequest>, &'static FixedHeaders),
    /// Not gRPC.
    NonGrpc(Arc<HttpErrorResponse>),
}

/// A call rejected because of its headers.
pub(super) struct RefusedRequest {
    pub(super) status: Status,
    path: String,
    /// Readable metadata.
    metadata: HeaderMap,
}

impl SpanSource for RefusedRequest {
    fn path(&self) -> &str {
        &self.path
    }

    fn metadata(&self) -> &HeaderMap {
        &self.metadata
    }
}

/// Parses request headers and finds the method they are for.
pub(super) fn parse(
    router: &dyn Router,
    fallback: Option<&Fallback>,
    headers: &thalweg_http2::Headers,
    info: Option<&Arc<ConnectionInfo>>,
    is_traced: bool,
) -> ParsedRequest {
    let path = headers.path().unwrap_or_default();
    let found = router.find(path);
    let accepts = found.as_ref().map_or(EncodingSet::ALL, |method| method.options.accept_compressed);
    // Most methods allow any content subtype, which avoids reading another field.
    let content_subtype = match &found {
        Ok(method) if !method.content_subtype.is_empty() => {
            request::content_subtype(headers.iter(), method.content_subtype)
        }
        _ => Ok(""),
    };
    let response_headers =
        respond::fixed_headers(accepts, content_subtype.as_ref().copied().unwrap_or_default());
    let refused = |status| {
        let path = String::from_utf8_lossy(path).into_owned();
        let metadata = if is_traced { request::readable_metadata(headers.iter()) } else { HeaderMap::new() };
        ParsedRequest::Refused(Arc::new(RefusedRequest { status, path, metadata }), response_headers)
    };
    let raw = |method| match raw_route(method, headers, info) {
        Ok(route) => ParsedRequest::Call(Arc::new(route)),
        Err(status) if is_grpc(headers) => refused(status),
        Err(_) => ParsedRequest::NonGrpc(Arc::new(HttpErrorResponse::malformed(headers.method()))),
    };
    if let Ok(method) = &found
        && method.handler.starts_on == StartsOn::RawRequest
    {
        return raw(method);
    }
    if let (Some(fallback), Ok(method)) = (fallback, &found)
        && headers.iter().any(|field| field.name == b"content-type" && fallback.takes(method, field.value))
    {
        return raw(&fallback.requests);
    }
    let mut received = match (request::receive(headers.method(), accepts, headers.iter()), fallback) {
        (Ok(received), _) => received,
        (Err(Refusal::Status(status)), _) => return refused(status),
        (Err(_), Some(fallback)) => return raw(&fallback.requests),
        (Err(refusal), None) => {
            return ParsedRequest::NonGrpc(Arc::new(HttpErrorResponse::to(&refusal, headers.method(), path)));
        }
    };
    received.connection = info.cloned();
    match content_subtype.and(found) {
        Err(status) => refused(status),
        Ok(method) => {
            let encoding = response_encoding(method.options.send_compressed, &received);
            let (size_max, threshold) =
                (method.options.max_encoding_message_size, method.options.compression_threshold);
            let outgoing = Outgoing::new(size_max, encoding, threshold);
            let metadata_len =
                if headers.size() > CACHED_HEADERS_SIZE_MAX { received.metadata_len() } else { 0 };
            let metadata_len = u32::try_from(metadata_len).unwrap_or(u32::MAX);
            let raw = None;
            let route = Route { method, head: received, outgoing, response_headers, metadata_len, raw };
            ParsedRequest::Call(Arc::new(route))
        }
    }
}

/// Returns whether the client expects a gRPC response.
fn is_grpc(headers: &thalweg_http2::Headers) -> bool {
    headers.iter().any(|field| field.name == b"content-type" && content_type::subtype(field.value).is_some())
}

/// Returns the route of a raw request.
fn raw_route(
    method: &Arc<ServerMethod>,
    headers: &thalweg_http2::Headers,
    info: Option<&Arc<ConnectionInfo>>,
) -> Result<Route, Status> {
    let metadata = metadata::receive_raw(headers.iter())?;
    let gathers = raw::is_grpc(&metadata);
    let is_compressed =
        COMPRESSION_FIELDS.iter().any(|name| metadata.get(*name).is_some_and(|it| it != "identity"));
    let received = RequestHead::new(metadata, None, info.cloned());
    let metadata_len = if headers.size() > CACHED_HEADERS_SIZE_MAX { received.metadata_len() } else { 0 };
    let verb = http::Method::from_bytes(headers.method().unwrap_or_default());
    let verb = verb.map_err(|_| Status::local(Code::Internal, "invalid :method in the request"))?;
    let uri = uri(headers)
        .map_err(|error| Status::local(Code::Internal, format!("invalid request URI: {error}")))?;
    let derived = method.handler.calls.read_head(&dispatch::raw_head(&verb, &uri, &received));
    let derived =
        derived.ok_or_else(|| Status::local(Code::Internal, "the method does not accept raw requests"))?;
    Ok(Route {
        method: Arc::clone(method),
        head: received,
        outgoing: Outgoing::default(),
        response_headers: if gathers { &respond::GRPC_HEADERS } else { &respond::FAILED_HEADERS },
        metadata_len: u32::try_from(metadata_len).unwrap_or(u32::MAX),
        raw: Some(Box::new(RawRequest { verb, uri, gathers, is_compressed, derived })),
    })
}

/// Fields that indicate a compressed body or compressed messages in it.
const COMPRESSION_FIELDS: [&str; 3] = ["content-encoding", "grpc-encoding", "connect-content-encoding"];

/// Returns scheme, authority, path and query, as far as present.
fn uri(headers: &thalweg_http2::Headers) -> Result<http::Uri, http::Error> {
    let mut uri = http::Uri::builder().path_and_query(headers.path().unwrap_or(b"/"));
    if let (Some(scheme), Some(authority)) = (headers.scheme(), headers.authority())
        && !authority.is_empty()
    {
        uri = uri.scheme(scheme).authority(authority);
    }
    uri.build()
}

/// Returns the compression of a call's response.
fn response_encoding(configured: Option<Encoding>, head: &RequestHead) -> Encoding {
    configured.filter(|encoding| head.accepts.contains(*encoding)).unwrap_or_default()
}
