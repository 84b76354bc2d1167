//! `grpc.testing`: messages, clients and servers, generated from `proto/grpc/testing`.
#![allow(missing_docs, clippy::pedantic, reason = "generated code")]

include!(concat!(env!("OUT_DIR"), "/grpc.testing.rs"));
