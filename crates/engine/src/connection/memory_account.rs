//! What is known of the memory that a connection holds for its peer: [`MemoryAccount`]. `memory.rs` keeps it.

use std::collections::VecDeque;
use std::sync::Arc;

use super::slot::SlotKey;
use crate::memory_budget::{Held, MemoryBudget};

/// What a server's connection holds for its peer. A client's has no budget, and counts nothing.
#[derive(Debug, Default)]
pub(crate) struct MemoryAccount {
    pub(super) budget: Option<Arc<MemoryBudget>>,
    pub(super) charged: Held,
    /// By how much requests and responses may have grown since they were counted, in bytes.
    pub(super) requests_uncounted: usize,
    pub(super) responses_uncounted: usize,
    /// What the driver has taken to write and the socket does not take, in bytes.
    pub(super) writing: usize,
    /// How much the socket, or the protocol that has the connection, has taken so far, in bytes.
    pub(super) written: u64,
    /// Of late, in bytes.
    pub(super) largest_response: usize,
    /// One of the calls that were postponed may run although the connection is full.
    pub(super) may_exceed: bool,
    /// Calls that may not go on before there is room.
    pub(super) waiting: VecDeque<SlotKey>,
}

impl MemoryAccount {
    pub(super) fn new(budget: Option<Arc<MemoryBudget>>) -> Self {
        Self { budget, ..Self::default() }
    }

    /// Whether calls wait for room.
    #[inline]
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(crate) fn writing(&self) -> usize {
        self.writing
    }

    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Forgets by and by how large responses have been.
    pub(crate) fn age(&mut self) {
        self.largest_response /= 2;
    }
}
