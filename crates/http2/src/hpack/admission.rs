//! Which fields may push others out of the encoder's dynamic table.

/// How often a field must be missed before it may evict others.
const MISSES_MIN: u8 = 16;

/// After this many misses all counts are halved, so that the table follows the traffic of now. With `MISSES_MIN` it
/// means: a field is admitted when it is more than about one in 64 of the fields that are not in the table.
const MISSES_PER_PERIOD: u32 = 512;

/// Decides whether a field that is not in the table, and that needs others to leave, is worth it.
///
/// While the table has room every field enters. Once it is full, first-in first-out eviction would let a connection
/// that calls hundreds of methods push out the fields that all of them share, again and again, and every insertion
/// makes the cached blocks void. So a field must have been missed often of late. At most one in `MISSES_MIN` misses
/// leads to an insertion, and fields that all blocks share are back after `MISSES_MIN` blocks, should they ever go.
#[derive(Debug)]
pub(super) struct Admission {
    /// Misses by hash. Fields that share a count are admitted too early, no worse.
    counts: [u8; 256],
    misses: u32,
}

impl Admission {
    pub(super) fn new() -> Self {
        Self { counts: [0; 256], misses: 0 }
    }

    /// Notes that a field of this hash is not in the full table, and says whether it may enter.
    pub(super) fn admits(&mut self, field_hash: u32) -> bool {
        self.misses += 1;
        if self.misses == MISSES_PER_PERIOD {
            self.misses = 0;
            for count in &mut self.counts {
                *count /= 2;
            }
        }
        let count = &mut self.counts[(field_hash >> 24) as usize];
        *count += 1;
        let admitted = *count >= MISSES_MIN;
        if admitted {
            *count = 0;
        }
        admitted
    }
}
