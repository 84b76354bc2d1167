//! The protocol's messages, client and server, as `thalweg-build` makes them.
#![allow(missing_docs, clippy::pedantic, reason = "generated code")]

thalweg::include_proto!("grpc.channelz.v1");
