//! Code generated from `proto/chat.proto`.

#![allow(dead_code, unreachable_pub, clippy::pedantic, reason = "generated code")]

thalweg::include_proto!("chat.v1");
