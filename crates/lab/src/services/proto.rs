//! `grpc.testing`: messages, clients and servers, generated from `proto/grpc/testing`.
#![allow(missing_docs, clippy::pedantic, reason = "generated code")]

thalweg::include_proto!("grpc.testing");
