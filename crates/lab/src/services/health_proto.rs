//! `grpc.health.v1`: messages, client and server, generated from `proto/grpc/health/v1`.
#![allow(missing_docs, clippy::pedantic, reason = "generated code")]

thalweg::include_proto!("grpc.health.v1");
