//! JSON over plain HTTP, by [`google.api.http`] annotations in `.proto` files.
//!
//! ```
//! use thalweg_protobuf::{Schema, json, sources};
//! use thalweg_web::transcoding::{Content, Lookup, RequestOptions, Router, Rules, request, response};
//!
//! # let annotations = "syntax = 'proto2'; package google.api; import 'google/protobuf/descriptor.proto';
//! #     message HttpRule { optional string get = 2; } extend google.protobuf.MethodOptions
//! #     { optional HttpRule http = 72295728; }";
//! let library = r#"
//!     syntax = "proto3"; package library; import "google/api/annotations.proto";
//!     message GetBook { string name = 1; int32 page = 2; }
//!     message Book { string title = 1; }
//!     service Library {
//!         rpc Get(GetBook) returns (Book) { option (google.api.http) = { get: "/v1/{name=shelves/*/books/*}" }; }
//!     }"#;
//! # let read = move |name: &str| match name {
//! #     "library.proto" => Some(library.to_owned()),
//! #     "google/api/annotations.proto" => Some(annotations.to_owned()),
//! #     _ => None,
//! # };
//! let set = sources::compile(&["library.proto"], read)?;
//! let schema = Schema::from_descriptor_set(&set)?;
//! let router = Router::new(Rules::new(&schema, ["library.Library"])?);
//!
//! // GET /v1/shelves/7/books/rust?page=12
//! let Lookup::Route(route) = router.find(&http::Method::GET, "/v1/shelves/7/books/rust") else {
//!     return Err("no route".into());
//! };
//! assert_eq!(route.binding().path(), "/library.Library/Get");
//! let mut wire = Vec::new();
//! let body = Content::default();
//! request::to_wire(router.rules(), &route, "page=12", &body, &RequestOptions::default(), &mut wire)?;
//! let input = router.rules().input(route.binding());
//! assert_eq!(json::from_wire(input, &wire)?, r#"{"page":12,"name":"shelves/7/books/rust"}"#);
//!
//! let message = b"\x0a\x04Rust".as_slice().into();
//! let response = response::from_wire(router.rules(), route.binding(), &message, &json::PrintOptions::default())?;
//! assert_eq!(response.content_type, "application/json");
//! assert_eq!(response.data, br#"{"title":"Rust"}"#.as_slice());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Request processing
//!
//! 1. At startup, [`Rules`] reads the annotations of a schema, parses their paths ([`Template`]) and checks them
//!    against the messages. [`Router`] builds a table from them.
//! 2. [`Router::find`] maps an HTTP method and a path to a [`Binding`] and the values of its path variables. It does
//!    not allocate.
//! 3. [`request::to_wire`] writes the request's wire bytes from body, query and path, in this order, without an
//!    intermediate message: a later record of a field replaces or extends an earlier one.
//! 4. [`response::from_wire`] returns the body of the response, or [`error::to_json`] that of a failed call.
//!
//! # Choices beyond the specification
//!
//! - **Route selection.** Segments are compared from the front: a literal wins over `*`, and `*` over `**`. If two
//!   routes end in `**` and literals, the one with more literals wins. A route for another HTTP method does not hide
//!   later routes. A custom verb wins over a segment with a colon. Routes of the same form are a
//!   [conflict](RulesError::Conflict) at startup.
//! - **Segments.** `*` matches one non-empty segment, `**` any number of any segments. A trailing slash adds a segment.
//!   Literals may follow `**`. Literals are compared without decoding.
//! - **Percent-encoding.** Variables of one segment are decoded completely, others except `%2F`. Values that are not
//!   UTF-8 and `%` without two digits are refused.
//! - **Body and parameters.** Fields in the path or the body are not allowed in the query. With `body: "*"` there are
//!   no parameters. The path overrides the body. An empty body is an empty message. The field of `body` and
//!   `response_body` may have any type.
//! - **Parameters** have schema or JSON names, joined by dots; an entry of a map is `map[key]=value`. `+` is a space,
//!   as in forms and browsers. Names that start with `$` (`$alt`) and [ignored](RequestOptions::ignored_parameters)
//!   ones are skipped. A field that is not repeated may occur once, and a oneof may have one member.
//! - **PATCH.** If `body` is a field, and the request lacks its FieldMask `update_mask`, the mask is set to the fields
//!   in the body's JSON, at any depth (`{"author": {"name": null}}` is `author.name`).
//! - **`google.api.HttpBody`** as the request, its body field, the response or its body field is the raw body.
//!
//! # HTTP behavior
//!
//! A [`WebService`](crate::WebService) behaves as follows:
//!
//! - **Bodies** are `application/json` or `application/…+json`; others get 415. So does JSON without a content type,
//!   which a page of another origin could send without a preflight request. Methods with a request stream also accept
//!   `application/x-ndjson`. A `google.api.HttpBody` accepts anything. Bodies may be compressed as a whole
//!   (`content-encoding`), including streams. Bodies and messages above the method's limit get 413.
//! - **Request streams** are consecutive JSON values, with or without line breaks, or the elements of one array
//!   ([`Values`]). In a raw body each received piece is a message, and an empty body is one message. Fields of path and
//!   query are in the first message, as in Envoy.
//! - **Response streams** are lines (`application/x-ndjson`) unless `accept` names server-sent events
//!   (`text/event-stream`) or an array (`application/json`): [`Framing`]. A failure before the first message is a plain
//!   failure response. Headers are therefore sent with the first message, or when a handler that has started to respond
//!   is silent for a second. A later failure is the last part of the body: the line `{"error":{…}}`, the event `error`,
//!   or an element like the line. Event streams end with the event `end`, at which a page should close its
//!   `EventSource`, which would reconnect. They have `cache-control: no-cache` and `x-accel-buffering: no` for
//!   intermediaries. A raw body is truncated.
//! - **Metadata** is all headers except hop-by-hop and protocol headers. `grpc-metadata-x` becomes `x`, as in
//!   grpc-gateway, unless there is a header `x`. A proxy that removes headers must remove those too. The deadline is
//!   `grpc-timeout` or `connect-timeout-ms`, whichever is earlier.
//! - **Response headers** are the initial metadata, and the trailing metadata with the prefix `grpc-trailer-`. After a
//!   stream the trailing metadata is sent as HTTP trailers, if the client accepts them (`te: trailers`). The metadata
//!   of a failure becomes headers without prefix, for example `retry-after`.
//! - **Failures** are a `google.rpc.Status` in JSON, with the [HTTP status](error::http_status) of their code.
//! - **HEAD** is GET without the body. Methods that a path does not support get 405 with `allow`. With a
//!   [fallback](crate::Web::fallback), the fallback handles them.
//! - **Responses are compressed** according to `accept-encoding` if the method compresses its responses
//!   ([`ServiceOptions`](thalweg_engine::ServiceOptions)): JSON only, and streams as a whole, with each message
//!   readable on arrival. Raw bodies are not compressed.
//!
//! [`google.api.http`]: https://github.com/googleapis/googleapis/blob/master/google/api/http.proto

pub mod error;
mod framing;
mod http_body;
mod percent;
pub mod request;
pub mod response;
mod router;
mod values;

pub use framing::Framing;
pub(crate) use framing::is_json_lines;
pub use http_body::Content;
pub use percent::PercentError;
pub use request::{RequestError, RequestOptions};
pub(crate) use router::RouteKey;
pub use router::{Lookup, Route, Router, Variables};
pub use thalweg_openapi::rules::{
    Binding, BodyMapping, FieldPath, RuleProblem, Rules, RulesError, Segment, Template, TemplateError,
    Variable,
};
pub use values::{Values, ValuesError};
