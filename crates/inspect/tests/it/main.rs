//! Tests with generated captures, in one binary.

mod calls;
mod connections;
mod random;
mod support;
mod tls;
