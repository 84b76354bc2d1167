//! Output memory of a server's connections: one buffer per thread, lent to the connection that is being polled.
//!
//! A connection holds no buffer once its responses have left: with thousands of connections, buffers of their own
//! would never be in the cache. A client's connection keeps its own, since callers on any thread write to it.

use std::cell::Cell;

use thalweg_http2::{Connection, Output};

use crate::connection::buffer_pool;

/// Maximum capacity kept for the next connection, in bytes.
const CAPACITY_MAX: usize = 64 * 1024;

thread_local! {
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Lends the thread's buffer to a connection without one.
#[inline]
pub(super) fn lend(http2: &mut Connection) {
    let mut buffer = buffer_pool::take(&BUFFER);
    http2.adopt_output_buffer(&mut buffer);
    buffer_pool::put(&BUFFER, buffer, CAPACITY_MAX);
}

/// Takes back the memory of written output.
#[inline]
pub(super) fn take_back(output: &mut Output) {
    buffer_pool::put(&BUFFER, output.release_buffer(), CAPACITY_MAX);
}
