//! JSON as an output format.

use crate::schema::{Key, Kind};
use crate::text::number::{self, NumberBytes, append_elements};
use crate::text::{base64, quoted, time};
use crate::transcode::{Mark, NotText, Sink};

/// Appends JSON to a buffer. With `PRETTY`, each member and element is on a line of its own.
pub(super) struct JsonSink<'o, const PRETTY: bool> {
    json: &'o mut Vec<u8>,
    /// Number of open maps and lists.
    depth: usize,
}

/// An open map or list.
pub(super) struct OpenContainer {
    is_empty: bool,
}

const SPACES: &[u8] = &[b' '; 64];

impl<'o, const PRETTY: bool> JsonSink<'o, PRETTY> {
    pub(super) fn new(json: &'o mut Vec<u8>) -> Self {
        JsonSink { json, depth: 0 }
    }

    #[inline]
    fn begin(&mut self, bracket: u8) -> OpenContainer {
        self.json.push(bracket);
        self.depth += 1;
        OpenContainer { is_empty: true }
    }

    #[inline]
    fn end(&mut self, open: &OpenContainer, bracket: u8) {
        self.depth -= 1;
        if PRETTY && !open.is_empty {
            self.new_line();
        }
        self.json.push(bracket);
    }

    #[inline]
    fn separate(&mut self, open: &mut OpenContainer) {
        if !open.is_empty {
            self.json.push(b',');
        }
        open.is_empty = false;
        if PRETTY {
            self.new_line();
        }
    }

    fn new_line(&mut self) {
        self.json.push(b'\n');
        for _ in 0..self.depth / 32 {
            self.json.extend_from_slice(SPACES);
        }
        self.json.extend_from_slice(&SPACES[..self.depth % 32 * 2]);
    }

    fn colon(&mut self) {
        self.json.extend_from_slice(if PRETTY { b": " } else { b":" });
    }

    /// Appends `text` in quotes; it must not need escaping.
    fn plain_string(&mut self, text: &str) {
        self.json.push(b'"');
        self.json.extend_from_slice(text.as_bytes());
        self.json.push(b'"');
    }
}

