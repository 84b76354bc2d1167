//! The patterns with tonic itself.

// Generated code expects this name, here for the crate that `thalweg-tonic` replaces.
extern crate tonic_real as tonic;

#[path = "apis/tonic.rs"]
mod api;
mod patterns;
