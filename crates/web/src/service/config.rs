//! Configuration of the protocols besides gRPC: [`Web`].

use std::borrow::Cow;
use std::error::Error;

use bytes::Bytes;
use http::{Request, Response};
use thalweg_openapi::Info;
use thalweg_protobuf::{SchemaError, json};
use thiserror::Error;
use tower_service::Service;

use super::fallback::Fallback;
use crate::body::Body;
use crate::codec::CodecOptions;
use crate::cors::Cors;
use crate::http1::limits::Http1Limits;
use crate::transcoding::{RequestOptions, RulesError};

/// Protocols that a server speaks besides gRPC; all by default.
///
/// ```
/// use thalweg_web::Web;
/// use thalweg_web::cors::{Cors, Origins};
///
/// // Every page may call, and there is a page of the services.
/// let web = Web::new().cors(Cors::default().origins(Origins::Any)).docs(true);
/// # drop(web);
/// ```
#[derive(Debug)]
pub struct Web {
    /// Encoded `FileDescriptorSet`s.
    pub(super) sets: Vec<Cow<'static, [u8]>>,
    pub(super) protocols: Protocols,
    pub(super) cors: Option<Cors>,
    pub(super) options: CodecOptions,
    /// Only the fields that `options` lacks are used.
    pub(super) requests: RequestOptions,
    pub(super) fallback: Option<Fallback>,
    pub(super) pages: PageOptions,
    pub(super) http1: Http1Limits,
    pub(super) info: Info,
}

/// Enabled protocols.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub(super) struct Protocols {
    pub(super) connect: bool,
    /// Whether unary Connect calls must have the protocol version.
    pub(super) requires_version: bool,
    pub(super) grpc_web: bool,
    pub(super) transcoding: bool,
    /// Whether transcoded POST requests may have a content type that forms can send, or none.
    pub(super) simple_posts: bool,
    /// `application/grpc+json` and `application/grpc+msgpack`.
    pub(super) grpc_codecs: bool,
}

/// Enabled pages.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PageOptions {
    /// `/`; by default enabled if there is no fallback.
    pub(super) front: Option<bool>,
    pub(super) openapi: bool,
    pub(super) docs: bool,
}

impl PageOptions {
    /// Returns whether a page needs the rules of the services.
    pub(super) fn needs_rules(self) -> bool {
        self.openapi || self.docs
    }
}

/// Reason why a configuration is invalid.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WebError {
    /// Invalid descriptors.
    #[error("invalid descriptors: {0}")]
    Descriptors(#[from] SchemaError),
    /// Invalid or conflicting annotations.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// [`Cors`] with [`allows_credentials`](Cors::allows_credentials) for [all origins](crate::cors::Origins::Any).
    #[error("credentials cannot be allowed for all origins; list the origins with Cors::origins")]
    Credentials,
}

impl Default for Web {
    fn default() -> Web {
        Web {
            sets: Vec::new(),
            protocols: Protocols {
                connect: true,
                requires_version: false,
                grpc_web: true,
                transcoding: true,
                simple_posts: false,
                grpc_codecs: true,
            },
            cors: None,
            options: CodecOptions::default(),
            requests: RequestOptions::default(),
            fallback: None,
            pages: PageOptions::default(),
            http1: Http1Limits::default(),
            info: Info::default(),
        }
    }
}

impl Web {
    /// Creates the default configuration.
    pub fn new() -> Web {
        Web::default()
    }

    /// Adds descriptors of services: an encoded `google.protobuf.FileDescriptorSet` with imports, as written by
    /// `thalweg-build`. Services without descriptors support Protobuf messages only, and no JSON. May be called several
    /// times; descriptors of services that the server does not have are ignored.
    pub fn descriptors(mut self, set: impl Into<Cow<'static, [u8]>>) -> Web {
        self.sets.push(set.into());
        self
    }

    /// Enables Connect. Enabled by default.
    pub fn connect(mut self, is_on: bool) -> Web {
        self.protocols.connect = is_on;
        self
    }

    /// Whether unary Connect requests must have the header `connect-protocol-version`, or `connect=v1` in the query.
    /// Off by default. If on, plain `curl` requests are transcoded JSON.
    pub fn requires_connect_version(mut self, is_required: bool) -> Web {
        self.protocols.requires_version = is_required;
        self
    }

