//! Handler of all non-gRPC HTTP requests: [`WebService`].
//!
//! # Protocol selection
//!
//! In this order, skipping disabled protocols:
//!
//! 1. **Preflight requests** of browsers ([`Cors`](crate::cors::Cors)) for the path of a method or a page, or for the
//!    HTTP method and path of an annotation. Others go to the fallback if there is one.
//! 2. **POST requests by content type**: `application/grpc-web…` is gRPC-Web, `application/connect+…` is a Connect
//!    stream, `application/grpc+json` and `application/grpc+msgpack` are gRPC with another codec, over HTTP/2 only.
//!    Calls of unknown methods fail with UNIMPLEMENTED in that protocol.
//! 3. **Unary Connect calls**, to the path of a method with one message each way: a POST of `application/proto`,
//!    `application/json` or `application/msgpack`; or a GET whose query has `connect=v1`, or `encoding` and `message`,
//!    for a method without side effects.
//! 4. **Transcoded JSON**, to a path of an annotation, or by POST of `application/json` to the path of a method without
//!    annotations.
//! 5. **The server's own pages**, then **the fallback**, then 404. If annotations have the path for other HTTP methods
//!    only, the fallback gets the request; without a fallback the response is 405.
//!
//! A POST of `application/json` to `/package.Service/Method` matches both 3 and 4. Both read it alike and write the
//! same successful response. Errors have Connect's form (`"code":"not_found"`) or that of `google.rpc.Status`
//! (`"code":5`). For unary methods Connect wins, with or without the header `connect-protocol-version`, which not all
//! clients send. Transcoding wins if
//!
//! - the method is streaming: the response is JSON lines then, while Connect's streams have a content type of their
//!   own;
//! - an annotation has exactly this path, and the header is missing;
//! - Connect is disabled, or requires the header and it is missing.
//!
//! Other requests to the path of a method get 405 with `allow`, or 415 with `accept-post`.

mod call;
mod config;
mod connect;
mod context;
mod enveloped;
mod fallback;
mod front;
mod grpc;
mod grpc_web;
mod head_cache;
mod methods;
mod pages;
mod requests;
mod response;
mod response_writer;
mod streaming_body;
mod transcoded;
mod unary;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use http::header::{ACCESS_CONTROL_REQUEST_METHOD, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method as Verb, Request, StatusCode, Uri, Version};
use thalweg_engine::Code;
use thalweg_engine::raw::RawHead;
use thalweg_engine::server::{HandlerCost, LocalCalls, RawHandler};
use thalweg_openapi::Comments;
use thalweg_protobuf::Schema;

pub use config::{Web, WebError};
pub use response::ResponseFuture;

use crate::body::Body;
use crate::codec::Codec;
use crate::content_type::{self, strip_prefix};
use crate::cors::Cors;
use crate::http1::limits::Http1Limits;
use config::Protocols;
use context::{Context, head_of};
use fallback::Fallback;
use head_cache::HeadCache;
use methods::Method;
use pages::Pages;
use transcoded::{Lookup, Route, Transcoded};
use unary::UnaryAdapter;

/// Handles all non-gRPC HTTP requests: calls by other protocols, pages, and requests for the user's fallback. Clones
/// share the same service.
#[derive(Clone, Debug)]
pub struct WebService(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    context: Arc<Context>,
    protocols: Protocols,
    cors: Option<Cors>,
    transcoded: Option<Transcoded>,
    pages: Pages,
    fallback: Option<Fallback>,
    http1: Http1Limits,
}

/// Protocol indicated by a content type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ContentTypeProtocol {
    GrpcWeb,
    Grpc(Option<Codec>),
    ConnectStream,
    /// A single message.
    Message(Codec),
    /// JSON lines.
    Lines,
    Other,
}

