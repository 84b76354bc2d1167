//! A fast hash for small per-connection tables that compare what they find, so a collision costs only a comparison.

/// Up to this length, different strings of equal length have different hashes: they fit into one word, and [`mix`] is
/// reversible for it.
pub(crate) const COLLISION_FREE_LEN: usize = 7;

/// Hashes `bytes`; different inputs almost always differ.
#[inline]
pub(crate) fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(MULTIPLIER);
    let (words, tail) = bytes.as_chunks::<8>();
    for word in words {
        hash = mix(hash, u64::from_le_bytes(*word));
    }
    // Reads the tail as one word. In longer strings it overlaps earlier bytes, which avoids a copy.
    let last = match (bytes.last_chunk::<8>(), bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (Some(word), ..) => u64::from_le_bytes(*word),
        (None, Some(first), Some(last)) => {
            u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last))
        }
        _ => tail.iter().fold(0, |word, &octet| word << 8 | u64::from(octet)),
    };
    mix(hash, last)
}

/// 2^64 divided by the golden ratio.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(hash: u64, word: u64) -> u64 {
    let product = (hash ^ word).wrapping_mul(MULTIPLIER);
    product ^ (product >> 32)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// Varies every octet at every position.
    #[test]
    fn short_strings_do_not_collide() {
        for len in 0..=COLLISION_FREE_LEN {
            let mut by_hash = HashMap::new();
            for (one, other) in (0..len).map(|one| (one, len - 1)) {
                for octets in 0..=u16::MAX {
                    let mut bytes = vec![b'a'; len];
                    [bytes[one], bytes[other]] = octets.to_be_bytes();
                    let hash = hash(2, &bytes);
                    assert_eq!(*by_hash.entry(hash).or_insert_with(|| bytes.clone()), bytes);
                }
            }
        }
    }
}
