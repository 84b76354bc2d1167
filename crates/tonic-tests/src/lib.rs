//! Shared parts of the tests of `thalweg-tonic`: stubs from tonic's generators, a scriptable service, and servers.
//!
//! The tests follow tonic's own suites, file by file. `docs/tonic.md` lists the outcomes that differ.

use std::time::Duration;

pub mod pb;
mod serve;
mod shop;

pub use serve::{RunningServer, Stopped, in_memory, serve, serve_with};
pub use shop::{BakeryService, ShopService};

/// Returns the expected text where it differs: of `thalweg-tonic`, which has tonic's vocabulary, or of the package for
/// `[patch]`.
pub fn by_package<'a>(drop_in: &'a str, patched: &'a str) -> &'a str {
    if env!("CARGO_PKG_NAME").ends_with("-patched") { patched } else { drop_in }
}

/// Creates an order without a note.
pub fn order(item: &str) -> pb::Order {
    pb::Order { item: item.to_owned(), note: Vec::new() }
}

/// Creates an order with a note of `len` equal bytes.
pub fn note(len: usize) -> pb::Order {
    pb::Order { item: String::new(), note: vec![7; len] }
}

/// Awaits a future that a passing test always completes.
///
/// # Panics
///
/// After 60 seconds.
pub async fn within_a_minute<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("completes in time")
}
