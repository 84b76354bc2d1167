//! Captures, made packet by packet: one binary for all modules.

mod calls;
mod connections;
mod random;
mod support;
mod tls;
