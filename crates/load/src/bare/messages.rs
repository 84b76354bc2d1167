//! Protocol of the bare echo: messages of a length known to both sides, sent back unchanged.

use std::collections::VecDeque;

use super::wire::{CompletedCall, Wire, WireError};

#[derive(Debug)]
pub(super) struct Messages {
    bytes: usize,
    /// Send times of the messages in flight, oldest first.
    in_flight: VecDeque<u64>,
}

impl Messages {
    pub(super) fn new(bytes: usize) -> Self {
        Self { bytes, in_flight: VecDeque::new() }
    }
}

impl Wire for Messages {
    fn begin(&mut self, _: &mut Vec<u8>) {}

    fn call(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        self.in_flight.push_back(now_ns);
        out.resize(out.len() + self.bytes, 0);
    }

    fn received(
        &mut self,
        bytes: &[u8],
        _: &mut Vec<u8>,
        on_completed: &mut dyn FnMut(CompletedCall),
    ) -> Result<usize, WireError> {
        let whole = bytes.len() / self.bytes;
        for _ in 0..whole {
            let began_ns = self.in_flight.pop_front().ok_or(WireError("received more than was sent"))?;
            on_completed(CompletedCall { began_ns, is_good: true });
        }
        Ok(whole * self.bytes)
    }
}
