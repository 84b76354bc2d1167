//! `grpc.testing`: messages, clients and servers, generated from `proto/grpc/testing`.
#![allow(missing_docs, clippy::pedantic, reason = "generated code")]

thalweg::include_proto!("grpc.testing");

/// Descriptors including imports: an encoded `google.protobuf.FileDescriptorSet`.
pub const DESCRIPTORS: &[u8] = thalweg::include_file_descriptor_set!("testing");
