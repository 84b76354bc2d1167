//! Generated messages and client of `grpc.reflection.v1`. Those of `v1alpha` differ only in the package name.
#![allow(missing_docs, clippy::pedantic, reason = "generated code")]

thalweg::include_proto!("grpc.reflection.v1");
