//! Buffers in which large messages were gathered, kept for the next ones.
//!
//! A large buffer that is freed goes back to the system, and the next one comes as pages that have to be zeroed and
//! mapped one by one, which costs about as much as moving the message. What is kept here was filled by a message once:
//! a length that is merely declared still allocates nothing.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

/// Smaller buffers come from the allocator's own stock.
const LEN_MIN: usize = 64 * 1024;
/// How much is kept in all, in bytes: what sixteen messages of 4 MiB take, on their way at the same time. It was all in
/// use at once before, and is freed when a connection falls idle.
const KEPT_BYTES_MAX: usize = 64 << 20;
/// Spare capacity up to this many bytes is cheaper to keep than to return.
const SPARE_MAX: usize = 4 * 1024;

static STOCK: Mutex<Stock> = Mutex::new(Stock { buffers: Vec::new(), bytes: 0 });

#[derive(Debug, Default)]
struct Stock {
    /// The oldest first.
    buffers: Vec<Vec<u8>>,
    /// Their capacities.
    bytes: usize,
}

fn stock() -> MutexGuard<'static, Stock> {
    STOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Converts a buffer to its bytes. Returns spare capacity of more than 4 KiB and a sixteenth of its length to the
/// allocator, because memory budgets count lengths.
pub fn compact(mut buffer: Vec<u8>) -> Bytes {
    let spare = buffer.capacity() - buffer.len();
    if spare > SPARE_MAX && spare > buffer.len() / 16 {
        buffer.shrink_to_fit();
    }
    Bytes::from(buffer)
}

/// An empty buffer for `len` bytes that is not much too large, if there is one.
pub(crate) fn take(len: usize) -> Option<Vec<u8>> {
    if len < LEN_MIN {
        return None;
    }
    let mut stock = stock();
    // The one that was used last is the likeliest to be in the processor's cache.
    let fitting = stock.buffers.iter().rposition(|buffer| (len..=2 * len).contains(&buffer.capacity()))?;
    let buffer = stock.buffers.remove(fitting);
    stock.bytes -= buffer.capacity();
    Some(buffer)
}

/// The bytes of `buffer`, which comes back here when the last who refers to them is gone.
pub(crate) fn lend(buffer: Vec<u8>) -> Bytes {
    if fits(&buffer) { Bytes::from_owner(Lent(buffer)) } else { Bytes::from(buffer) }
}

/// The bytes of `buffer`, which are few, without it where it is large: then it is kept.
pub(crate) fn copy(buffer: Vec<u8>) -> Bytes {
    if buffer.capacity() < LEN_MIN {
        return Bytes::from(buffer);
    }
    let bytes = Bytes::copy_from_slice(&buffer);
    if fits(&buffer) {
        keep(buffer);
    }
    bytes
}

/// Whether it is of a size that is kept.
fn fits(buffer: &Vec<u8>) -> bool {
    (LEN_MIN..=KEPT_BYTES_MAX).contains(&buffer.capacity())
}

/// Frees all that is kept.
pub(crate) fn shrink() {
    let stock = std::mem::take(&mut *stock());
    drop(stock);
}

struct Lent(Vec<u8>);

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        keep(std::mem::take(&mut self.0));
    }
}

/// Keeps one that [`fits`].
fn keep(mut buffer: Vec<u8>) {
    buffer.clear();
    let mut stock = stock();
    stock.bytes += buffer.capacity();
    let mut too_old = 0;
    while stock.bytes > KEPT_BYTES_MAX {
        // `buffer` alone is not too much: before all the others are gone this has ended.
        stock.bytes -= stock.buffers[too_old].capacity();
        too_old += 1;
    }
    let freed: Vec<_> = stock.buffers.drain(..too_old).collect();
    stock.buffers.push(buffer);
    drop(stock);
    drop(freed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spare_capacity_is_returned_where_it_is_large() {
        let capacity_after = |len: usize, spare: usize| {
            let mut buffer = Vec::with_capacity(len + spare);
            buffer.resize(len, 7);
            let bytes = compact(buffer);
            assert!(bytes.len() == len && bytes.iter().all(|byte| *byte == 7));
            Vec::from(bytes).capacity()
        };
        assert_eq!(capacity_after(100, SPARE_MAX), 100 + SPARE_MAX);
        assert_eq!(capacity_after(1 << 20, 1 << 16), (1 << 20) + (1 << 16));
        assert_eq!(capacity_after(100, SPARE_MAX + 1), 100);
        assert_eq!(capacity_after(1 << 20, 1 << 17), 1 << 20);
    }

    /// The stock belongs to the process, so other tests use it, too: what is checked holds whatever they do.
    #[test]
    fn buffers_come_back_and_are_bounded() {
        assert!(take(100).is_none());
        for len in [LEN_MIN, 100_000, 3 << 20, KEPT_BYTES_MAX, KEPT_BYTES_MAX + 1].repeat(20) {
            // Only the first bytes: to touch gigabytes takes its time.
            let mut buffer = Vec::with_capacity(len);
            buffer.extend_from_slice(&[7; 4]);
            let bytes = lend(buffer);
            let part = bytes.slice(1..3);
            drop(bytes);
            assert_eq!(&part[..], [7, 7]);
            drop(part);
            let stock = stock();
            let kept: usize = stock.buffers.iter().map(Vec::capacity).sum();
            assert!(kept == stock.bytes && kept <= KEPT_BYTES_MAX, "{kept} bytes are kept");
            drop(stock);
            if let Some(buffer) = take(len) {
                assert!(buffer.is_empty() && (len..=2 * len).contains(&buffer.capacity()));
            }
        }
    }
}
