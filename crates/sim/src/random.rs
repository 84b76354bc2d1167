//! Seeded randomness: the same everywhere.

/// `splitmix64`.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Equal seeds give equal numbers.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
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
        Random(self.number())
    }
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
