//! Code generated from `proto/bookstore.proto`.

#![allow(dead_code, unreachable_pub, clippy::pedantic, reason = "generated code")]

thalweg::include_proto!("bookstore.v1");
