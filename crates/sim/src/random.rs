//! Seeded, reproducible randomness.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hasher};

/// `splitmix64`, or the bytes of a fuzzer.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
    /// Used first, two bytes per number.
    bytes: VecDeque<u8>,
}

impl Random {
    /// Creates a generator; equal seeds give equal numbers.
    pub fn new(seed: u64) -> Random {
        Random { state: seed, bytes: VecDeque::new() }
    }

    /// Creates a generator that uses `bytes` first, then numbers derived from their hash.
    pub fn of_bytes(bytes: &[u8]) -> Random {
        let mut hasher = DefaultHasher::new();
        hasher.write(bytes);
        Random { state: hasher.finish(), bytes: bytes.iter().copied().collect() }
    }

    /// Returns any number.
    pub fn number(&mut self) -> u64 {
        if let (Some(high), Some(low)) = (self.bytes.pop_front(), self.bytes.pop_front()) {
            // Spread over all bits, for callers that use the high ones.
            return mix(u64::from(u16::from_be_bytes([high, low])));
        }
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// Returns a number below `bound`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.number() % (bound as u64).max(1)) as usize
    }

    /// Returns a number from `low` to `high`, inclusive.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    /// Returns true once in `n` times on average.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// Returns one of the choices.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Returns a number from 0 to `max`; each power of two is equally likely.
    pub fn size(&mut self, max: usize) -> usize {
        let bits = self.below(usize::BITS as usize - max.leading_zeros() as usize + 1);
        self.below(1 << bits).min(max)
    }

    /// Returns an independent generator for one part of a run, so that its draws do not affect other parts.
    pub fn fork(&mut self) -> Random {
        Random::new(self.number())
    }
}

fn mix(number: u64) -> u64 {
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_within_their_bounds() {
        let mut random = Random::new(7);
        let mut seen = [0; 5];
        for _ in 0..10_000 {
            assert!(random.size(1000) <= 1000);
            assert!((3..=9).contains(&random.between(3, 9)));
            seen[random.below(5)] += 1;
        }
        assert!(seen.iter().all(|&count| count > 1500), "{seen:?}");
    }
}
