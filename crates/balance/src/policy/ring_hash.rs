//! `ring_hash`: calls with the same hash go to the same endpoint (gRFCs A42, A61, A76).

/// Settings of `ring_hash`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RingHashConfig {
    /// Number of entries that the ring should have at least: at most 8 Mi, 1024 by default.
    pub min_ring_size: u64,
    /// Maximum number of entries: at most 8 Mi, 4096 by default. Each endpoint has an entry nevertheless.
    pub max_ring_size: u64,
    /// Name of the header whose value is hashed; `None` by default, where calls have a hash of another source or none.
    pub request_hash_header: Option<String>,
    /// The channel's limit of both sizes, which no service config changes; 4096 by default.
    pub ring_size_cap: u64,
}

/// Maximum of both ring sizes in a service config.
pub const RING_SIZE_MAX: u64 = 8 << 20;

impl RingHashConfig {
    /// Sets the number of entries that the ring should have at least.
    pub fn min_ring_size(mut self, size: u64) -> Self {
        self.min_ring_size = size.min(RING_SIZE_MAX);
        self
    }

    /// Sets the maximum number of entries.
    pub fn max_ring_size(mut self, size: u64) -> Self {
        self.max_ring_size = size.min(RING_SIZE_MAX);
        self
    }

    /// Sets the name of the header whose value is hashed, in lower case.
    pub fn request_hash_header(mut self, name: impl Into<String>) -> Self {
        self.request_hash_header = Some(name.into());
        self
    }

    /// Sets the channel's limit of both sizes.
    pub fn ring_size_cap(mut self, size: u64) -> Self {
        self.ring_size_cap = size.min(RING_SIZE_MAX);
        self
    }
}

impl Default for RingHashConfig {
    fn default() -> Self {
        Self { min_ring_size: 1024, max_ring_size: 4096, request_hash_header: None, ring_size_cap: 4096 }
    }
}
