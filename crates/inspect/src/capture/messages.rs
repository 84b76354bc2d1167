//! Splits DATA of one direction of a call into gRPC messages.

use std::time::Duration;

use crate::capture::call::{CallDirection, Message};

/// Flags and length.
const PREFIX_LEN: usize = 5;

/// Splits DATA into messages.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    prefix: Vec<u8>,
    /// The incomplete message.
    incomplete: Option<IncompleteMessage>,
}

#[derive(Debug)]
struct IncompleteMessage {
    flags: u8,
    len: u64,
    received: u64,
    /// `None` if not kept.
    kept: Option<Vec<u8>>,
}

impl Messages {
    /// Processes DATA. Keeps a message if `direction` has fewer than `messages_max` and `budget` suffices.
    pub(crate) fn push(
        &mut self,
        at: Duration,
        mut data: &[u8],
        direction: &mut CallDirection,
        messages_max: usize,
        budget: &mut usize,
    ) {
        loop {
            let Some(incomplete) = &mut self.incomplete else {
                let wanted = (PREFIX_LEN - self.prefix.len()).min(data.len());
                let (prefix, rest) = data.split_at(wanted);
                self.prefix.extend_from_slice(prefix);
                data = rest;
                let [flags, l0, l1, l2, l3] = self.prefix[..] else { return };
                self.prefix.clear();
                let len = u64::from(u32::from_be_bytes([l0, l1, l2, l3]));
                let kept = (direction.messages.len() < messages_max).then(Vec::new);
                self.incomplete = Some(IncompleteMessage { flags, len, received: 0, kept });
                continue;
            };
            let wanted =
                usize::try_from(incomplete.len - incomplete.received).unwrap_or(usize::MAX).min(data.len());
            let (bytes, rest) = data.split_at(wanted);
            data = rest;
            incomplete.received += bytes.len() as u64;
            direction.message_bytes += bytes.len() as u64;
            if bytes.len() > *budget {
                *budget += incomplete.kept.take().map_or(0, |kept| kept.len());
            }
            if let Some(kept) = &mut incomplete.kept {
                kept.extend_from_slice(bytes);
                *budget -= bytes.len();
            }
            direction.incomplete_bytes = incomplete.received;
            if incomplete.received < incomplete.len {
                return;
            }
            direction.message_count += 1;
            direction.incomplete_bytes = 0;
            direction.first_message_at.get_or_insert(at);
            direction.last_message_at = Some(at);
            let flags = incomplete.flags;
            direction.messages.extend(incomplete.kept.take().map(|bytes| Message { at, flags, bytes }));
            self.incomplete = None;
        }
    }

    /// Returns whether a message is incomplete.
    pub(crate) fn has_incomplete(&self) -> bool {
        self.incomplete.is_some() || !self.prefix.is_empty()
    }

    /// Returns an incomplete message's bytes to the budget.
    pub(crate) fn release(self, budget: &mut usize) {
        *budget += self.incomplete.and_then(|incomplete| incomplete.kept).map_or(0, |kept| kept.len());
    }
}