impl Web {
    /// Creates the service for the methods of `calls`.
    ///
    /// # Errors
    /// Invalid descriptors, invalid or conflicting annotations, or credentials allowed for all origins.
    pub fn into_service(self, calls: LocalCalls) -> Result<WebService, WebError> {
        if self.cors.as_ref().is_some_and(Cors::is_for_all_with_credentials) {
            return Err(WebError::Credentials);
        }
        // Concatenated sets are one set.
        let set = self.sets.concat();
        let schema = Schema::from_descriptor_set(&set)?;
        let info = self.info.comments(Comments::from_descriptor_set(&set));
        let context = Arc::new(Context::new(calls, schema, self.options));
        let are_rules_needed = self.protocols.transcoding || self.pages.needs_rules();
        let rules = are_rules_needed.then(|| context.rules()).transpose()?;
        let has_front = self.pages.front.unwrap_or(self.fallback.is_none());
        let front = has_front.then(|| front::front(&context, self.protocols, self.pages));
        let pages = Pages::new(self.pages, front, &context, rules.as_ref(), info);
        let rules = rules.filter(|_| self.protocols.transcoding);
        let simple_posts = self.protocols.simple_posts;
        let transcoded = rules.map(|rules| Transcoded::new(&context, rules, &self.requests, simple_posts));
        let (protocols, cors, fallback, http1) = (self.protocols, self.cors, self.fallback, self.http1);
        Ok(WebService(Arc::new(Shared { context, protocols, cors, transcoded, pages, fallback, http1 })))
    }
}

impl WebService {
    /// Handles a request. If its extensions have an `Arc<ConnectionInfo>`, it is passed to calls.
    pub fn call(&self, request: Request<Body>) -> ResponseFuture {
        let read = self.0.read(&head_of(&request));
        self.respond(read, request)
    }

    /// Like [`call`](Self::call), for a request of a connection whose last request head is kept in `cache`.
    pub(crate) fn call_cached(&self, request: Request<Body>, cache: &CallCache) -> ResponseFuture {
        let read = cache.read(&head_of(&request), |head| self.0.read(head).0);
        self.respond(ReadHead(read), request)
    }

    fn respond(&self, read: ReadHead, request: Request<Body>) -> ResponseFuture {
        match read.0 {
            Some(call) => call.start(request.into_body()),
            None => self.0.call(request),
        }
    }

    pub(crate) fn http1_limits(&self) -> &Http1Limits {
        &self.0.http1
    }

    pub(crate) fn has_grpc_codecs(&self) -> bool {
        self.0.protocols.grpc_codecs
    }
}

impl RawHandler for WebService {
    type Head = ReadHead;
    type RequestBody = Body;
    type Body = Body;
    type Future = ResponseFuture;

    fn read_head(&self, head: &RawHead<'_>) -> ReadHead {
        self.0.read(head)
    }

    fn cost(read: &ReadHead) -> Option<&HandlerCost> {
        read.0.as_ref().map(|call| call.adapter.cost())
    }

    /// Adds the time limit of bodies, since the HTTP/2 driver has none for non-gRPC requests.
    fn start(&self, head: &RawHead<'_>, read: &ReadHead, body: Body) -> ResponseFuture {
        let body =
            body.with_time_limit(self.0.http1.request_timeout, || head.headers.contains_key(CONTENT_LENGTH));
        if let Some(call) = &read.0 {
            return call.start(body);
        }
        let mut request = head.to_request(body);
        if let Some(connection) = head.connection {
            request.extensions_mut().insert(Arc::clone(connection));
        }
        self.0.call(request)
    }
}

/// Result of reading a request's headers: the complete call, if it is unary.
pub struct ReadHead(Option<Arc<UnaryCall>>);

impl fmt::Debug for ReadHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadHead").field("is_unary", &self.0.is_some()).finish()
    }
}

/// A unary call with its message in the request body.
pub(crate) struct UnaryCall {
    adapter: Arc<dyn UnaryAdapter>,
    /// CORS response headers.
    cors_headers: HeaderMap,
    http_method: Verb,
}

