//! Protocols of the web for the calls that a gRPC server serves.
//!
//! - [`connect`]: [Connect](https://connectrpc.com/docs/protocol), unary by POST and GET, and streams;
//! - [`grpc_web`]: [gRPC-Web], binary and text;
//! - [`transcoding`]: JSON over plain HTTP, by the annotations `google.api.http` of the `.proto` files;
//! - [`openapi`]: what the services are, for programs that make clients and pages of that;
//! - [`page`]: the page of them, for people;
//! - [`comments`]: those of the `.proto` files, for documents;
//! - [`cors`]: what browsers ask before they let a page of another origin call.
//!
//! They are pure: heads and bytes in, heads and bytes out, for servers and for clients. Nothing in them knows a
//! socket, a clock or a task, and nothing that a peer sends makes it panic or take more memory than it has filled or is
//! allowed. Beside them, [`http1`] serves the connections of those that don't speak HTTP/2, and [`client`] makes
//! calls.
//!
//! A unary call of Connect, from the request to the answer:
//!
//! ```
//! use http::{HeaderMap, HeaderValue, Method, Uri};
//! use thalweg_engine::EncodingSet;
//! use thalweg_web::compression::decompress;
//! use thalweg_web::connect::{Rules, read_request};
//!
//! let rules = Rules {
//!     codecs: &["proto", "json"],
//!     requires_version: false,
//!     accepts: EncodingSet::ALL,
//!     offers: EncodingSet::ALL,
//! };
//! let mut headers = HeaderMap::new();
//! headers.insert("content-type", HeaderValue::from_static("application/json"));
//! let uri = Uri::from_static("/greet.Greeter/Greet");
//!
//! let head = read_request(&Method::POST, &uri, &headers, &rules).expect("a request").expect("Connect's");
//! let message = decompress(head.encoding, r#"{"name":"Ada"}"#.into(), 4 << 20)?;
//! assert_eq!((head.codec, &message[..]), ("json", &br#"{"name":"Ada"}"#[..]));
//!
//! // The method of that path is called with the message. It may succeed, or fail:
//! let none = HeaderMap::new();
//! let answer = head.answering().success(&none, &none, r#"{"greeting":"Hello, Ada"}"#.into());
//! assert_eq!(answer.status(), 200);
//! let gone = thalweg_engine::Status::new(thalweg_engine::Code::NotFound, "nobody is called so");
//! assert_eq!(head.answering().failure(&gone).body(), r#"{"code":"not_found","message":"nobody is called so"}"#);
//! # Ok::<(), thalweg_engine::Status>(())
//! ```
//!
//! [gRPC-Web]: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md

#![forbid(unsafe_code)]

mod base64;
mod beside;
pub mod body;
pub mod client;
mod codec;
pub mod comments;
pub mod compression;
pub mod connect;
mod content_type;
pub mod cors;
pub mod envelope;
mod fields;
pub mod grpc_web;
pub mod http1;
pub mod openapi;
mod options;
pub mod page;
mod records;
mod service;
#[cfg(test)]
mod testing;
mod timed;
pub mod transcoding;

pub use service::{ResponseFuture, Web, WebError, WebService};
