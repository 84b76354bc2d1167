//! The content of bodies and messages: known to both ends, and different everywhere.

use std::sync::LazyLock;

use bytes::Bytes;

use crate::random::Random;

const PATTERN_LEN: usize = 1 << 21;

static PATTERN: LazyLock<Bytes> = LazyLock::new(|| {
    let mut random = Random::new(0x7ea1_7e57);
    (0..PATTERN_LEN).map(|_| random.number() as u8).collect()
});

/// Returns `len` bytes of a body, starting at `from`; `from + len` may be at most 1.5 MiB.
pub(crate) fn slice_of(body: u64, from: usize, len: usize) -> Bytes {
    let start = (body.wrapping_mul(104_729) % (PATTERN_LEN as u64 / 4)) as usize + from;
    PATTERN.slice(start..start + len)
}