    /// Enables gRPC-Web. Enabled by default.
    pub fn grpc_web(mut self, is_on: bool) -> Web {
        self.protocols.grpc_web = is_on;
        self
    }

    /// Enables JSON transcoding by `google.api.http` annotations. Enabled by default.
    pub fn transcoding(mut self, is_on: bool) -> Web {
        self.protocols.transcoding = is_on;
        self
    }

    /// Whether transcoded POST requests may have no content type, or one that an HTML form can send: `text/plain`,
    /// `multipart/form-data` or `application/x-www-form-urlencoded`. By default they get 415, even without a body,
    /// because browsers let pages of any origin send them, cookies included (cross-site request forgery). A JSON body
    /// needs `application/json` either way. Allow this only if no browser is authenticated by cookies, by the client's
    /// address or by a client certificate.
    pub fn allow_simple_posts(mut self, is_allowed: bool) -> Web {
        self.protocols.simple_posts = is_allowed;
        self
    }

    /// Enables JSON and MessagePack messages in gRPC calls: `application/grpc+json` and `application/grpc+msgpack`.
    /// Enabled by default.
    pub fn grpc_codecs(mut self, is_on: bool) -> Web {
        self.protocols.grpc_codecs = is_on;
        self
    }

    /// Sets the permissions of pages from other origins; none by default. They apply to calls and the server's own
    /// pages, not to the [fallback](Self::fallback).
    pub fn cors(mut self, cors: Cors) -> Web {
        self.cors = Some(cors);
        self
    }

    /// Sets the format of messages written as JSON and MessagePack.
    pub fn print(mut self, options: json::PrintOptions) -> Web {
        self.options.print = options;
        self
    }

    /// Sets what is accepted as a JSON or MessagePack message. With `ignore_unknown`, query parameters without a field
    /// are ignored too.
    pub fn parse(mut self, options: json::ParseOptions) -> Web {
        self.options.parse = options;
        self
    }

    /// Whether `+` is a space in queries of transcoded requests, as in forms and browsers. On by default.
    pub fn plus_is_space(mut self, is_space: bool) -> Web {
        self.requests.plus_is_space = is_space;
        self
    }

    /// Sets the maximum number of query parameters of a transcoded request; 1,000 by default.
    pub fn parameters_max(mut self, max: usize) -> Web {
        self.requests.parameters_max = max;
        self
    }

    /// Sets names of query parameters that are ignored in transcoded requests, such as `utm_source`, which pages and
    /// other layers add. Otherwise a parameter without a field gets 400.
    pub fn ignored_parameters<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Web {
        self.requests.ignored_parameters = names.into_iter().map(N::into).collect();
        self
    }

    /// Sets the handler of other requests, for example an `axum::Router`.
    ///
    /// Its errors become a 500. It receives all paths that belong to no method, annotation or page. It also receives
    /// paths of annotations with other HTTP methods: if `/v1/books/7` supports GET, the fallback may handle DELETE. So
    /// the fallback responds with 405 or 404 to such requests.
    pub fn fallback<S, B>(mut self, service: S) -> Web
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Error: Into<Box<dyn Error + Send + Sync>>,
        S::Future: Send,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        self.fallback = Some(Fallback::new(service));
        self
    }

    /// Sets the limits of HTTP/1.1 clients, and the time limits of bodies over HTTP/1.1 and HTTP/2.
    pub fn http1(mut self, limits: Http1Limits) -> Web {
        self.http1 = limits;
        self
    }

    /// Whether `GET /` lists the services with their methods, the protocols and the pages. On by default if there is no
    /// [fallback](Self::fallback).
    pub fn front_page(mut self, is_on: bool) -> Web {
        self.pages.front = Some(is_on);
        self
    }

    /// Serves an OpenAPI description of the services at `/openapi.json`. Off by default.
    pub fn openapi(mut self, is_on: bool) -> Web {
        self.pages.openapi = is_on;
        self
    }

    /// Serves an HTML page at `/docs` that documents the services and can call them. Off by default.
    pub fn docs(mut self, is_on: bool) -> Web {
        self.pages.docs = is_on;
        self
    }

    /// Sets further contents of the OpenAPI description and the page: title, version, servers. Comments come from the
    /// [descriptors](Self::descriptors); names and enums are as [printed](Self::print).
    pub fn info(mut self, info: Info) -> Web {
        self.info = info;
        self
    }
}
