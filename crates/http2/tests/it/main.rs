//! Tests of connections and HPACK through the public API: one binary for all modules.

mod buffer_budget;
mod exchange;
mod faults;
mod garbage;
mod hpack_decoder;
mod hpack_encoder;
mod hpack_peer;
mod hpack_random;
mod hpack_support;
mod hpack_vectors;
mod limits;
mod sending;
mod shutdown;
mod support;
