//! Code generated from `proto/shop.proto`.
#![expect(missing_docs, clippy::pedantic, reason = "generated")]

tonic::include_proto!("shop");