impl UnaryCall {
    fn start(&self, body: Body) -> ResponseFuture {
        let response = ResponseFuture::unary(&self.adapter, body).for_method(&self.http_method);
        if self.cors_headers.is_empty() { response } else { response.with_headers(self.cors_headers.clone()) }
    }
}

/// The unary call of the last head on a connection.
pub(crate) type CallCache = HeadCache<Arc<UnaryCall>>;

/// Kind of a request, by its headers.
enum RequestKind<'s> {
    GrpcWeb(Option<&'s Arc<Method>>),
    Grpc(Option<&'s Arc<Method>>, Option<Codec>),
    /// A Connect call.
    Connect(Cow<'s, Arc<Method>>),
    Transcoded(&'s Transcoded, Route),
    /// The path of a method, with an unsupported body.
    Unsupported(Cow<'s, Arc<Method>>),
    /// The path supports these HTTP methods only.
    MethodNotAllowed(HeaderValue),
    /// A page, a request for the fallback, or neither.
    Other,
}

impl Shared {
    /// Reads a request's headers. A unary call then needs only its message.
    fn read(&self, head: &RawHead<'_>) -> ReadHead {
        // It may be a preflight request.
        if self.cors.is_some() && *head.method == Verb::OPTIONS {
            return ReadHead(None);
        }
        let adapter = match self.classify(head) {
            RequestKind::Connect(method) if !method.is_streaming() => {
                connect::adapter(&self.context, &method, self.protocols.requires_version, head)
            }
            RequestKind::Transcoded(transcoded, route) => transcoded.adapter(&route, head),
            _ => None,
        };
        ReadHead(adapter.map(|adapter| {
            let mut cors_headers = HeaderMap::new();
            if let Some(cors) = &self.cors {
                cors.allow(head.headers, &mut cors_headers);
            }
            Arc::new(UnaryCall { adapter, cors_headers, http_method: head.method.clone() })
        }))
    }

    fn call(&self, request: Request<Body>) -> ResponseFuture {
        let method = request.method().clone();
        self.call_as_get(request).for_method(&method)
    }

    /// Like `call`, but HEAD gets the response to GET, with its body.
    fn call_as_get(&self, request: Request<Body>) -> ResponseFuture {
        let Some(cors) = &self.cors else { return self.respond(request) };
        if let Some(preflight) = cors.preflight(request.method(), request.headers())
            && (self.fallback.is_none() || self.is_own_path(&request))
        {
            return ResponseFuture::ready(preflight.map(|()| Body::empty()));
        }
        let mut allowed = HeaderMap::new();
        cors.allow(request.headers(), &mut allowed);
        match self.try_respond(request) {
            Ok(response) => response.with_headers(allowed),
            // Only the server's own 404 gets CORS headers; the fallback sets its own.
            Err(request) if self.fallback.is_none() => self.respond_otherwise(request).with_headers(allowed),
            Err(request) => self.respond_otherwise(request),
        }
    }

    fn respond(&self, request: Request<Body>) -> ResponseFuture {
        self.try_respond(request).unwrap_or_else(|request| self.respond_otherwise(request))
    }

    /// Handles a call or a request for one of the server's pages.
    ///
    /// # Errors
    /// The request, if it is neither.
    #[expect(clippy::result_large_err, reason = "the `Err` is a request that is not a call")]
    fn try_respond(&self, request: Request<Body>) -> Result<ResponseFuture, Request<Body>> {
        match self.classify(&head_of(&request)) {
            RequestKind::GrpcWeb(method) => {
                Ok(grpc_web::call(&self.context, &method_or_unknown(method, request.uri()), request))
            }
            RequestKind::Grpc(method, codec) => Ok(self.grpc(method, codec, request)),
            RequestKind::Connect(method) => {
                Ok(connect::call(&self.context, &method, self.protocols.requires_version, request))
            }
            RequestKind::Transcoded(transcoded, route) => Ok(transcoded.call(&route, request)),
            RequestKind::Unsupported(method) => Ok(self.unsupported(&method, &request)),
            RequestKind::MethodNotAllowed(allow) => {
                Ok(ResponseFuture::ready(pages::method_not_allowed(request.headers(), allow)))
            }
            RequestKind::Other => {
                match self.pages.find(request.method(), request.uri().path(), request.headers()) {
                    Some(page) => Ok(ResponseFuture::ready(page)),
                    None => Err(request),
                }
            }
        }
    }

    fn classify(&self, head: &RawHead<'_>) -> RequestKind<'_> {
        let method = self.context.methods.get(head.uri.path());
        let protocol = content_type_protocol(head.headers);
        match protocol {
            ContentTypeProtocol::GrpcWeb if self.protocols.grpc_web => return RequestKind::GrpcWeb(method),
            ContentTypeProtocol::Grpc(codec) => return RequestKind::Grpc(method, codec),
            ContentTypeProtocol::ConnectStream if self.protocols.connect => {
                let method = method_or_unknown(method, head.uri);
                return if method.is_streaming() {
                    RequestKind::Connect(method)
                } else {
                    RequestKind::Unsupported(method)
                };
            }
            _ => {}
        }
        if let Some(method) = method {
            return self.classify_at_method(method, protocol, head);
        }
        match self
            .transcoded
            .as_ref()
            .map(|transcoded| (transcoded, transcoded.find(head.method, head.uri.path())))
        {
            Some((transcoded, Lookup::Route(route))) => RequestKind::Transcoded(transcoded, route),
            Some((_, Lookup::MethodNotAllowed { allow })) if self.fallback.is_none() => {
                RequestKind::MethodNotAllowed(allow)
            }
            Some((_, Lookup::MethodNotAllowed { .. } | Lookup::NotFound)) | None => RequestKind::Other,
        }
    }

    /// Handles a request with gRPC's content type.
    fn grpc(
        &self,
        method: Option<&Arc<Method>>,
        codec: Option<Codec>,
        request: Request<Body>,
    ) -> ResponseFuture {
        if request.version() != Version::HTTP_2 {
            let why = "gRPC needs HTTP/2; use Connect, gRPC-Web or JSON with this HTTP version";
            let status = StatusCode::HTTP_VERSION_NOT_SUPPORTED;
            let response = pages::error(status, Code::Unimplemented, why, request.headers());
            return ResponseFuture::ready(response);
        }
        match codec {
            Some(codec) if self.protocols.grpc_codecs => {
                grpc::call(&self.context, &method_or_unknown(method, request.uri()), codec, request)
            }
            _ => self.unsupported(&method_or_unknown(method, request.uri()), &request),
        }
    }

    /// Classifies a request to the path of a method.
    fn classify_at_method<'s>(
        &'s self,
        method: &'s Arc<Method>,
        protocol: ContentTypeProtocol,
        head: &RawHead<'_>,
    ) -> RequestKind<'s> {
        let is_connect = self.is_connect(method, protocol, head);
        if let Some(transcoded) = &self.transcoded
            && let Lookup::Route(route) = transcoded.find(head.method, head.uri.path())
        {
            let has_version = head.headers.contains_key(CONNECT_VERSION);
            let prefers_annotation = route.is_annotated && !(is_connect && has_version);
            let is_json = match protocol {
                ContentTypeProtocol::Message(Codec::Json) => true,
                ContentTypeProtocol::Lines => method.is_streaming(),
                _ => false,
            };
            if prefers_annotation || !is_connect && is_json {
                return RequestKind::Transcoded(transcoded, route);
            }
        }
        if is_connect {
            return RequestKind::Connect(Cow::Borrowed(method));
        }
        if *head.method == Verb::POST {
            return RequestKind::Unsupported(Cow::Borrowed(method));
        }
        let may_get = self.protocols.connect && method.has_no_side_effects() && !method.is_streaming();
        RequestKind::MethodNotAllowed(HeaderValue::from_static(if may_get { "GET, POST" } else { "POST" }))
    }

    /// Returns whether it is a unary Connect call.
    fn is_connect(&self, method: &Method, protocol: ContentTypeProtocol, head: &RawHead<'_>) -> bool {
        if !self.protocols.connect || method.is_streaming() {
            return false;
        }
        match *head.method {
            Verb::POST => {
                let is_transcoded = self.protocols.requires_version
                    && protocol == ContentTypeProtocol::Message(Codec::Json)
                    && self.transcoded.is_some()
                    && !head.headers.contains_key(CONNECT_VERSION);
                matches!(protocol, ContentTypeProtocol::Message(_)) && !is_transcoded
            }
            Verb::GET => method.has_no_side_effects() && crate::connect::is_get(head.uri),
            _ => false,
        }
    }

    /// Responds to a POST to the path of a method with an unsupported body.
    fn unsupported(&self, method: &Method, request: &Request<Body>) -> ResponseFuture {
        let mut accepted = Vec::new();
        let codecs: &[&str] =
            if method.is_described() { &crate::codec::CODECS } else { &crate::codec::CODECS[..1] };
        if self.protocols.connect {
            let prefix = if method.is_streaming() { "application/connect+" } else { "application/" };
            accepted.extend(codecs.iter().map(|codec| format!("{prefix}{codec}")));
        }
        if self.protocols.grpc_web {
            accepted.push("application/grpc-web".to_owned());
            accepted.push("application/grpc-web-text".to_owned());
        }
        if request.version() == Version::HTTP_2 {
            accepted.push("application/grpc".to_owned());
        }
        ResponseFuture::ready(pages::unsupported_media_type(request.headers(), &accepted.join(", ")))
    }

    /// Passes other requests to the fallback, or responds with 404.
    fn respond_otherwise(&self, request: Request<Body>) -> ResponseFuture {
        match &self.fallback {
            Some(fallback) => fallback.call(request),
            None => ResponseFuture::ready(pages::not_found(request.uri().path(), request.headers())),
        }
    }

    /// Returns whether a preflight request is not for the fallback.
    fn is_own_path(&self, preflight: &Request<Body>) -> bool {
        let path = preflight.uri().path();
        let requested = preflight.headers().get(ACCESS_CONTROL_REQUEST_METHOD);
        let requested = requested.and_then(|method| Verb::from_bytes(method.as_bytes()).ok());
        let is_route = |transcoded: &Transcoded| {
            requested
                .as_ref()
                .is_some_and(|requested| matches!(transcoded.find(requested, path), Lookup::Route(_)))
        };
        self.context.methods.get(path).is_some()
            || self.transcoded.as_ref().is_some_and(is_route)
            || self.pages.has_path(path)
    }
}

const CONNECT_VERSION: &str = "connect-protocol-version";

/// Returns the method, or a placeholder for an unknown one.
fn method_or_unknown<'s>(method: Option<&'s Arc<Method>>, uri: &Uri) -> Cow<'s, Arc<Method>> {
    method.map_or_else(|| Cow::Owned(Arc::new(Method::unknown(uri.path()))), Cow::Borrowed)
}

fn content_type_protocol(headers: &HeaderMap) -> ContentTypeProtocol {
    let content_type = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let Some(subtype) = content_type::application(content_type) else { return ContentTypeProtocol::Other };
    if let Some(codec) = Codec::named(subtype) {
        return ContentTypeProtocol::Message(codec);
    }
    if crate::transcoding::is_json_lines(subtype) {
        return ContentTypeProtocol::Lines;
    }
    match strip_prefix(subtype, "grpc") {
        Some("") => ContentTypeProtocol::Grpc(Some(Codec::Proto)),
        Some(rest) if strip_prefix(rest, "-web").is_some() => ContentTypeProtocol::GrpcWeb,
        Some(rest) => rest
            .strip_prefix('+')
            .map_or(ContentTypeProtocol::Other, |codec| ContentTypeProtocol::Grpc(Codec::named(codec))),
        None if strip_prefix(subtype, "connect+").is_some() => ContentTypeProtocol::ConnectStream,
        None => ContentTypeProtocol::Other,
    }
}
