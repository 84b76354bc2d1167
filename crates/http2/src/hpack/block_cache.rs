//! Encoded fixed fields, kept as long as the dynamic table stays as it is.

/// How many blocks are kept at most: enough for the methods that one connection calls often.
pub(super) const CACHED_BLOCKS_MAX: usize = 64;

/// Blocks longer than this are not kept, so a connection keeps 32 KiB at most. Those of indices are ten bytes long.
pub(super) const CACHED_BLOCK_LEN_MAX: usize = 512;

/// How many places a block may lie in. Identities are given in sequence, so lists made together lie apart.
const WAYS: usize = 2;

/// With how many places the cache starts: a server's answers need two.
const CACHED_BLOCKS_MIN: usize = 4;

/// The encoded bytes of fixed fields by their identity and the table's version.
#[derive(Debug, Default)]
pub(super) struct BlockCache {
    /// Sets of `WAYS`, the newer block of a set first; a power of two of them, as many as it took for most blocks to
    /// be kept. Empty until the first block is kept.
    blocks: Vec<CachedBlock>,
}

#[derive(Clone, Debug, Default)]
struct CachedBlock {
    /// 0 where no block is kept.
    id: u64,
    table_version: u64,
    bytes: Vec<u8>,
}

impl BlockCache {
    /// The bytes of a block, if they were kept at this version of the table.
    #[inline]
    pub(super) fn get(&self, id: u64, table_version: u64) -> Option<&[u8]> {
        let start = self.first_way(id);
        self.blocks
            .get(start..start + WAYS)?
            .iter()
            .find(|block| block.id == id && block.table_version == table_version)
            .map(|block| &block.bytes[..])
    }

    /// Keeps the bytes of a block in place of an outdated one, or else the one of its set that was kept first, unless
    /// the cache can grow.
    pub(super) fn keep(&mut self, id: u64, table_version: u64, bytes: &[u8]) {
        if bytes.len() > CACHED_BLOCK_LEN_MAX {
            return;
        }
        while self.blocks.len() < CACHED_BLOCKS_MAX && self.is_set_full(id, table_version) {
            self.grow(table_version);
        }
        let block = self.make_place(id, table_version);
        block.id = id;
        block.table_version = table_version;
        block.bytes.clear();
        block.bytes.extend_from_slice(bytes);
    }

    /// Whether all places of a set are taken by other blocks that are up to date, or there are none.
    fn is_set_full(&self, id: u64, table_version: u64) -> bool {
        let start = self.first_way(id);
        let mut set = self.blocks.iter().skip(start).take(WAYS);
        set.all(|block| block.id != 0 && block.id != id && block.table_version == table_version)
    }

    /// Grows, and forgets what is outdated.
    fn grow(&mut self, table_version: u64) {
        let size = (self.blocks.len() * 2).max(CACHED_BLOCKS_MIN);
        let blocks = std::mem::replace(&mut self.blocks, vec![CachedBlock::default(); size]);
        // The older block of a set first, so that the newer comes to lie before it.
        for block in blocks.into_iter().rev() {
            if block.table_version == table_version && block.id != 0 {
                let place = self.make_place(block.id, table_version);
                *place = block;
            }
        }
    }

    /// The first place of a set, made free: what it held becomes the set's older block if it is up to date.
    fn make_place(&mut self, id: u64, table_version: u64) -> &mut CachedBlock {
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
