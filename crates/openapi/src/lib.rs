//! Documentation, for programs and people, of services called with JSON over plain HTTP.
//!
//! - [`document`] writes OpenAPI 3.1.
//! - [`Page`] is an HTML page that documents the services and calls them.
//! - [`Comments`] holds the comments of `.proto` files, which a schema does not keep.
//! - [`rules`] reads the `google.api.http` annotations of a schema, on which both are based.
//!
//! Everything is derived from descriptors. `thalweg-web` serves the document and the page, and routes calls by the
//! rules.
//!
//! ```
//! use thalweg_protobuf::{Schema, sources};
//! use thalweg_openapi::rules::Rules;
//! use thalweg_openapi::{Comments, Info, document};
//!
//! # let greet = "syntax = 'proto3'; package greet;
//! #     service Greeter {
//! #         // Greets somebody.
//! #         rpc Greet(Greeting) returns (Greeting); } message Greeting { string name = 1; }";
//! let set = sources::compile(&["greet.proto"], |_| Some(greet.to_owned()))?;
//! let schema = Schema::from_descriptor_set(&set)?;
//! let rules = Rules::new(&schema, ["greet.Greeter"])?;
//! let info = Info::default().title("Greetings").comments(Comments::from_descriptor_set(&set));
//! let document = document(&rules, &info);
//! assert!(document.contains(r#""summary":"Greets somebody.","operationId":"Greeter_Greet""#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Content of the document
//!
//! - **Paths.** Each binding of [`Rules`](rules::Rules) is an operation: `Service_Method`, and `Service_Method_2` for
//!   the first additional binding. A variable of one segment is a parameter of its name. OpenAPI's parameters have no
//!   slashes, so in a variable of several segments each `*` is a parameter, named after the literal before it
//!   (`{name=shelves/*/books/*}` becomes `shelves/{shelf}/books/{book}`). `**` is one parameter whose slashes must not
//!   be encoded, although generated clients may encode them. Paths that differ only in the names of their variables
//!   are one path, with the names of the first.
//! - **Limits of OpenAPI.** Bindings that OpenAPI cannot express are listed under `x-google-api-http`: those with HTTP
//!   methods it does not support, and the second of two operations it cannot distinguish (`{x}` and `{x=**}`). A
//!   binding for any HTTP method is POST if it has a body, otherwise GET.
//! - **Query parameters** follow transcoding: `author.name`, repeated ones once per element, maps as `map[key]`. A
//!   message nested in itself is not expanded again. An operation has at most 1,000 parameters.
//! - **Bodies.** With `body: "*"`, fields in the path are omitted. A `google.api.HttpBody` is any content. Messages of
//!   a client stream are lines of NDJSON. Messages of a server stream are NDJSON, events or, if requested, a JSON
//!   array.
//! - **Errors** are `google.rpc.Status`, as the default response.
//! - **Schemas** follow ProtoJSON output: 64-bit integers are strings, and so are enums unless [`Info::enum_numbers`]
//!   is set. `NaN` and the infinities, which are strings too, are not distinguished from numbers. At most one member of
//!   a oneof may be present. Fields that are `REQUIRED` by `google.api.field_behavior` are required, although a server
//!   omits them if they are zero or empty.
//! - **Texts** are the comments of the `.proto` files, if the descriptors have them (see [`Comments`]). The first
//!   sentence of a comment is the summary.

#![forbid(unsafe_code)]

mod comments;
mod document;
mod info;
mod options;
mod page;
mod records;
pub mod rules;

pub use comments::Comments;
pub use document::document;
pub use info::Info;
pub use page::Page;
