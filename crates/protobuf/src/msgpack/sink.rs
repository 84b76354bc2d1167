//! MessagePack as an output format.

use rmp::encode;

use crate::schema::{Key, Kind};
use crate::text::number;
use crate::text::time::TIMESTAMP_SECONDS;
use crate::transcode::{Mark, NotText, Sink};

/// Appends MessagePack to a buffer.
pub(super) struct MsgpackSink<'o> {
    msgpack: &'o mut Vec<u8>,
}

/// An open map or list. Its header contains the length and is written at the end. One byte is reserved for it, which
/// is enough for up to 15 members.
pub(super) struct OpenContainer {
    head: usize,
    len: u32,
}

/// Writing to a `Vec` cannot fail; headers and numbers have at most 9 bytes.
const FITS: &str = "writing to a Vec does not fail";

impl<'o> MsgpackSink<'o> {
    pub(super) fn new(msgpack: &'o mut Vec<u8>) -> Self {
        MsgpackSink { msgpack }
    }

    fn begin(&mut self) -> OpenContainer {
        self.msgpack.push(0);
        OpenContainer { head: self.msgpack.len() - 1, len: 0 }
    }

    fn end(&mut self, open: &OpenContainer, head: &[u8]) {
        match head {
            [byte] => self.msgpack[open.head] = *byte,
            _ => drop(self.msgpack.splice(open.head..=open.head, head.iter().copied())),
        }
    }
}

/// Size of the longest number.
type NumberBytes = [u8; 9];

/// Appends the output of `put` for each word; `put` returns its length. Space for all words is reserved at once.
#[inline(never)]
fn put_all(words: &[u64], msgpack: &mut Vec<u8>, put: impl Fn(u64, &mut NumberBytes) -> usize) {
    let start = msgpack.len();
    msgpack.resize(start + words.len() * size_of::<NumberBytes>(), 0);
    let mut end = start;
    for &word in words {
        if let Some(into) = msgpack[end..].first_chunk_mut() {
            end += put(word, into);
        }
    }
    msgpack.truncate(end);
}

/// Writes a marker and the lowest `len` bytes of `word`; `len` is 1 to 8.
#[inline(always)]
fn put_marked(marker: u8, word: u64, len: usize, into: &mut NumberBytes) -> usize {
    into[0] = marker;
    into[1..].copy_from_slice(&(word << (64 - 8 * len)).to_be_bytes());
    1 + len
}

/// Writes the shortest form.
#[inline(always)]
fn put_uint(value: u64, into: &mut NumberBytes) -> usize {
    if value < 0x80 {
        into[0] = value as u8;
        return 1;
    }
    let form = form(value);
    put_marked(0xcc + form, value, 1 << form, into)
}

/// Writes like [`put_uint`] if the value is not negative.
#[inline(always)]
fn put_sint(value: i64, into: &mut NumberBytes) -> usize {
    if (-0x20..0x80).contains(&value) {
        into[0] = value as u8;
        return 1;
    }
    // Signed forms need one bit for the sign.
    let is_negative = value < 0;
    let form = form(((value ^ value >> 63) as u64) << u8::from(is_negative));
    put_marked(0xcc + 4 * u8::from(is_negative) + form, value as u64, 1 << form, into)
}

/// Returns the base-2 logarithm of the smallest form, in bytes, that holds `value`.
#[inline(always)]
fn form(value: u64) -> u8 {
    const FORMS: [u8; 8] = [0, 1, 2, 2, 3, 3, 3, 3];
    FORMS[(value | 1).ilog2() as usize / 8]
}

impl Sink for MsgpackSink<'_> {
    type OpenContainer = OpenContainer;

    fn begin_map(&mut self) -> OpenContainer {
        self.begin()
    }

    fn name(&mut self, open: &mut OpenContainer, name: &Key) {
        open.len += 1;
        encode::write_str(self.msgpack, name.text()).expect(FITS);
    }

    fn text_key(&mut self, open: &mut OpenContainer, key: &[u8]) -> Result<(), NotText> {
        open.len += 1;
        self.text(key)
    }

    fn int_key(&mut self, open: &mut OpenContainer, key: i64) {
        open.len += 1;
        self.int64(key);
    }

    fn uint_key(&mut self, open: &mut OpenContainer, key: u64) {
        open.len += 1;
        self.uint64(key);
    }

    fn bool_key(&mut self, open: &mut OpenContainer, key: bool) {
        open.len += 1;
        self.bool(key);
    }

    fn end_map(&mut self, open: OpenContainer) {
        let mut head = Vec::new();
        encode::write_map_len(&mut head, open.len).expect(FITS);
        self.end(&open, &head);
    }

    fn begin_list(&mut self) -> OpenContainer {
        self.begin()
    }

    fn element(&mut self, open: &mut OpenContainer) {
        open.len += 1;
    }

    fn end_list(&mut self, open: OpenContainer) {
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
        number::append(self.msgpack, |into| put_sint(value, into));
    }

    fn uint64(&mut self, value: u64) {
        number::append(self.msgpack, |into| put_uint(value, into));
    }

    fn float(&mut self, value: f32) {
        encode::write_f32(self.msgpack, value).expect(FITS);
    }

    fn double(&mut self, value: f64) {
        encode::write_f64(self.msgpack, value).expect(FITS);
    }

    fn numbers(&mut self, open: &mut OpenContainer, kind: Kind, words: &[u64]) {
        open.len += words.len() as u32;
        let msgpack = &mut *self.msgpack;
        match kind {
            Kind::Double => put_all(words, msgpack, |word, into| put_marked(0xcb, word, 8, into)),
            Kind::Float => put_all(words, msgpack, |word, into| put_marked(0xca, word, 4, into)),
            Kind::Uint32 | Kind::Fixed32 | Kind::Uint64 | Kind::Fixed64 => put_all(words, msgpack, put_uint),
            Kind::Bool => put_all(words, msgpack, |word, into| {
                into[0] = 0xc2 + word as u8;
                1
            }),
            Kind::Sfixed32 => put_all(words, msgpack, |word, into| put_sint(i64::from(word as i32), into)),
            _ => put_all(words, msgpack, |word, into| put_sint(word as i64, into)),
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

    /// Writes the shortest of the three forms.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_the_shortest_form() {
        let edges = (0..64).flat_map(|bit| [1_u64 << bit, (1 << bit) - 1, (1 << bit) + 1]);
        let words: Vec<u64> = edges.clone().chain(edges.map(|edge| !edge)).collect();
        let (mut sints, mut uints, mut expected_sints, mut expected_uints) = (vec![], vec![], vec![], vec![]);
        for &word in &words {
            MsgpackSink::new(&mut sints).int64(word as i64);
            MsgpackSink::new(&mut uints).uint64(word);
            encode::write_sint(&mut expected_sints, word as i64).expect(FITS);
            encode::write_uint(&mut expected_uints, word).expect(FITS);
            assert_eq!(sints, expected_sints, "{}", word as i64);
            assert_eq!(uints, expected_uints, "{word}");
        }
        for (kind, one_by_one) in [(Kind::Sint64, sints), (Kind::Uint64, uints)] {
            let (mut msgpack, mut open) = (vec![], OpenContainer { head: 0, len: 0 });
            MsgpackSink::new(&mut msgpack).numbers(&mut open, kind, &words);
            assert_eq!(msgpack, one_by_one);
            assert_eq!(open.len as usize, words.len());
        }
    }
}
