//! Buffers in which large messages were gathered, kept for the next ones.
//!
//! A large buffer that is freed goes back to the system, and the next one comes as pages that have to be zeroed and
//! mapped one by one, which costs about as much as moving the message. What is kept here was filled by a message once:
//! a length that is merely declared still allocates nothing.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

/// Smaller buffers come from the allocator's own stock.
const LEN_MIN: usize = 64 * 1024;
/// How much is kept in all, in bytes.
const KEPT_BYTES_MAX: usize = 16 << 20;

/// The oldest first.
static KEPT: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// An empty buffer for `len` bytes that is not much too large, if there is one.
pub(crate) fn take(len: usize) -> Option<Vec<u8>> {
    if len < LEN_MIN {
        return None;
    }
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let fitting = kept.iter().rposition(|buffer| (len..=2 * len).contains(&buffer.capacity()))?;
    Some(kept.remove(fitting))
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
    let kept = std::mem::take(&mut *KEPT.lock().unwrap_or_else(PoisonError::into_inner));
    drop(kept);
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
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let mut bytes = kept.iter().map(Vec::capacity).sum::<usize>() + buffer.capacity();
    let mut too_old = 0;
    while bytes > KEPT_BYTES_MAX {
        // `buffer` alone is not too much: before all the others are gone this has ended.
        bytes -= kept[too_old].capacity();
        too_old += 1;
    }
    let freed: Vec<_> = kept.drain(..too_old).collect();
    kept.push(buffer);
    drop(kept);
    drop(freed);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stock belongs to the process, so other tests use it, too: what is checked holds whatever they do.
    #[test]
    fn buffers_come_back_and_are_bounded() {
        assert!(take(100).is_none());
        for len in [LEN_MIN, 100_000, 3 << 20, KEPT_BYTES_MAX, KEPT_BYTES_MAX + 1].repeat(20) {
            let bytes = lend(vec![7; len]);
            let part = bytes.slice(1..3);
            drop(bytes);
            assert_eq!(&part[..], [7, 7]);
            drop(part);
            let kept: usize = KEPT.lock().unwrap().iter().map(Vec::capacity).sum();
            assert!(kept <= KEPT_BYTES_MAX, "{kept} bytes are kept");
            if let Some(buffer) = take(len) {
                assert!(buffer.is_empty() && (len..=2 * len).contains(&buffer.capacity()));
            }
        }
    }
}
