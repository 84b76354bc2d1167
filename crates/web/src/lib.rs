//! Connect, gRPC-Web and JSON for gRPC services.
//!
//! Most programs use this crate through the feature `web` of `thalweg`.
//!
//! - [`connect`]: [Connect](https://connectrpc.com/docs/protocol), unary by POST and GET, and streams;
//! - [`grpc_web`]: [gRPC-Web], binary and text;
//! - [`transcoding`]: JSON over HTTP by `google.api.http` annotations;
//! - [`openapi`]: OpenAPI documents, and an HTML page that documents services and sends requests to them (`/docs`);
//! - [`cors`]: cross-origin requests of browsers.
//!
//! These modules do no I/O: headers and bytes in, headers and bytes out, for servers and clients. Received data cannot
//! make them panic or allocate more than the configured limits. [`http1`] serves HTTP/1.1 connections, and [`client`]
//! makes calls.
//!
//! A unary Connect call, from the request to the response:
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
//! let head = read_request(&Method::POST, &uri, &headers, &rules).expect("a request").expect("a Connect request");
//! let message = decompress(head.encoding, r#"{"name":"Ada"}"#.into(), 4 << 20)?;
//! assert_eq!((head.codec, &message[..]), ("json", &br#"{"name":"Ada"}"#[..]));
//!
//! // The caller invokes the method at that path. Its result is one of:
//! let none = HeaderMap::new();
//! let response = head.response_format().success(&none, &none, r#"{"greeting":"Hello, Ada"}"#.into());
//! assert_eq!(response.status(), 200);
//! let gone = thalweg_engine::Status::new(thalweg_engine::Code::NotFound, "no such person");
//! assert_eq!(head.response_format().failure(&gone).body(), r#"{"code":"not_found","message":"no such person"}"#);
//! # Ok::<(), thalweg_engine::Status>(())
//! ```
//!
//! [gRPC-Web]: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md

#![forbid(unsafe_code)]

mod base64;
pub mod body;
pub mod client;
mod codec;
pub mod compression;
pub mod connect;
mod content_type;
pub mod cors;
mod deadline;
mod details;
pub mod envelope;
mod fields;
pub mod grpc_web;
pub mod http1;
mod port_fallback;
mod service;
#[cfg(test)]
mod testing;
mod timed;
pub mod transcoding;

pub use thalweg_openapi as openapi;

pub use service::{ResponseFuture, Web, WebError, WebService};
