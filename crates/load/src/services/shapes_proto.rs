//! `shapes`: messages of the codec study, generated from `shapes.proto` of `crates/messages`, with serde support.
#![allow(missing_docs, clippy::pedantic, reason = "generated code")]

thalweg::include_proto!("shapes");
