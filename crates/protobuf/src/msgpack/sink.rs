//! MessagePack as the output of a message.

use rmp::encode;

use crate::schema::Kind;
use crate::text::time::TIMESTAMP_SECONDS;
use crate::transcode::{Mark, Name, NotText, Sink};

/// Appends to a buffer.
pub(super) struct MsgpackSink<'o> {
    msgpack: &'o mut Vec<u8>,
}

/// A map or list that is open: its head, which says how long it is, is written when that is known. One byte is kept for
/// it, which is enough for up to 15 members.
pub(super) struct Open {
    head: usize,
    len: u32,
}

/// Heads and numbers have at most 9 bytes, and a `Vec` takes them all.
const FITS: &str = "a Vec takes all that is written to it";

impl<'o> MsgpackSink<'o> {
    pub(super) fn new(msgpack: &'o mut Vec<u8>) -> Self {
        MsgpackSink { msgpack }
    }

    fn begin(&mut self) -> Open {
        self.msgpack.push(0);
        Open { head: self.msgpack.len() - 1, len: 0 }
    }

    fn end(&mut self, open: &Open, head: &[u8]) {
        match head {
            [byte] => self.msgpack[open.head] = *byte,
            _ => drop(self.msgpack.splice(open.head..=open.head, head.iter().copied())),
        }
    }
}

impl Sink for MsgpackSink<'_> {
    type Open = Open;

    fn begin_map(&mut self) -> Open {
        self.begin()
    }

    fn name(&mut self, open: &mut Open, name: &Name) {
        open.len += 1;
        encode::write_str(self.msgpack, &name.text).expect(FITS);
    }

    fn text_key(&mut self, open: &mut Open, key: &[u8]) -> Result<(), NotText> {
        open.len += 1;
        self.text(key)
    }

    fn int_key(&mut self, open: &mut Open, key: i64) {
        open.len += 1;
        self.int64(key);
    }

    fn uint_key(&mut self, open: &mut Open, key: u64) {
        open.len += 1;
        self.uint64(key);
    }

    fn bool_key(&mut self, open: &mut Open, key: bool) {
        open.len += 1;
        self.bool(key);
    }

    fn end_map(&mut self, open: Open) {
        let mut head = Vec::new();
        encode::write_map_len(&mut head, open.len).expect(FITS);
        self.end(&open, &head);
    }

    fn begin_list(&mut self) -> Open {
        self.begin()
    }

    fn element(&mut self, open: &mut Open) {
        open.len += 1;
    }

    fn end_list(&mut self, open: Open) {
        let mut head = Vec::new();
        encode::write_array_len(&mut head, open.len).expect(FITS);
        self.end(&open, &head);
    }

    fn null(&mut self) {
        encode::write_nil(self.msgpack).expect(FITS);
    }

    fn bool(&mut self, value: bool) {
        encode::write_bool(self.msgpack, value).expect(FITS);
    }

    fn int32(&mut self, value: i32) {
        self.int64(value.into());
    }

    fn uint32(&mut self, value: u32) {
        self.uint64(value.into());
    }

    fn int64(&mut self, value: i64) {
        encode::write_sint(self.msgpack, value).expect(FITS);
    }

    fn uint64(&mut self, value: u64) {
        encode::write_uint(self.msgpack, value).expect(FITS);
    }

    fn float(&mut self, value: f32) {
        encode::write_f32(self.msgpack, value).expect(FITS);
    }

    fn double(&mut self, value: f64) {
        encode::write_f64(self.msgpack, value).expect(FITS);
    }

    fn numbers(&mut self, open: &mut Open, kind: Kind, words: &[u64]) {
        open.len += words.len() as u32;
        for &word in words {
            self.number(kind, word);
        }
    }

    fn text(&mut self, value: &[u8]) -> Result<(), NotText> {
        let text = std::str::from_utf8(value).map_err(|_| NotText)?;
        encode::write_str(self.msgpack, text).expect(FITS);
        Ok(())
    }

    fn bytes(&mut self, value: &[u8]) {
        encode::write_bin(self.msgpack, value).expect(FITS);
    }

    /// In the shortest of the three forms.
    fn timestamp(&mut self, seconds: i64, nanos: i32) -> bool {
        let Ok(nanos @ 0..1_000_000_000) = u32::try_from(nanos) else { return false };
        if !TIMESTAMP_SECONDS.contains(&seconds) {
            return false;
        }
        let mut put = |bytes: &[u8]| {
            encode::write_ext_meta(self.msgpack, bytes.len() as u32, super::source::TIMESTAMP).expect(FITS);
            self.msgpack.extend_from_slice(bytes);
        };
        match (u32::try_from(seconds), u64::try_from(seconds)) {
            (Ok(seconds), _) if nanos == 0 => put(&seconds.to_be_bytes()),
            (_, Ok(seconds)) if seconds < 1 << 34 => put(&(u64::from(nanos) << 34 | seconds).to_be_bytes()),
            _ => {
                let mut bytes = [0; 12];
                bytes[..4].copy_from_slice(&nanos.to_be_bytes());
                bytes[4..].copy_from_slice(&seconds.to_be_bytes());
                put(&bytes);
            }
        }
        true
    }

    fn mark(&self) -> Mark {
        Mark { len: self.msgpack.len(), depth: 0 }
    }

    fn rewind(&mut self, mark: Mark) {
        self.msgpack.truncate(mark.len);
    }
}
