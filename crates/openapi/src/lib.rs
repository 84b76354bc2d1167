//! Documents of services that are called by JSON over plain HTTP, for programs and for people.
//!
//! - [`document`] writes OpenAPI 3.1.
//! - [`Page`] is an HTML page that documents the services and calls them.
//! - [`Comments`] has the comments of `.proto` files, which a schema does not keep.
//! - [`rules`] reads the annotations `google.api.http` of a schema, which both are made of.
//!
//! All of it is a function of descriptors. `thalweg-web` serves the document and the page, and routes calls by the
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
//! let info = Info { title: "Greetings".to_owned(), ..Info::default() }.comments(Comments::from_descriptor_set(&set));
//! let document = document(&rules, &info);
//! assert!(document.contains(r#""summary":"Greets somebody.","operationId":"Greeter_Greet""#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What the document has
//!
//! - **Paths.** Each binding of [`Rules`](rules::Rules) is an operation: `Service_Method`, and `Service_Method_2` for
//!   the first additional binding. A variable of one segment is a parameter of its name. OpenAPI's parameters have no
//!   slashes: of a variable of several segments each `*` is a parameter, named for the literal before it
//!   (`{name=shelves/*/books/*}` is `shelves/{shelf}/books/{book}`). What `**` stands for is one parameter, whose
//!   slashes must stay as they are; generated clients may encode them. Paths that differ in the names of their
//!   variables alone are one path, with the names of the first.
//! - **What OpenAPI cannot say** is listed under `x-google-api-http`: methods of HTTP that it does not know, and of two
//!   operations that it cannot tell apart (`{x}` and `{x=**}`) the second. A binding for any method of HTTP is POST if
//!   it has a body, else GET.
//! - **Parameters of queries** are as transcoding has them: `author.name`, repeated ones once for each element, maps as
//!   `map[key]`. A message that is inside itself is not entered again, and no operation has more than 1,000.
//! - **Bodies.** With `body: "*"` the fields that the path has are left out. A `google.api.HttpBody` is any content.
//!   Messages that a client streams are lines of NDJSON. Those of a server are NDJSON, events or, if asked for, an
//!   array of JSON.
//! - **Errors** are `google.rpc.Status`, as the default answer.
//! - **Schemas** go by ProtoJSON as it is printed: 64-bit integers are strings, and so are enums, unless
//!   [`Info::enum_numbers`]. `NaN` and the infinities, which are strings too, are not told apart from numbers. Of a
//!   oneof one member is there at most. What is `REQUIRED` by `google.api.field_behavior` is required, though a
//!   server leaves it out where it is zero or empty.
//! - **Texts** are the comments of the `.proto` files, where the descriptors have them: see [`Comments`]. Of a
//!   comment the first sentence is the summary.

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
