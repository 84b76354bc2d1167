//! The memory that a server's connections answer into: one of a thread, lent to the connection that is being polled.
//!
//! A connection whose answers have left holds none. What each of thousands had for itself would lie in no cache when
//! its turn comes. A client's connection keeps its own: callers of any thread write to it.

use std::cell::Cell;

use thalweg_http2::{Connection, Output};

use crate::connection::spare;

/// What is kept for the next, in bytes.
const KEPT_MAX: usize = 64 * 1024;

thread_local! {
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Lends the thread's buffer to a connection that has none.
#[inline]
pub(super) fn lend(http2: &mut Connection) {
    let mut buffer = spare::take(&BUFFER);
    http2.lend_output(&mut buffer);
    spare::keep(&BUFFER, buffer, KEPT_MAX);
}

/// Takes the memory back of what has been written.
#[inline]
pub(super) fn take_back(output: &mut Output) {
    spare::keep(&BUFFER, output.give_back(), KEPT_MAX);
}
