//! Bounded decompression by a reader.

use std::io::{self, Read};

/// Returns at most `size_max + 1` bytes decompressed from `len` bytes, and the decoder's unread input from `rest`.
pub(super) fn inflate<D: Read, R>(
    mut decoder: D,
    len: usize,
    size_max: usize,
    rest: impl FnOnce(D) -> R,
) -> io::Result<(Vec<u8>, R)> {
    // An estimate, limited by what has arrived: text shrinks to about a third.
    let mut inflated = Vec::with_capacity(len.saturating_mul(3).min(size_max));
    (&mut decoder).take((size_max as u64).saturating_add(1)).read_to_end(&mut inflated)?;
    Ok((inflated, rest(decoder)))
}
