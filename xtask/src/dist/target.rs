//! The target of released commands: this machine's architecture.

pub(crate) const TARGET: &str =
    if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-gnu" } else { "x86_64-unknown-linux-gnu" };
/// The oldest supported C library, of 2012; Rust's standard library has the same minimum.
pub(crate) const GLIBC: &str = "2.17";
