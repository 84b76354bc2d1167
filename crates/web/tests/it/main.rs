//! Tests of transcoding and of the service with all protocols, in one binary.

mod browser;
mod client;
mod compliance;
mod connect_calls;
#[path = "../../../openapi/tests/it/declared.rs"]
mod declared;
mod echo;
mod errors;
mod grpc_web_calls;
mod library;
#[path = "../../../openapi/tests/it/library.rs"]
mod openapi;
mod page_browser;
mod page_library;
mod protocol_selection;
mod random;
mod requests;
mod responses;
mod routes;
mod support;
mod transcoded;
mod transcoded_streams;
mod undescribed;
mod vectors;
