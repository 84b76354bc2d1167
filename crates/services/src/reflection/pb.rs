//! The messages of `grpc.reflection.v1`, and its client, as `thalweg-build` makes them. Those of `v1alpha` are the same
//! but for the name of their package.
#![allow(missing_docs, clippy::pedantic, reason = "generated code")]

thalweg::include_proto!("grpc.reflection.v1");
