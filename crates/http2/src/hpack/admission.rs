//! Which fields may push others out of the encoder's dynamic table.

/// How often a field must be missed before it may evict others.
const MISSES_MIN: u8 = 16;

/// After this many misses all counts are halved, so that the table follows the traffic of now. With `MISSES_MIN` it
/// means: a field is admitted when it is more than about one in 64 of the fields that are not in the table.
const MISSES_PER_PERIOD: u32 = 512;

/// Decides whether a field that is not in the table, and that needs others to leave, is worth it.
///
/// While the table has free space every field enters. Once it is full, first-in first-out eviction would let a
/// connection that calls hundreds of methods push out the fields that all of them share, again and again, and every
/// insertion makes the cached blocks void. So a field must have been missed often of late. At most one in `MISSES_MIN`
/// misses leads to an insertion, and fields that all blocks share are back after `MISSES_MIN` blocks, should they ever
/// go.
#[derive(Debug, Default)]
pub(super) struct Admission {
    /// Made with the first miss, for most tables are never full.
    counts: Option<Box<Counts>>,
}

#[derive(Debug)]
struct Counts {
    /// Misses by hash, counted in one place of each row: fields seldom share both, and the lesser count is nearer.
    rows: [[u8; 256]; 2],
    misses: u32,
}

impl Admission {
    /// Notes that a field of this hash is not in the full table, and says whether it may enter.
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
        let [place, other_place, ..] = field_hash.to_be_bytes();
        let counts = [&mut first[usize::from(place)], &mut second[usize::from(other_place)]];
        let admitted = counts.iter().all(|count| **count + 1 >= MISSES_MIN);
        for count in counts {
            // Once it is in the table a field must earn its place anew, should it go.
            *count = if admitted { 0 } else { (*count + 1).min(MISSES_MIN) };
        }
        admitted
    }
}
