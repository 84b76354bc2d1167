//! Encoded fixed fields, kept as long as the dynamic table stays as it is.

/// How many blocks are kept: enough for the methods that one connection calls often.
pub(super) const CACHED_BLOCKS_MAX: usize = 64;

/// Blocks longer than this are not kept, so a connection keeps 32 KiB at most. Those of indices are ten bytes long.
pub(super) const CACHED_BLOCK_LEN_MAX: usize = 512;

/// How many places a block may lie in. Identities are given in sequence, so lists made together lie apart.
const WAYS: usize = 2;

/// The encoded bytes of fixed fields by their identity and the table's version.
#[derive(Debug, Default)]
pub(super) struct BlockCache {
    /// Sets of `WAYS`, the newer block of a set first. Empty until the first block is kept.
    blocks: Vec<CachedBlock>,
}

#[derive(Clone, Debug, Default)]
struct CachedBlock {
    id: u64,
    table_version: u64,
    /// Empty where no block is kept.
    bytes: Vec<u8>,
}

impl BlockCache {
    /// The bytes of a block, if they were kept at this version of the table.
    #[inline]
    pub(super) fn get(&self, id: u64, table_version: u64) -> Option<&[u8]> {
        let start = first_way(id);
        self.blocks
            .get(start..start + WAYS)?
            .iter()
            .find(|block| block.id == id && block.table_version == table_version && !block.bytes.is_empty())
            .map(|block| &block.bytes[..])
    }

    /// Keeps the bytes of a block in place of an outdated one, or else the one of its set that was kept first.
    pub(super) fn keep(&mut self, id: u64, table_version: u64, bytes: &[u8]) {
        if bytes.len() > CACHED_BLOCK_LEN_MAX {
            return;
        }
        if self.blocks.is_empty() {
            self.blocks.resize(CACHED_BLOCKS_MAX, CachedBlock::default());
        }
        let start = first_way(id);
        let set = &mut self.blocks[start..start + WAYS];
        if set[0].table_version == table_version && set[0].id != id {
            set.rotate_right(1);
        }
        let block = &mut set[0];
        block.id = id;
        block.table_version = table_version;
        block.bytes.clear();
        block.bytes.extend_from_slice(bytes);
    }
}

fn first_way(id: u64) -> usize {
    id as usize % (CACHED_BLOCKS_MAX / WAYS) * WAYS
}
