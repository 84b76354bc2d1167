//! One function for every request of HTTP that is not gRPC: [`WebService`].
//!
//! # Which protocol a request is of
//!
//! In this order; a protocol that is switched off is passed over.
//!
//! 1. **A browser's preflight request** ([`Cors`](crate::cors::Cors)) to a path that is a method's, an annotation's or
//!    a page's; those to other paths are the fallback's, if there is one.
//! 2. **By the content type** of a POST: `application/grpc-web…` is gRPC-Web, `application/connect+…` is a stream of
//!    Connect, `application/grpc+json` and `application/grpc+msgpack` are gRPC with another codec, over HTTP/2 alone.
//!    Calls of methods that there are not end as that protocol has it, with UNIMPLEMENTED.
//! 3. **Connect's unary calls**, at the path of a method with one message each way: a POST of `application/proto`,
//!    `application/json` or `application/msgpack`; a GET whose query has `connect=v1`, or `encoding` and `message`, of
//!    a method without side effects.
//! 4. **Transcoded JSON**, where an annotation has a path for it, or by POST of `application/json` to the path of a
//!    method that has none.
//! 5. **The pages** of the server itself, **the fallback**, and then 404.
//!
//! A POST of `application/json` to `/package.Service/Method` may be of either, 3 or 4. Both read it alike, and write
//! the same answer if the call succeeds; an error has Connect's form in one (`"code":"not_found"`) and that of
//! `google.rpc.Status` in the other (`"code":5`). It is Connect's where the method is unary, whether or not the request
//! has the header `connect-protocol-version`, which not all clients send, and who types into curl reads either error.
//! It is transcoded where
//!
//! - the method has a stream: the answer is lines of JSON then, while Connect has envelopes for that, and says so by
//!   its content type;
//! - an annotation has this very path, and the header is not there;
//! - Connect is switched off, or requires the header, and that is not there.
//!
//! At the path of a method, what is no call of any of them is 405, with `allow`, or 415, with `accept-post`.

mod answers;
mod call;
mod config;
mod connect;
mod context;
mod deadline;
mod enveloped;
mod fallback;
mod grpc;
mod grpc_web;
mod methods;
mod pages;
mod protocol;
mod requests;
mod response;
mod transcoded;

use std::sync::Arc;

use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method as Verb, Request, StatusCode, Version};
use thalweg_engine::server::{LocalCalls, RawHandler};
use thalweg_engine::{Code, ConnectionInfo};
use thalweg_protobuf::Schema;

pub use config::{Web, WebError};
pub use response::ResponseFuture;

use crate::body::Body;
use crate::codec::Codec;
use crate::comments::Comments;
use crate::content_type::{self, strip_prefix};
use crate::cors::Cors;
use crate::http1::limits::Http1Limits;
use config::Protocols;
use context::Context;
use fallback::Fallback;
use methods::Method;
use pages::Pages;
use transcoded::{Found, Transcoded};

/// Answers every request of HTTP that is not gRPC: calls by other protocols, pages, and what the user's own service is
/// for. Clones are the same service.
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

/// What a content type says of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    GrpcWeb,
    Grpc(Option<Codec>),
    ConnectStream,
    /// A message.
    Message(Codec),
    /// Lines of JSON.
    Lines,
    Other,
}

impl Web {
    /// The service for the methods that `calls` calls.
    ///
    /// # Errors
    /// For descriptors that can't be used, and annotations that are wrong or in each other's way.
    pub fn into_service(self, calls: LocalCalls) -> Result<WebService, WebError> {
        // Sets behind each other are one set.
        let set = self.sets.concat();
        let schema = Schema::from_descriptor_set(&set)?;
        let info = self.info.comments(Comments::from_descriptor_set(&set));
        let context = Arc::new(Context::new(calls, schema, self.options));
        let transcoded =
            self.protocols.transcoding.then(|| Transcoded::new(&context, &self.requests)).transpose()?;
        let pages = Pages::new(self.pages, self.fallback.is_some(), &context, info)?;
        let (protocols, cors, fallback, http1) = (self.protocols, self.cors, self.fallback, self.http1);
        Ok(WebService(Arc::new(Shared { context, protocols, cors, transcoded, pages, fallback, http1 })))
    }
}

