//! Seeded randomness: the same everywhere.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hasher};

/// `splitmix64`, or the bytes of a fuzzer.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
    /// Decide first, two for a number.
    bytes: VecDeque<u8>,
}

impl Random {
    /// Equal seeds give equal numbers.
    pub fn new(seed: u64) -> Random {
        Random { state: seed, bytes: VecDeque::new() }
    }

    /// The numbers are made of `bytes`; when they are used up, of their hash.
    pub fn of_bytes(bytes: &[u8]) -> Random {
        let mut hasher = DefaultHasher::new();
        hasher.write(bytes);
        Random { state: hasher.finish(), bytes: bytes.iter().copied().collect() }
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        if let (Some(high), Some(low)) = (self.bytes.pop_front(), self.bytes.pop_front()) {
            // Spread over all bits, for those who look at the high ones.
            return mix(u64::from(u16::from_be_bytes([high, low])));
        }
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// A number below `bound`; 0 if that is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.number() % (bound as u64).max(1)) as usize
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of them.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// A number from 0 to `max`; each power of two is as likely as the next.
    pub fn size(&mut self, max: usize) -> usize {
        let bits = self.below(usize::BITS as usize - max.leading_zeros() as usize + 1);
        self.below(1 << bits).min(max)
    }

    /// Randomness of its own for one part of a run, so that the parts do not depend on each other's draws.
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
