//! The patterns with `thalweg-tonic`.

#[path = "faces/tonic.rs"]
mod face;
mod patterns;

#[path = "patterns/beyond_tonic.rs"]
mod beyond_tonic;