impl<const PRETTY: bool> Sink for JsonSink<'_, PRETTY> {
    type OpenContainer = OpenContainer;

    #[inline]
    fn begin_map(&mut self) -> OpenContainer {
        self.begin(b'{')
    }

    #[inline]
    fn name(&mut self, open: &mut OpenContainer, name: &Key) {
        if PRETTY {
            self.separate(open);
            let key = name.member();
            self.json.extend_from_slice(&key[1..key.len() - 1]);
            self.colon();
        } else {
            self.json.extend_from_slice(&name.member()[usize::from(open.is_empty)..]);
            open.is_empty = false;
        }
    }

    #[inline]
    fn text_key(&mut self, open: &mut OpenContainer, key: &[u8]) -> Result<(), NotText> {
        self.separate(open);
        self.text(key)?;
        self.colon();
        Ok(())
    }

    #[inline]
    fn int_key(&mut self, open: &mut OpenContainer, key: i64) {
        self.separate(open);
        self.int64(key);
        self.colon();
    }

    #[inline]
    fn uint_key(&mut self, open: &mut OpenContainer, key: u64) {
        self.separate(open);
        self.uint64(key);
        self.colon();
    }

    fn bool_key(&mut self, open: &mut OpenContainer, key: bool) {
        self.separate(open);
        self.plain_string(if key { "true" } else { "false" });
        self.colon();
    }

    #[inline]
    fn end_map(&mut self, open: OpenContainer) {
        self.end(&open, b'}');
    }

    #[inline]
    fn begin_list(&mut self) -> OpenContainer {
        self.begin(b'[')
    }

    #[inline]
    fn element(&mut self, open: &mut OpenContainer) {
        self.separate(open);
    }

    #[inline]
    fn end_list(&mut self, open: OpenContainer) {
        self.end(&open, b']');
    }

    fn null(&mut self) {
        self.json.extend_from_slice(b"null");
    }

    #[inline]
    fn bool(&mut self, value: bool) {
        number::append(self.json, |into| number::put_bool(value, into));
    }

    #[inline]
    fn int32(&mut self, value: i32) {
        number::append(self.json, |into| put_int32(value, into));
    }

    #[inline]
    fn uint32(&mut self, value: u32) {
        number::append(self.json, |into| number::put_integer(false, value.into(), into));
    }

    #[inline]
    fn int64(&mut self, value: i64) {
        number::append(self.json, |into| put_int64(value, into));
    }

    #[inline]
    fn uint64(&mut self, value: u64) {
        number::append(self.json, |into| number::put_quoted_integer(false, value, into));
    }

    #[inline]
    fn float(&mut self, value: f32) {
        number::append(self.json, |into| number::put_float(value, into));
    }

    #[inline]
    fn double(&mut self, value: f64) {
        number::append(self.json, |into| number::put_double(value, into));
    }

    fn numbers(&mut self, open: &mut OpenContainer, kind: Kind, words: &[u64]) {
        if PRETTY {
            for &word in words {
                self.element(open);
                self.number(kind, word);
            }
            return;
        }
        self.separate(open);
        let json = &mut *self.json;
        match kind {
            Kind::Double => {
                append_elements(words, json, |word, into| number::put_double(f64::from_bits(word), into));
            }
            Kind::Float => {
                append_elements(words, json, |word, into| {
                    number::put_float(f32::from_bits(word as u32), into)
                });
            }
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => {
                append_elements(words, json, |word, into| put_int64(word as i64, into));
            }
            Kind::Uint64 | Kind::Fixed64 => {
                append_elements(words, json, |word, into| number::put_quoted_integer(false, word, into));
            }
            Kind::Bool => append_elements(words, json, |word, into| number::put_bool(word != 0, into)),
            Kind::Sfixed32 => append_elements(words, json, |word, into| put_int32(word as i32, into)),
            // 32-bit values are already extended to 64.
            _ => append_elements(words, json, |word, into| {
                let value = word as i64;
                number::put_integer(value < 0, value.unsigned_abs(), into)
            }),
        }
    }

    #[inline]
    fn text(&mut self, value: &[u8]) -> Result<(), NotText> {
        if quoted::string(value, self.json) { Ok(()) } else { Err(NotText) }
    }

    /// Scans and copies bytes together, and collects elements before appending them.
    fn plain_strings(&mut self, _: &mut OpenContainer, tag: u8, wire: &[u8], len_max: usize) -> usize {
        const SHORT: u8 = 0x80;
        /// Size of an element with its comma and quotes, and of the bytes copied after it.
        const ELEMENT_MAX: usize = 3 + SHORT as usize + 16;
        let mut elements = [0; 512];
        let (mut rest, mut filled) = (wire, 0);
        while !PRETTY
            && let [first, len @ ..SHORT, behind @ ..] = rest
            && *first == tag
        {
            let len = usize::from(*len);
            if filled > elements.len() - ELEMENT_MAX {
                self.json.extend_from_slice(&elements[..filled]);
                filled = 0;
                if self.json.len() > len_max {
                    break;
                }
            }
            let element = &mut elements[filled..][..ELEMENT_MAX];
            element[..2].copy_from_slice(b",\"");
            let mut seen = 0;
            let is_plain = loop {
                let Some(chunk) = behind[seen..].first_chunk() else { break false };
                element[2 + seen..][..chunk.len()].copy_from_slice(chunk);
                let plain = quoted::plain_len::<true>(chunk);
                seen += plain;
                if seen >= len || plain < chunk.len() {
                    break seen >= len;
                }
            };
            if !is_plain {
                break;
            }
            element[2 + len] = b'"';
            filled += len + 3;
            rest = &behind[len..];
        }
        self.json.extend_from_slice(&elements[..filled]);
        wire.len() - rest.len()
    }

    fn bytes(&mut self, value: &[u8]) {
        self.json.push(b'"');
        base64::encode(value, self.json);
        self.json.push(b'"');
    }

    fn timestamp(&mut self, seconds: i64, nanos: i32) -> bool {
        self.json.push(b'"');
        let is_in_range = time::write_timestamp(seconds, nanos, self.json);
        self.json.push(b'"');
        is_in_range
    }

    fn mark(&self) -> Mark {
        Mark { len: self.json.len(), depth: self.depth }
    }

    fn rewind(&mut self, mark: Mark) {
        self.json.truncate(mark.len);
        self.depth = mark.depth;
    }
}

#[inline(always)]
fn put_int32(value: i32, into: &mut NumberBytes) -> usize {
    number::put_integer(value < 0, value.unsigned_abs().into(), into)
}

#[inline(always)]
fn put_int64(value: i64, into: &mut NumberBytes) -> usize {
    number::put_quoted_integer(value < 0, value.unsigned_abs(), into)
}
