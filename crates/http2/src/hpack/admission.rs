//! Decides which fields may evict others from the encoder's dynamic table.

/// Number of misses before a field may evict others.
const MISSES_MIN: u8 = 16;

/// Number of misses after which all counts are halved, so that the table follows current traffic. Together with
/// `MISSES_MIN`, a field is admitted if it makes up more than about one in 64 of the fields not in the table.
const MISSES_PER_PERIOD: u32 = 512;

/// Decides whether to insert a field that is not in the table and would evict others.
///
/// While the table has free space, every field enters. In a full table, plain first-in first-out eviction would let a
/// connection that calls hundreds of methods keep evicting the fields that all of them share. Moreover, every insertion
/// invalidates the cached blocks. So a field must have been missed often recently. At most one in `MISSES_MIN` misses
/// leads to an insertion. Fields that all blocks share, if ever evicted, return after `MISSES_MIN` blocks.
#[derive(Debug, Default)]
pub(super) struct Admission {
    /// Allocated on the first miss, because most tables are never full.
    counts: Option<Box<Counts>>,
}

#[derive(Debug)]
struct Counts {
    /// Misses by hash, counted at one index per row: fields rarely share both, and the lower count is more accurate.
    rows: [[u8; 256]; 2],
    misses: u32,
}

impl Admission {
    /// Counts a miss of a field with this hash in the full table, and returns whether it may enter.
    pub(super) fn admits(&mut self, field_hash: u32) -> bool {
        let Counts { rows, misses } =
            &mut **self.counts.get_or_insert_with(|| Box::new(Counts { rows: [[0; 256]; 2], misses: 0 }));
        *misses += 1;
        if *misses == MISSES_PER_PERIOD {
            *misses = 0;
            for count in rows.as_flattened_mut() {
                *count /= 2;
            }
        }
        let [first, second] = rows;
        let [first_index, second_index, ..] = field_hash.to_be_bytes();
        let counts = [&mut first[usize::from(first_index)], &mut second[usize::from(second_index)]];
        let admitted = counts.iter().all(|count| **count + 1 >= MISSES_MIN);
        for count in counts {
            // An inserted field starts from zero if it is evicted later.
            *count = if admitted { 0 } else { (*count + 1).min(MISSES_MIN) };
        }
        admitted
    }
}
