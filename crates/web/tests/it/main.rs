//! Transcoding from requests to wire bytes and back, and the service of all protocols: one binary for all modules.

mod browser;
mod client;
mod compliance;
mod connect_calls;
mod echo;
mod errors;
mod grpc_web_calls;
mod library;
mod openapi;
mod page;
mod page_browser;
mod page_library;
mod random;
mod requests;
mod responses;
mod routes;
mod rules;
mod support;
mod transcoded;
mod transcoded_streams;
mod undescribed;
mod vectors;
mod ways;
