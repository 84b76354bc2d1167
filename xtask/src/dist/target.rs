//! What the command is built for.

pub(crate) const TARGET: &str = "x86_64-unknown-linux-gnu";
/// The oldest C library that the command runs with: of 2012, as that of Rust's own library.
pub(crate) const GLIBC: &str = "2.17";