impl WebService {
    /// Answers a request. The connection that it came by is in its extensions, as an `Arc<ConnectionInfo>`, if calls
    /// are to know it.
    pub fn call(&self, request: Request<Body>) -> ResponseFuture {
        let shared = &*self.0;
        let Some(cors) = &shared.cors else {
            return shared.answer(request).unwrap_or_else(|request| shared.other(request));
        };
        if let Some(preflight) = cors.preflight(request.method(), request.headers())
            && (shared.is_ours(request.uri().path()) || shared.fallback.is_none())
        {
            return ResponseFuture::ready(preflight.map(|()| Body::empty()));
        }
        let mut allowed = HeaderMap::new();
        cors.allow(request.headers(), &mut allowed);
        match shared.answer(request) {
            Ok(answer) => answer.adding(allowed),
            Err(request) => shared.other(request),
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
    type RequestBody = Body;
    type Body = Body;
    type Future = ResponseFuture;

    /// Over HTTP/2, whose driver knows no times for what is not gRPC.
    fn start(&self, request: Request<Body>, connection: Option<&Arc<ConnectionInfo>>) -> ResponseFuture {
        let has_length = request.headers().contains_key(CONTENT_LENGTH);
        let mut request = request.map(|body| body.within(self.0.http1.request_timeout, has_length));
        if let Some(connection) = connection {
            request.extensions_mut().insert(Arc::clone(connection));
        }
        self.call(request)
    }
}

impl Shared {
    /// The answer to a call, or to what is a page of the server's own.
    ///
    /// # Errors
    /// The request, if it is neither.
    #[expect(clippy::result_large_err, reason = "what is no call goes on its way: it is no error")]
    fn answer(&self, request: Request<Body>) -> Result<ResponseFuture, Request<Body>> {
        let method = self.context.methods.get(request.uri().path());
        let said = said(request.headers());
        match said {
            Said::GrpcWeb if self.protocols.grpc_web => {
                return Ok(grpc_web::call(&self.context, &known(method, &request), request));
            }
            Said::Grpc(codec) => return Ok(self.grpc(method, codec, request)),
            Said::ConnectStream if self.protocols.connect => {
                let method = known(method, &request);
                return Ok(if method.is_streaming() {
                    connect::call(&self.context, &method, self.protocols.requires_version, request)
                } else {
                    self.unsupported(&method, &request)
                });
            }
            _ => {}
        }
        if let Some(method) = method {
            return Ok(self.at_method(method, said, request));
        }
        if let Some(transcoded) = &self.transcoded {
            match transcoded.find(request.method(), request.uri().path()) {
                Found::Route(route) => return Ok(transcoded.call(&route, request)),
                Found::MethodNotAllowed { allow } if self.fallback.is_none() => {
                    return Ok(ResponseFuture::ready(pages::method_not_allowed(request.headers(), allow)));
                }
                Found::MethodNotAllowed { .. } | Found::Nothing => {}
            }
        }
        match self.pages.find(request.method(), request.uri().path(), request.headers()) {
            Some(page) => Ok(ResponseFuture::ready(page)),
            None => Err(request),
        }
    }

    /// A request whose content type is gRPC's.
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
                grpc::call(&self.context, &known(method, &request), codec, request)
            }
            _ => self.unsupported(&known(method, &request), &request),
        }
    }

    /// A request to the path of a method.
    fn at_method(&self, method: &Arc<Method>, said: Said, request: Request<Body>) -> ResponseFuture {
        let is_connect = self.is_connect(method, said, &request);
        if let Some(transcoded) = &self.transcoded
            && let Found::Route(route) = transcoded.find(request.method(), request.uri().path())
        {
            let says_so = request.headers().contains_key(CONNECT_VERSION);
            let is_annotations = route.is_annotated && !(is_connect && says_so);
            let is_json = match said {
                Said::Message(Codec::Json) => true,
                Said::Lines => method.is_streaming(),
                _ => false,
            };
            if is_annotations || !is_connect && is_json {
                return transcoded.call(&route, request);
            }
        }
        if is_connect {
            return connect::call(&self.context, method, self.protocols.requires_version, request);
        }
        if *request.method() == Verb::POST {
            return self.unsupported(method, &request);
        }
        let may_get = self.protocols.connect && method.has_no_side_effects() && !method.is_streaming();
        let allow = HeaderValue::from_static(if may_get { "GET, POST" } else { "POST" });
        ResponseFuture::ready(pages::method_not_allowed(request.headers(), allow))
    }

    /// Whether it is a unary call of Connect's.
    fn is_connect(&self, method: &Method, said: Said, request: &Request<Body>) -> bool {
        if !self.protocols.connect || method.is_streaming() {
            return false;
        }
        match *request.method() {
            Verb::POST => {
                let is_passed_on = self.protocols.requires_version
                    && said == Said::Message(Codec::Json)
                    && self.transcoded.is_some()
                    && !request.headers().contains_key(CONNECT_VERSION);
                matches!(said, Said::Message(_)) && !is_passed_on
            }
            Verb::GET => method.has_no_side_effects() && crate::connect::is_get(request.uri()),
            _ => false,
        }
    }

    /// A POST to the path of a method, with a body that is no message of it.
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

    /// What is no call: the fallback's, if there is one.
    fn other(&self, request: Request<Body>) -> ResponseFuture {
        match &self.fallback {
            Some(fallback) => fallback.call(request),
            None => ResponseFuture::ready(pages::not_found(request.uri().path(), request.headers())),
        }
    }

    /// Whether some request to this path is not the fallback's.
    fn is_ours(&self, path: &str) -> bool {
        let is_route =
            |transcoded: &Transcoded| !matches!(transcoded.find(&Verb::OPTIONS, path), Found::Nothing);
        self.context.methods.get(path).is_some()
            || self.transcoded.as_ref().is_some_and(is_route)
            || self.pages.has(path)
    }
}

const CONNECT_VERSION: &str = "connect-protocol-version";

/// A method, which the server may not have.
fn known(method: Option<&Arc<Method>>, request: &Request<Body>) -> Arc<Method> {
    method.map_or_else(|| Arc::new(Method::unknown(request.uri().path())), Arc::clone)
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
