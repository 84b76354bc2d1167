//! How a server speaks with others than gRPC's clients: [`Web`].

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

/// Which protocols a server speaks besides gRPC, and how: all of them by default.
///
/// ```
/// use thalweg_web::Web;
/// use thalweg_web::cors::{Cors, Origins};
///
/// // Every page may call, and there is a page of the services.
/// let web = Web::new().cors(Cors { origins: Origins::Any, ..Cors::default() }).docs(true);
/// # drop(web);
/// ```
#[derive(Debug)]
pub struct Web {
    /// `FileDescriptorSet`s, as they are encoded.
    pub(super) sets: Vec<Cow<'static, [u8]>>,
    pub(super) protocols: Protocols,
    pub(super) cors: Option<Cors>,
    pub(super) options: CodecOptions,
    /// But for what they have of `options`.
    pub(super) requests: RequestOptions,
    pub(super) fallback: Option<Fallback>,
    pub(super) pages: PageOptions,
    pub(super) http1: Http1Limits,
    pub(super) info: Info,
}

/// What is spoken.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "switches that have nothing to do with each other")]
pub(super) struct Protocols {
    pub(super) connect: bool,
    /// Unary calls of Connect must say that they are.
    pub(super) requires_version: bool,
    pub(super) grpc_web: bool,
    pub(super) transcoding: bool,
    /// Transcoded POST may come with a content type that forms can send, or with none.
    pub(super) simple_posts: bool,
    /// `application/grpc+json` and `application/grpc+msgpack`.
    pub(super) grpc_codecs: bool,
}

/// Which pages there are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PageOptions {
    /// `/`; by default if there is no fallback, which has one of its own.
    pub(super) front: Option<bool>,
    pub(super) openapi: bool,
    pub(super) docs: bool,
}

impl PageOptions {
    /// Whether there is a page that shows the rules of the services.
    pub(super) fn are_of_rules(self) -> bool {
        self.openapi || self.docs
    }
}

/// Why a server can't be set up so.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WebError {
    /// Descriptors that are none.
    #[error("the descriptors can't be used: {0}")]
    Descriptors(#[from] SchemaError),
    /// Annotations that are wrong, or that are in each other's way.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// [`Cors`] with [`allows_credentials`](Cors::allows_credentials) for [every page](crate::cors::Origins::Any).
    #[error("pages of all origins can't be allowed to send credentials: name the origins (Cors::origins)")]
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
    /// Everything that needs no more than the services.
    pub fn new() -> Web {
        Web::default()
    }

    /// Descriptors of services: an encoded `google.protobuf.FileDescriptorSet`, imports included, as `thalweg-build`
    /// writes it. Without those of a service its messages are wire bytes alone, and there is no JSON. There may be
    /// several sets; of services that the server does not have, nothing is served.
    pub fn descriptors(mut self, set: impl Into<Cow<'static, [u8]>>) -> Web {
        self.sets.push(set.into());
        self
    }

    /// Whether Connect is spoken.
    pub fn connect(mut self, is_on: bool) -> Web {
        self.protocols.connect = is_on;
        self
    }

    /// Whether unary requests of Connect must have the header `connect-protocol-version`, or `connect=v1` in their
    /// query; not by default. With it, what somebody types into curl is transcoded JSON.
    pub fn requires_connect_version(mut self, is_required: bool) -> Web {
        self.protocols.requires_version = is_required;
        self
    }

    /// Whether gRPC-Web is spoken.
    pub fn grpc_web(mut self, is_on: bool) -> Web {
        self.protocols.grpc_web = is_on;
        self
    }

    /// Whether JSON is transcoded by the annotations `google.api.http`.
    pub fn transcoding(mut self, is_on: bool) -> Web {
        self.protocols.transcoding = is_on;
        self
    }

    /// Whether transcoded POST requests may have no content type, or one that an HTML form can send: `text/plain`,
    /// `multipart/form-data` or `application/x-www-form-urlencoded`. By default they get 415, also without a body,
    /// because browsers let pages of any origin send them, cookies included (cross-site request forgery). A body of
    /// JSON needs `application/json` either way. Allow this only where no browser is authenticated by cookies, by the
    /// client's address or by a client certificate.
    pub fn allow_simple_posts(mut self, is_allowed: bool) -> Web {
        self.protocols.simple_posts = is_allowed;
        self
    }

    /// Whether gRPC's own calls may have messages as JSON and MessagePack: `application/grpc+json` and
    /// `application/grpc+msgpack`.
    pub fn grpc_codecs(mut self, is_on: bool) -> Web {
        self.protocols.grpc_codecs = is_on;
        self
    }

    /// What pages of other origins may do; nothing by default. It holds for calls and the server's own pages, and not
    /// for the [fallback](Self::fallback).
    pub fn cors(mut self, cors: Cors) -> Web {
        self.cors = Some(cors);
        self
    }

    /// How messages are written as JSON and MessagePack.
    pub fn print(mut self, options: json::PrintOptions) -> Web {
        self.options.print = options;
        self
    }

    /// What is accepted as a message in JSON and MessagePack. With `ignore_unknown` also parameters of a query that no
    /// field is for are left alone.
    pub fn parse(mut self, options: json::ParseOptions) -> Web {
        self.options.parse = options;
        self
    }

    /// Whether `+` is a space in the queries of transcoded requests, as forms and browsers write it; by default it is.
    pub fn plus_is_space(mut self, is_space: bool) -> Web {
        self.requests.plus_is_space = is_space;
        self
    }

    /// How many parameters the query of a transcoded request may have: 1,000.
    pub fn parameters_max(mut self, max: usize) -> Web {
        self.requests.parameters_max = max;
        self
    }

    /// Names of parameters that the queries of transcoded requests may have beside fields, and that are left alone:
    /// what pages and other layers add, as `utm_source`. A parameter that no field is for is refused with 400 else.
    pub fn ignored_parameters<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Web {
        self.requests.ignored_parameters = names.into_iter().map(N::into).collect();
        self
    }

    /// What answers requests that are no calls: an `axum::Router`, say.
    ///
    /// An error of it is a 500. It sees all paths that are no method's, no annotation's and no page's, and those of
    /// annotations with other methods of HTTP than they have: of `/v1/books/7`, which is there for GET, it may have
    /// DELETE. So it is the fallback that answers such a request with 405, or with 404.
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

    /// What clients of HTTP/1.1 may do, and how long it may take; how long bodies may take by either version.
    pub fn http1(mut self, limits: Http1Limits) -> Web {
        self.http1 = limits;
        self
    }

    /// Whether `GET /` names the services with their methods, the protocols that are spoken and the pages that there
    /// are; by default if there is no [fallback](Self::fallback).
    pub fn front_page(mut self, is_on: bool) -> Web {
        self.pages.front = Some(is_on);
        self
    }

    /// Whether there is an OpenAPI description of the services at `/openapi.json`; not by default.
    pub fn openapi(mut self, is_on: bool) -> Web {
        self.pages.openapi = is_on;
        self
    }

    /// Whether there is a page of the services at `/docs`, where they can be called; not by default.
    pub fn docs(mut self, is_on: bool) -> Web {
        self.pages.docs = is_on;
        self
    }

    /// What the OpenAPI description and the page say of the services besides: title, version, servers. Comments of
    /// the `.proto` files are those of the [descriptors](Self::descriptors), and names and enums are as they are
    /// [printed](Self::print).
    pub fn info(mut self, info: Info) -> Web {
        self.info = info;
        self
    }
}
