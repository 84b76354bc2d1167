//! OTLP's messages, and a server of its service.

#![allow(dead_code, unreachable_pub, clippy::all, clippy::pedantic, reason = "generated code")]

include!(concat!(env!("OUT_DIR"), "/otlp.rs"));
