//! The patterns with tonic itself.

// The name that generated code uses, here for the crate that `thalweg-tonic` stands in for.
extern crate tonic_real as tonic;

#[path = "faces/tonic.rs"]
mod face;
mod patterns;
