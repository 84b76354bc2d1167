//! What the tests of `thalweg-tonic` share: stubs that tonic's generators made, a service to script, and servers.
//!
//! The tests follow tonic's own suites, file by file. `docs/tonic.md` lists the outcomes that differ.

use std::time::Duration;

pub mod pb;
mod serve;
mod shop;

pub use serve::{Running, Stopped, in_memory, serve, serve_with};
pub use shop::{BakeryService, ShopService};

/// An order without a note.
pub fn order(item: &str) -> pb::Order {
    pb::Order { item: item.to_owned(), note: Vec::new() }
}

/// An order with a note of so many bytes that are all the same.
pub fn note(len: usize) -> pb::Order {
    pb::Order { item: String::new(), note: vec![7; len] }
}

/// What is sure to come, if a test does not fail.
///
/// # Panics
/// When it does not.
pub async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("it comes")
}
