//! The patterns with `thalweg-tonic`.

#[path = "apis/tonic.rs"]
mod api;
mod patterns;

#[path = "patterns/beyond_tonic.rs"]
mod beyond_tonic;
