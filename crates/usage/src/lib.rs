//! Usage patterns of generated clients and servers, as tests.
//!
//! `tests/patterns.rs` and its folder hold the patterns. They are compiled and run with the crate `thalweg`
//! (`tests/native.rs`), with `thalweg-tonic` (`tests/drop_in.rs`), and with tonic (`tests/tonic.rs`). The latter shows
//! that users of tonic can write each pattern.
