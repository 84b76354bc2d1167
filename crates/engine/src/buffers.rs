//! Pool of large message buffers.
//!
//! The allocator returns a freed large buffer to the system. Pages of the next one have to be zeroed and mapped one by
//! one, which costs about as much as moving the message. A pooled buffer has been filled by a message before, so a
//! length that is merely declared still allocates nothing.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

/// Smaller buffers are left to the allocator.
const LEN_MIN: usize = 64 * 1024;
/// Pool limit in bytes: sixteen messages of 4 MiB in flight at the same time. The pool is freed when a connection
/// becomes idle.
const POOL_BYTES_MAX: usize = 64 << 20;
/// Spare capacity up to this many bytes is cheaper to keep than to return.
const UNUSED_MAX: usize = 4 * 1024;

static POOL: Mutex<Pool> = Mutex::new(Pool { buffers: Vec::new(), bytes: 0 });

#[derive(Debug, Default)]
struct Pool {
    /// Oldest first.
    buffers: Vec<Vec<u8>>,
    /// Sum of their capacities.
    bytes: usize,
}

fn pool() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Converts a buffer to its bytes. Returns spare capacity of more than 4 KiB and a sixteenth of its length to the
/// allocator, because memory budgets count lengths.
pub fn compact(mut buffer: Vec<u8>) -> Bytes {
    let unused = buffer.capacity() - buffer.len();
    if unused > UNUSED_MAX && unused > buffer.len() / 16 {
        buffer.shrink_to_fit();
    }
    Bytes::from(buffer)
}

/// Takes an empty buffer with a capacity of `len` to `2 * len` bytes, if the pool has one.
pub(crate) fn take(len: usize) -> Option<Vec<u8>> {
    if len < LEN_MIN {
        return None;
    }
    let mut pool = pool();
    // The most recently used buffer is the most likely to be in the processor's cache.
    let fitting = pool.buffers.iter().rposition(|buffer| (len..=2 * len).contains(&buffer.capacity()))?;
    let buffer = pool.buffers.remove(fitting);
    pool.bytes -= buffer.capacity();
    Some(buffer)
}

/// Converts `buffer` to `Bytes` that return it to the pool when the last reference is dropped.
pub(crate) fn pooled(buffer: Vec<u8>) -> Bytes {
    if fits(&buffer) { Bytes::from_owner(PooledBuffer(buffer)) } else { Bytes::from(buffer) }
}

/// Converts a short `buffer` to `Bytes`. A large buffer is copied from and returned to the pool.
pub(crate) fn copy(buffer: Vec<u8>) -> Bytes {
    if buffer.capacity() < LEN_MIN {
        return Bytes::from(buffer);
    }
    let bytes = Bytes::copy_from_slice(&buffer);
    if fits(&buffer) {
        put(buffer);
    }
    bytes
}

/// Returns whether the pool accepts a buffer of this capacity.
fn fits(buffer: &Vec<u8>) -> bool {
    (LEN_MIN..=POOL_BYTES_MAX).contains(&buffer.capacity())
}

/// Frees the whole pool.
pub(crate) fn shrink() {
    let pool = std::mem::take(&mut *pool());
    drop(pool);
}

struct PooledBuffer(Vec<u8>);

impl AsRef<[u8]> for PooledBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        put(std::mem::take(&mut self.0));
    }
}

/// Returns a buffer that [`fits`] to the pool and frees the oldest beyond the limit.
fn put(mut buffer: Vec<u8>) {
    buffer.clear();
    let mut pool = pool();
    pool.bytes += buffer.capacity();
    let mut too_old = 0;
    while pool.bytes > POOL_BYTES_MAX {
        // `buffer` alone is within the limit, so the loop ends before all others are freed.
        pool.bytes -= pool.buffers[too_old].capacity();
        too_old += 1;
    }
    let freed: Vec<_> = pool.buffers.drain(..too_old).collect();
    pool.buffers.push(buffer);
    drop(pool);
    drop(freed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_unused_capacity_is_returned() {
        let capacity_after = |len: usize, unused: usize| {
            let mut buffer = Vec::with_capacity(len + unused);
            buffer.resize(len, 7);
            let bytes = compact(buffer);
            assert!(bytes.len() == len && bytes.iter().all(|byte| *byte == 7));
            Vec::from(bytes).capacity()
        };
        assert_eq!(capacity_after(100, UNUSED_MAX), 100 + UNUSED_MAX);
        assert_eq!(capacity_after(1 << 20, 1 << 16), (1 << 20) + (1 << 16));
        assert_eq!(capacity_after(100, UNUSED_MAX + 1), 100);
        assert_eq!(capacity_after(1 << 20, 1 << 17), 1 << 20);
    }

    /// Other tests use the process-wide pool too, so the assertions hold whatever they do.
    #[test]
    fn buffers_are_reused_up_to_the_limit() {
        assert!(take(100).is_none());
        for len in [LEN_MIN, 100_000, 3 << 20, POOL_BYTES_MAX, POOL_BYTES_MAX + 1].repeat(20) {
            // Only the first bytes are written: touching gigabytes is slow.
            let mut buffer = Vec::with_capacity(len);
            buffer.extend_from_slice(&[7; 4]);
            let bytes = pooled(buffer);
            let part = bytes.slice(1..3);
            drop(bytes);
            assert_eq!(&part[..], [7, 7]);
            drop(part);
            let pool = pool();
            let kept: usize = pool.buffers.iter().map(Vec::capacity).sum();
            assert!(kept == pool.bytes && kept <= POOL_BYTES_MAX, "{kept} bytes are kept");
            drop(pool);
            if let Some(buffer) = take(len) {
                assert!(buffer.is_empty() && (len..=2 * len).contains(&buffer.capacity()));
            }
        }
    }
}
