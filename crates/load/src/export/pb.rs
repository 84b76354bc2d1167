//! OTLP messages and the client of its service.

#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::pedantic,
    rustdoc::all,
    reason = "generated code"
)]

include!(concat!(env!("OUT_DIR"), "/otlp.rs"));
