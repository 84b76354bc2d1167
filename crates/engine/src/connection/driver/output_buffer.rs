//! The memory that a server's connections answer into: one of a thread, lent to the connection that is being polled.
//!
//! A connection whose answers have left holds none. What each of thousands had for itself would lie in no cache when
//! its turn comes. A client's connection keeps its own: callers of any thread write to it.

use std::cell::Cell;

use thalweg_http2::{Connection, Output};

/// What is kept for the next, in bytes.
const KEPT_MAX: usize = 64 * 1024;

thread_local! {
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Lends the thread's buffer to a connection that has none.
#[inline]
pub(super) fn lend(http2: &mut Connection) {
    // During a thread's end the thread-local may be gone: then the connection gets memory of its own.
    let mut buffer = BUFFER.try_with(Cell::take).unwrap_or_default();
    http2.lend_output(&mut buffer);
    keep(buffer);
}

/// Takes the memory back of what has been written.
#[inline]
pub(super) fn take_back(output: &mut Output) {
    let mut buffer = Vec::new();
    output.give_back(&mut buffer);
    keep(buffer);
}

#[inline]
fn keep(buffer: Vec<u8>) {
    if (1..=KEPT_MAX).contains(&buffer.capacity()) {
        let _ = BUFFER.try_with(|kept| kept.set(buffer));
    }
}
