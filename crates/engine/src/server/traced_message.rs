//! Reports to a trace how a message was encoded: [`TracedMessage`].

use thalweg_core::chain::Chain;

use crate::encode::Encode;
use crate::measure::ServerTrace;
use crate::status::Status;

/// The message of a unary response.
pub(super) struct TracedMessage<'a, M> {
    message: M,
    trace: &'a ServerTrace,
}

impl<'a, M> TracedMessage<'a, M> {
    pub(super) fn new(message: M, trace: &'a ServerTrace) -> Self {
        Self { message, trace }
    }
}

impl<M: Encode> Encode for TracedMessage<'_, M> {
    fn encoded_len(&self) -> usize {
        self.message.encoded_len()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.message.encode(out);
    }

    fn encode_chained(&self, out: &mut Chain) {
        self.message.encode_chained(out);
    }

    fn may_be_compressed(&self) -> bool {
        self.message.may_be_compressed()
    }

    fn note_encoded(&self, outcome: Result<usize, &Status>) {
        match outcome {
            Ok(wire) => self.trace.sent(self.message.encoded_len(), wire),
            Err(status) => self.trace.note_outcome(Err(status)),
        }
    }
}
