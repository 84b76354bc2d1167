//! A cache of encoded fixed fields, valid while the dynamic table does not change.

/// Maximum number of cached blocks: enough for the methods that a connection calls often.
pub(super) const CACHED_BLOCKS_MAX: usize = 64;

/// Longer blocks are not cached, so a connection caches at most 32 KiB. Blocks of indices are about ten bytes long.
pub(super) const CACHED_BLOCK_LEN_MAX: usize = 512;

/// Number of slots per set. Identities are assigned in sequence, so lists created together are in different sets.
const WAYS: usize = 2;

/// Initial number of slots: a server's responses need two.
const CACHED_BLOCKS_MIN: usize = 4;

/// Encoded fixed fields, by identity and table version.
#[derive(Debug, Default)]
pub(super) struct BlockCache {
    /// Sets of `WAYS` slots with the newer block first. Their number is a power of two that grows until most blocks
    /// fit. Empty until the first block is cached.
    blocks: Vec<CachedBlock>,
}

#[derive(Clone, Debug, Default)]
struct CachedBlock {
    /// 0 if empty.
    id: u64,
    table_version: u64,
    bytes: Vec<u8>,
}

impl BlockCache {
    /// Returns the bytes of a block, if cached at this version of the table.
    #[inline]
    pub(super) fn get(&self, id: u64, table_version: u64) -> Option<&[u8]> {
        let start = self.first_way(id);
        self.blocks
            .get(start..start + WAYS)?
            .iter()
            .find(|block| block.id == id && block.table_version == table_version)
            .map(|block| &block.bytes[..])
    }

    /// Caches a block. Grows if the set is full; at the maximum size, replaces an outdated block or else the older one
    /// of the set.
    pub(super) fn insert(&mut self, id: u64, table_version: u64, bytes: &[u8]) {
        if bytes.len() > CACHED_BLOCK_LEN_MAX {
            return;
        }
        while self.blocks.len() < CACHED_BLOCKS_MAX && self.is_set_full(id, table_version) {
            self.grow(table_version);
        }
        let block = self.free_slot(id, table_version);
        block.id = id;
        block.table_version = table_version;
        block.bytes.clear();
        block.bytes.extend_from_slice(bytes);
    }

    /// Returns whether all slots of a set hold other, current blocks, or there are no slots.
    fn is_set_full(&self, id: u64, table_version: u64) -> bool {
        let start = self.first_way(id);
        let mut set = self.blocks.iter().skip(start).take(WAYS);
        set.all(|block| block.id != 0 && block.id != id && block.table_version == table_version)
    }

    /// Grows and drops outdated blocks.
    fn grow(&mut self, table_version: u64) {
        let size = (self.blocks.len() * 2).max(CACHED_BLOCKS_MIN);
        let blocks = std::mem::replace(&mut self.blocks, vec![CachedBlock::default(); size]);
        // Moves the older block of a set first, so that the newer one precedes it.
        for block in blocks.into_iter().rev() {
            if block.table_version == table_version && block.id != 0 {
                let slot = self.free_slot(block.id, table_version);
                *slot = block;
            }
        }
    }

    /// Frees the first slot of a set. Its block, if current, becomes the set's older one.
    fn free_slot(&mut self, id: u64, table_version: u64) -> &mut CachedBlock {
        let start = self.first_way(id);
        let set = &mut self.blocks[start..start + WAYS];
        if set[0].table_version == table_version && set[0].id != id {
            set.rotate_right(1);
        }
        &mut set[0]
    }

    fn first_way(&self, id: u64) -> usize {
        (id as usize * WAYS) & self.blocks.len().wrapping_sub(1)
    }
}
