//! Generated messages, client and server of the protocol.
#![allow(missing_docs, clippy::pedantic, reason = "generated code")]

thalweg::include_proto!("grpc.health.v1");
