//! Splits DATA of one direction of a call into gRPC messages.

use std::time::Duration;

use crate::capture::call::{Message, Side};

/// Flags and length.
const PREFIX_LEN: usize = 5;

/// Splits DATA into messages.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    prefix: Vec<u8>,
    /// The incomplete message.
    coming: Option<Coming>,
}

#[derive(Debug)]
struct Coming {
    flags: u8,
    len: u64,
    come: u64,
    /// `None` if not kept.
    kept: Option<Vec<u8>>,
}

impl Messages {
    /// Processes DATA. Keeps a message if `side` has fewer than `messages_max` and `budget` suffices.
    pub(crate) fn take(
        &mut self,
        at: Duration,
        mut data: &[u8],
        side: &mut Side,
        messages_max: usize,
        budget: &mut usize,
    ) {
        loop {
            let Some(coming) = &mut self.coming else {
                let wanted = (PREFIX_LEN - self.prefix.len()).min(data.len());
                let (prefix, rest) = data.split_at(wanted);
                self.prefix.extend_from_slice(prefix);
                data = rest;
                let [flags, l0, l1, l2, l3] = self.prefix[..] else { return };
                self.prefix.clear();
                let len = u64::from(u32::from_be_bytes([l0, l1, l2, l3]));
                let kept = (side.messages.len() < messages_max).then(Vec::new);
                self.coming = Some(Coming { flags, len, come: 0, kept });
                continue;
            };
            let wanted = usize::try_from(coming.len - coming.come).unwrap_or(usize::MAX).min(data.len());
            let (bytes, rest) = data.split_at(wanted);
            data = rest;
            coming.come += bytes.len() as u64;
            side.message_bytes += bytes.len() as u64;
            if bytes.len() > *budget {
                *budget += coming.kept.take().map_or(0, |kept| kept.len());
            }
            if let Some(kept) = &mut coming.kept {
                kept.extend_from_slice(bytes);
                *budget -= bytes.len();
            }
            side.cut_off = coming.come;
            if coming.come < coming.len {
                return;
            }
            side.message_count += 1;
            side.cut_off = 0;
            side.first_message_at.get_or_insert(at);
            side.last_message_at = Some(at);
            let flags = coming.flags;
            side.messages.extend(coming.kept.take().map(|bytes| Message { at, flags, bytes }));
            self.coming = None;
        }
    }

    /// Returns whether a message is incomplete.
    pub(crate) fn is_within_one(&self) -> bool {
        self.coming.is_some() || !self.prefix.is_empty()
    }

    /// Returns an incomplete message's bytes to the budget.
    pub(crate) fn give_back(self, budget: &mut usize) {
        *budget += self.coming.and_then(|coming| coming.kept).map_or(0, |kept| kept.len());
    }
}
