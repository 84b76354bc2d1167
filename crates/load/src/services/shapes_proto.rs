//! `shapes`: the codec study's messages, generated from `shapes.proto` of `crates/messages`, as objects of serde's too.
#![allow(missing_docs, clippy::pedantic, reason = "generated code")]

thalweg::include_proto!("shapes");
