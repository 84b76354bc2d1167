//! What `proto/shop.proto` was made to.
#![expect(missing_docs, clippy::pedantic, reason = "generated")]

tonic::include_proto!("shop");
