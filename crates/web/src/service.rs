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

mod answers;
mod call;
mod config;
mod connect;
mod context;
mod enveloped;
mod fallback;
mod front;
mod grpc;
mod grpc_web;
mod last_head;
mod methods;
mod pages;
mod protocol;
mod requests;
mod response;
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
use last_head::LastHead;
use methods::Method;
use pages::Pages;
use transcoded::{Found, Route, Transcoded};
use unary::Form;

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
enum Said {
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
        let are_rules_needed = self.protocols.transcoding || self.pages.are_of_rules();
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
        self.answer(read, request)
    }

    /// Like [`call`](Self::call), for a request of a connection whose last head is kept in `last`.
    pub(crate) fn call_after(&self, request: Request<Body>, last: &LastCall) -> ResponseFuture {
        let read = last.read(&head_of(&request), |head| self.0.read(head).0);
        self.answer(ReadHead(read), request)
    }

    fn answer(&self, read: ReadHead, request: Request<Body>) -> ResponseFuture {
        match read.0 {
            Some(call) => call.begin(request.into_body()),
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
        read.0.as_ref().map(|call| call.form.cost())
    }

    /// Adds the time limit of bodies, since the HTTP/2 driver has none for non-gRPC requests.
    fn start(&self, head: &RawHead<'_>, read: &ReadHead, body: Body) -> ResponseFuture {
        let body = body.within(self.0.http1.request_timeout, || head.headers.contains_key(CONTENT_LENGTH));
        if let Some(call) = &read.0 {
            return call.begin(body);
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
    form: Arc<dyn Form>,
    /// CORS response headers.
    added: HeaderMap,
    http_method: Verb,
}

impl UnaryCall {
    fn begin(&self, body: Body) -> ResponseFuture {
        let answer = ResponseFuture::unary(&self.form, body).answering(&self.http_method);
        if self.added.is_empty() { answer } else { answer.adding(self.added.clone()) }
    }
}

/// The unary call of the last head on a connection.
pub(crate) type LastCall = LastHead<Arc<UnaryCall>>;

/// Kind of a request, by its headers.
enum Which<'s> {
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
        let form = match self.which(head) {
            Which::Connect(method) if !method.is_streaming() => {
                connect::form(&self.context, &method, self.protocols.requires_version, head)
            }
            Which::Transcoded(transcoded, route) => transcoded.form(&route, head),
            _ => None,
        };
        ReadHead(form.map(|form| {
            let mut added = HeaderMap::new();
            if let Some(cors) = &self.cors {
                cors.allow(head.headers, &mut added);
            }
            Arc::new(UnaryCall { form, added, http_method: head.method.clone() })
        }))
    }

    fn call(&self, request: Request<Body>) -> ResponseFuture {
        let method = request.method().clone();
        self.call_as_get(request).answering(&method)
    }

    /// Like `call`, but HEAD gets the response to GET, with its body.
    fn call_as_get(&self, request: Request<Body>) -> ResponseFuture {
        let Some(cors) = &self.cors else { return self.answer(request) };
        if let Some(preflight) = cors.preflight(request.method(), request.headers())
            && (self.fallback.is_none() || self.is_ours(&request))
        {
            return ResponseFuture::ready(preflight.map(|()| Body::empty()));
        }
        let mut allowed = HeaderMap::new();
        cors.allow(request.headers(), &mut allowed);
        match self.answer_own(request) {
            Ok(answer) => answer.adding(allowed),
            // Only the server's own 404 gets CORS headers; the fallback sets its own.
            Err(request) if self.fallback.is_none() => self.other(request).adding(allowed),
            Err(request) => self.other(request),
        }
    }

    fn answer(&self, request: Request<Body>) -> ResponseFuture {
        self.answer_own(request).unwrap_or_else(|request| self.other(request))
    }

    /// Handles a call or a request for one of the server's pages.
    ///
    /// # Errors
    /// The request, if it is neither.
    #[expect(clippy::result_large_err, reason = "what is no call goes on its way: it is no error")]
    fn answer_own(&self, request: Request<Body>) -> Result<ResponseFuture, Request<Body>> {
        match self.which(&head_of(&request)) {
            Which::GrpcWeb(method) => {
                Ok(grpc_web::call(&self.context, &known(method, request.uri()), request))
            }
            Which::Grpc(method, codec) => Ok(self.grpc(method, codec, request)),
            Which::Connect(method) => {
                Ok(connect::call(&self.context, &method, self.protocols.requires_version, request))
            }
            Which::Transcoded(transcoded, route) => Ok(transcoded.call(&route, request)),
            Which::Unsupported(method) => Ok(self.unsupported(&method, &request)),
            Which::MethodNotAllowed(allow) => {
                Ok(ResponseFuture::ready(pages::method_not_allowed(request.headers(), allow)))
            }
            Which::Other => {
                match self.pages.find(request.method(), request.uri().path(), request.headers()) {
                    Some(page) => Ok(ResponseFuture::ready(page)),
                    None => Err(request),
                }
            }
        }
    }

    fn which(&self, head: &RawHead<'_>) -> Which<'_> {
        let method = self.context.methods.get(head.uri.path());
        let said = said(head.headers);
        match said {
            Said::GrpcWeb if self.protocols.grpc_web => return Which::GrpcWeb(method),
            Said::Grpc(codec) => return Which::Grpc(method, codec),
            Said::ConnectStream if self.protocols.connect => {
                let method = known(method, head.uri);
                return if method.is_streaming() {
                    Which::Connect(method)
                } else {
                    Which::Unsupported(method)
                };
            }
            _ => {}
        }
        if let Some(method) = method {
            return self.at_method(method, said, head);
        }
        match self
            .transcoded
            .as_ref()
            .map(|transcoded| (transcoded, transcoded.find(head.method, head.uri.path())))
        {
            Some((transcoded, Found::Route(route))) => Which::Transcoded(transcoded, route),
            Some((_, Found::MethodNotAllowed { allow })) if self.fallback.is_none() => {
                Which::MethodNotAllowed(allow)
            }
            Some((_, Found::MethodNotAllowed { .. } | Found::Nothing)) | None => Which::Other,
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
            let why = "gRPC is for HTTP/2: by this version of HTTP there are Connect, gRPC-Web and JSON";
            let status = StatusCode::HTTP_VERSION_NOT_SUPPORTED;
            let answer = pages::error(status, Code::Unimplemented, why, request.headers());
            return ResponseFuture::ready(answer);
        }
        match codec {
            Some(codec) if self.protocols.grpc_codecs => {
                grpc::call(&self.context, &known(method, request.uri()), codec, request)
            }
            _ => self.unsupported(&known(method, request.uri()), &request),
        }
    }

    /// Classifies a request to the path of a method.
    fn at_method<'s>(&'s self, method: &'s Arc<Method>, said: Said, head: &RawHead<'_>) -> Which<'s> {
        let is_connect = self.is_connect(method, said, head);
        if let Some(transcoded) = &self.transcoded
            && let Found::Route(route) = transcoded.find(head.method, head.uri.path())
        {
            let says_so = head.headers.contains_key(CONNECT_VERSION);
            let is_annotations = route.is_annotated && !(is_connect && says_so);
            let is_json = match said {
                Said::Message(Codec::Json) => true,
                Said::Lines => method.is_streaming(),
                _ => false,
            };
            if is_annotations || !is_connect && is_json {
                return Which::Transcoded(transcoded, route);
            }
        }
        if is_connect {
            return Which::Connect(Cow::Borrowed(method));
        }
        if *head.method == Verb::POST {
            return Which::Unsupported(Cow::Borrowed(method));
        }
        let may_get = self.protocols.connect && method.has_no_side_effects() && !method.is_streaming();
        Which::MethodNotAllowed(HeaderValue::from_static(if may_get { "GET, POST" } else { "POST" }))
    }

    /// Returns whether it is a unary Connect call.
    fn is_connect(&self, method: &Method, said: Said, head: &RawHead<'_>) -> bool {
        if !self.protocols.connect || method.is_streaming() {
            return false;
        }
        match *head.method {
            Verb::POST => {
                let is_passed_on = self.protocols.requires_version
                    && said == Said::Message(Codec::Json)
                    && self.transcoded.is_some()
                    && !head.headers.contains_key(CONNECT_VERSION);
                matches!(said, Said::Message(_)) && !is_passed_on
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
    fn other(&self, request: Request<Body>) -> ResponseFuture {
        match &self.fallback {
            Some(fallback) => fallback.call(request),
            None => ResponseFuture::ready(pages::not_found(request.uri().path(), request.headers())),
        }
    }

    /// Returns whether a preflight request is not for the fallback.
    fn is_ours(&self, preflight: &Request<Body>) -> bool {
        let path = preflight.uri().path();
        let asked = preflight.headers().get(ACCESS_CONTROL_REQUEST_METHOD);
        let asked = asked.and_then(|method| Verb::from_bytes(method.as_bytes()).ok());
        let is_route = |transcoded: &Transcoded| {
            asked.as_ref().is_some_and(|asked| matches!(transcoded.find(asked, path), Found::Route(_)))
        };
        self.context.methods.get(path).is_some()
            || self.transcoded.as_ref().is_some_and(is_route)
            || self.pages.has(path)
    }
}

const CONNECT_VERSION: &str = "connect-protocol-version";

/// Returns the method, or a placeholder for an unknown one.
fn known<'s>(method: Option<&'s Arc<Method>>, uri: &Uri) -> Cow<'s, Arc<Method>> {
    method.map_or_else(|| Cow::Owned(Arc::new(Method::unknown(uri.path()))), Cow::Borrowed)
}

fn said(headers: &HeaderMap) -> Said {
    let content_type = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let Some(subtype) = content_type::application(content_type) else { return Said::Other };
    if let Some(codec) = Codec::named(subtype) {
        return Said::Message(codec);
    }
    if crate::transcoding::is_row(subtype) {
        return Said::Lines;
    }
    match strip_prefix(subtype, "grpc") {
        Some("") => Said::Grpc(Some(Codec::Proto)),
        Some(rest) if strip_prefix(rest, "-web").is_some() => Said::GrpcWeb,
        Some(rest) => rest.strip_prefix('+').map_or(Said::Other, |codec| Said::Grpc(Codec::named(codec))),
        None if strip_prefix(subtype, "connect+").is_some() => Said::ConnectStream,
        None => Said::Other,
    }
}
