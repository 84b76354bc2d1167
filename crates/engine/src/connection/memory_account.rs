//! Counters behind the memory accounting of a connection: [`MemoryAccount`]. The logic is in `memory.rs`.

use std::collections::VecDeque;
use std::sync::Arc;

use super::slot::SlotKey;
use crate::memory_budget::{BufferedBytes, MemoryBudget};

/// Memory accounting of a server's connection. A client's connection has no budget and counts nothing.
#[derive(Debug, Default)]
pub(crate) struct MemoryAccount {
    pub(super) budget: Option<Arc<MemoryBudget>>,
    pub(super) charged: BufferedBytes,
    /// Growth of requests and of responses since the last recount, in bytes.
    pub(super) requests_uncounted: usize,
    pub(super) responses_uncounted: usize,
    /// Bytes of the driver's output that the socket has not taken.
    pub(super) writing: usize,
    /// Bytes written so far.
    pub(super) written: u64,
    /// Size of the largest recent response, in bytes.
    pub(super) largest_response: usize,
    /// Lets one postponed call run although the connection is full.
    pub(super) may_exceed: bool,
    /// Calls that wait for room, the oldest first.
    pub(super) waiting: VecDeque<SlotKey>,
}

impl MemoryAccount {
    pub(super) fn new(budget: Option<Arc<MemoryBudget>>) -> Self {
        Self { budget, ..Self::default() }
    }

    /// Returns whether calls wait for room.
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

    /// Lets the size of the largest recent response decay.
    pub(crate) fn age(&mut self) {
        self.largest_response /= 2;
    }
}
