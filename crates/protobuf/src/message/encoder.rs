//! Encoding messages, with or without a reused buffer.

use std::borrow::Cow;

use super::encode::{self, Encoding};
use super::message_ref::{ABSENT, MessageRef};
use super::output::Output;

/// Encodes messages, one at a time, and reuses its buffer.
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    out: Output,
}

impl Encoder {
    /// Creates an encoder with an empty buffer.
    pub fn new() -> Encoder {
        Encoder::default()
    }

    /// Returns the message's wire bytes, borrowed from the encoder's buffer.
    pub fn encode(&mut self, message: MessageRef<'_>) -> &[u8] {
        message.write(&mut self.out);
        self.out.written()
    }
}

impl<'a> MessageRef<'a> {
    /// Returns the fields that are unknown to its type, verbatim from the wire and in order.
    pub fn unknown_fields(&self) -> Cow<'a, [u8]> {
        if self.at == ABSENT {
            return Cow::Borrowed(&[]);
        }
        let mut nodes = self.arena.unknown_nodes(self.at as usize);
        match (nodes.next(), nodes.next()) {
            (None, _) => Cow::Borrowed(&[]),
            (Some((word, 0)), None) => Cow::Borrowed(self.arena.text(self.input, word)),
            _ => Cow::Owned(encode::unknown_bytes(self.arena, self.input, self.at as usize)),
        }
    }

    /// Returns its length on the wire, in bytes.
    pub fn encoded_len(&self) -> usize {
        match self.at {
            ABSENT => 0,
            at => encode::encoded_len(self.schema.pool(), self.arena, self.table(), at as usize),
        }
    }

    /// Appends its wire bytes to `out`. To encode many messages, keep an [`Encoder`].
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(Encoder::new().encode(*self));
    }

    /// Returns its wire bytes.
    pub fn encode_to_vec(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode(&mut out);
        out
    }

    fn write(&self, out: &mut Output) {
        let head = out.clear();
        if self.at != ABSENT {
            let MessageRef { arena, input, .. } = *self;
            let mut encoding = Encoding { pool: self.schema.pool(), arena, input, out: std::mem::take(out) };
            let head = encoding.message(head, self.table(), self.at as usize);
            *out = encoding.out;
            out.finish(head);
        }
    }
}
