//! What the command is built for: machines of this one's kind.

pub(crate) const TARGET: &str =
    if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-gnu" } else { "x86_64-unknown-linux-gnu" };
/// The oldest C library that the command runs with: of 2012, as that of Rust's own library.
pub(crate) const GLIBC: &str = "2.17";
