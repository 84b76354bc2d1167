//! JSON over plain HTTP, by the annotations [`google.api.http`] of the `.proto` files.
//!
//! ```
//! use thalweg_protobuf::{Schema, json, sources};
//! use thalweg_web::transcoding::{Content, Found, RequestOptions, Router, Rules, request, response};
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
//! let Found::Route(route) = router.find(&http::Method::GET, "/v1/shelves/7/books/rust") else {
//!     return Err("no route".into());
//! };
//! assert_eq!(route.binding().path(), "/library.Library/Get");
//! let mut wire = Vec::new();
//! let body = Content::default();
//! request::to_wire(router.rules(), &route, "page=12", &body, &RequestOptions::default(), &mut wire)?;
//! let input = router.rules().input(route.binding());
//! assert_eq!(json::from_wire(input, &wire)?, r#"{"page":12,"name":"shelves/7/books/rust"}"#);
//!
//! let answer = b"\x0a\x04Rust".as_slice().into();
//! let answer = response::from_wire(router.rules(), route.binding(), &answer, &json::PrintOptions::default())?;
//! assert_eq!(answer.content_type, "application/json");
//! assert_eq!(answer.data, br#"{"title":"Rust"}"#.as_slice());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The way of a request
//!
//! 1. At start, [`Rules`] reads the annotations of a schema, parses their paths ([`Template`])
//!    and checks all of it against the messages; [`Router`] makes a table of it.
//! 2. [`Router::find`] leads from a method of HTTP and a path to a [`Binding`] and the parts of the path that its
//!    variables stand for. It allocates nothing.
//! 3. [`request::to_wire`] makes the request's wire bytes of body, query and path, in this order, and no message in
//!    between: a later record of a field replaces or extends an earlier one.
//! 4. [`response::from_wire`] makes the body of the answer, or [`error::to_json`] that of a failed call.
//!
//! # What the specification leaves open
//!
//! - **Which route.** A literal goes before `*`, and that before `**`, segment by segment from the front; of two that
//!   end in `**` and literals, the one with more literals goes first. A route for another method of HTTP does not hide
//!   one further behind. A custom verb goes before a segment with a colon in it. Routes of the same form are a
//!   [conflict](RulesError::Conflict) when the server starts.
//! - **Segments.** `*` takes one that is not empty, `**` any number of any. A slash at the end is a segment more.
//!   Behind `**` literals may follow. Literals are compared as they are written, without decoding.
//! - **Percent-encoding.** All of a variable of one segment is decoded; of others all but `%2F`. What then is not UTF-8
//!   is refused, and so is a `%` without two digits.
//! - **Body and parameters.** A field that the path or the body has is none for the query. With `body: "*"` there are
//!   no parameters. Path goes before body where both have a value. A body that is empty is an empty message. The field
//!   of `body` and `response_body` may be of any type.
//! - **Parameters** have the names of the schema or of JSON, with dots between; an entry of a map is `map[key]=value`.
//!   `+` is a space, as forms and browsers write it. A name that begins with `$` (`$alt`) is left alone, and so
//!   are the [ignored](RequestOptions::ignored_parameters) ones. A field that
//!   is not repeated comes once, and of a oneof one member.
//! - **PATCH.** Where `body` is a field, and the request has a FieldMask `update_mask` that was not given, it has the
//!   fields that the body's JSON has, as deep as they go (`{"author": {"name": null}}` is `author.name`).
//! - **`google.api.HttpBody`** as the request, its body field, the answer or its body field, is the body as it is.
//!
//! # What a client meets
//!
//! Where a [`WebService`](crate::WebService) serves it:
//!
//! - **Bodies** are `application/json`, or `application/…+json`; others are 415, and so is JSON that does not say
//!   that it is: a page of another origin could send that unasked. Of methods that take a stream they may be
//!   `application/x-ndjson` too. For a `google.api.HttpBody` it is anything. They may be compressed
//!   as a whole (`content-encoding`), streams too. What is larger than the method takes is 413, also where only its
//!   message is.
//! - **Streams of requests** are JSON values behind each other, on lines of their own or not, or the elements of one
//!   array ([`Values`]); of a raw body each piece is a message, and an empty body is one, too. What path and query
//!   say is in the first message, as Envoy has it.
//! - **Streams of answers** are lines (`application/x-ndjson`) unless `accept` names server-sent events
//!   (`text/event-stream`) or an array (`application/json`): [`Framing`]. Until there is a
//!   first message a failure is a plain one. So nothing is answered before, but that a handler which has begun to
//!   answer, and then is silent for a second, has its head sent. Afterwards a failure is the last thing in the body:
//!   the line `{"error":{…}}`, the event `error`, or an element like the line. Events end with the event `end`, at
//!   which a page closes its `EventSource`: it would ask again. They have `cache-control: no-cache` and
//!   `x-accel-buffering: no`, for what stands between. A raw body is cut off.
//! - **Metadata** are all headers but those of one hop and of the protocols, by their own names. `grpc-metadata-x` is
//!   `x`, as clients of grpc-gateway have it, unless there is a header `x`: who takes headers away in front of the
//!   server has to do so with those, too. The deadline is `grpc-timeout` or `connect-timeout-ms`, the earlier of
//!   both.
//! - **Headers of answers** are the initial metadata by their own names, and the trailing metadata with
//!   `grpc-trailer-` before them. Behind a stream those are trailers of HTTP, for who takes any (`te: trailers`). The
//!   metadata of a failure are headers by their own names: `retry-after`, say.
//! - **Failures** are a `google.rpc.Status` in JSON, and have the [status of HTTP](error::http_status) of their code.
//! - **HEAD** is GET without the body. Other methods than a path has are 405, with `allow`; a server with a
//!   [fallback](crate::Web::fallback) hands them to that, which may have them.
//! - **Answers are compressed** as `accept-encoding` says if the method compresses its answers
//!   ([`ServiceOptions`](thalweg_engine::ServiceOptions)): JSON, that of a stream as a whole, where
//!   each message can be read when it has arrived. Raw bodies stay as they are.
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
pub(crate) use framing::is_row;
pub use http_body::Content;
pub use percent::PercentError;
pub use request::{RequestError, RequestOptions};
pub(crate) use router::RoutePlace;
pub use router::{Found, Route, Router, Variables};
pub use thalweg_openapi::rules::{
    Binding, Body, FieldPath, RuleProblem, Rules, RulesError, Segment, Template, TemplateError, Variable,
};
pub use values::{Values, ValuesError};
