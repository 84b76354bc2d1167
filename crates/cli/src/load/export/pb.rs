//! OTLP's messages, and a client of its service.

#![allow(dead_code, unreachable_pub, clippy::pedantic, clippy::enum_variant_names, reason = "generated code")]

include!(concat!(env!("OUT_DIR"), "/otlp.rs"));
