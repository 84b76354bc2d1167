//! Decoded heads that are met again: a header block that meets an unchanged HPACK table again is not decoded
//! again.
//!
//! Peers send the same few blocks all the time: the request head of a method, the response head, the trailers
//! of a call that went well. Once such a block is all indices, equal bytes at an equal version of the table
//! decode equally.
//!
//! Requests mostly begin with the same indices too where they differ in the end: the time that is left to each call is
//! another. What they begin with is kept as if it were a head of its own, and only what comes behind it is decoded.

use std::mem;

use crate::error::{ConnectionError, ErrorCode};
use crate::hash::{TOLD_APART_LEN, hash};
use crate::headers::{Begin, Head, HeadKind, validate, validate_behind};
use crate::hpack::{DecodeOutcome, Decoder};
use crate::violation::Violation;

/// How many heads are kept.
const HEADS_MAX: usize = 8;

/// The longest block whose head is kept, in bytes: longer ones hold literals, and those differ each time.
const BLOCK_LEN_MAX: usize = 256;

/// The largest head that is kept, in bytes as HPACK counts them. 8 × (2 KiB + 256 B) is what a peer can make
/// us hold.
const HEAD_SIZE_MAX: usize = 2 << 10;

/// What requests begin with has at least so many fields: a method, a scheme, a path, and another.
const BEGIN_LEN_MIN: usize = 4;

/// Lists of so many bytes, as HPACK counts them, are decoded at once: some hundred microseconds. A read of 128 KiB can
/// name thirty times as much by indices of the table.
const DECODED_AT_ONCE: usize = 64 << 10;

const INVALID: ConnectionError =
    ConnectionError::local(ErrorCode::CompressionError, Violation::HeaderBlockInvalid);

/// What became of a header block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decoded {
    /// See [`HeadCache::current`].
    Valid,
    /// It is valid, and [`HeadCache::take_much`] is to be asked.
    ValidAfterMuch,
    Malformed(Violation),
    /// Larger than the list that is accepted.
    TooLarge,
}

/// The head that was decoded last, and a few that may come again.
#[derive(Debug, Default)]
pub(crate) struct HeadCache {
    /// Of each entry, side by side so that looking for one touches one cache line.
    fingerprints: [u64; HEADS_MAX],
    entries: Vec<Entry>,
    /// Index of the current head among the entries; `None`: it is `fresh`.
    current: Option<usize>,
    /// Index of trailers that were found behind the current head, in the same input.
    behind: Option<usize>,
    /// The last head that was decoded, if it was not worth keeping.
    fresh: Head,
    /// Where the search for an entry to replace goes on.
    hand: usize,
    last_id: u64,
    /// Bytes of lists that were decoded, and not found, since [`take_much`](Self::take_much) last said so.
    decoded: usize,
}

#[derive(Debug)]
struct Entry {
    /// [`Decoder::version`] at which the block decodes to the head.
    version: u64,
    kind: HeadKind,
    block: Vec<u8>,
    head: Head,
    /// Met again since the hand last passed. Keeps the heads of all calls from being driven out by those of
    /// single ones.
    used: bool,
}

impl Entry {
    /// Whether it is of this block, given that the fingerprints are equal.
    #[inline]
    fn is_of(&self, version: u64, kind: HeadKind, block: &[u8]) -> bool {
        self.version == version
            && self.kind == kind
            && self.block.len() == block.len()
            && (block.len() <= TOLD_APART_LEN || self.block == block)
    }
}

impl HeadCache {
    /// The head that the last [`decode`](Self::decode) gave.
    #[inline]
    pub(crate) fn current(&self) -> &Head {
        match self.current {
            Some(index) => &self.entries[index].head,
            None => &self.fresh,
        }
    }

    /// The trailers that were found behind the current head, or the current head.
    #[inline]
    pub(crate) fn last(&self) -> &Head {
        match self.behind {
            Some(index) => &self.entries[index].head,
            None => self.current(),
        }
    }

    /// Decodes and validates a block, or finds it decoded.
    #[inline]
    pub(crate) fn decode(
        &mut self,
        decoder: &mut Decoder,
        kind: HeadKind,
        block: &[u8],
        list_size_max: usize,
    ) -> Result<Decoded, ConnectionError> {
        self.behind = None;
        if let Some(index) = self.find(decoder.version(), kind, block) {
            self.current = Some(index);
            return Ok(Decoded::Valid);
        }
        if kind == HeadKind::Request
            && let Some(begin) = indexed_begin(block)
            && let Some(index) = self.find(decoder.version(), kind, begin)
        {
            return self.decode_behind(decoder, index, block, begin.len(), list_size_max);
        }
        self.decode_fresh(decoder, kind, block, list_size_max)
    }

    /// Whether [`DECODED_AT_ONCE`] bytes were decoded since it last was so.
    pub(crate) fn take_much(&mut self) -> bool {
        let is_much = self.decoded >= DECODED_AT_ONCE;
        if is_much {
            self.decoded = 0;
        }
        is_much
    }

    /// Whether trailers that come behind the current head need not be decoded. If so, they are the
    /// [`last`](Self::last) head, and the current one stays.
    #[inline]
    pub(crate) fn find_behind(&mut self, decoder: &Decoder, block: &[u8]) -> bool {
        let kind = HeadKind::Trailers;
        self.behind = self.find(decoder.version(), kind, block);
        self.behind.is_some()
    }

    /// The place of the head that was decoded from the same block at the same version, if it was kept.
    fn find(&mut self, version: u64, kind: HeadKind, block: &[u8]) -> Option<usize> {
        let fingerprint = fingerprint(kind, block);
        for (index, entry) in self.entries.iter_mut().enumerate() {
            if self.fingerprints[index] == fingerprint && entry.is_of(version, kind, block) {
                entry.used = true;
                return Some(index);
            }
        }
        None
    }

    /// Forgets all heads, and gives their memory back. Their ids are not given again.
    pub(crate) fn shrink(&mut self) {
        *self = HeadCache { last_id: self.last_id, ..HeadCache::default() };
    }

    #[cold]
    fn decode_fresh(
        &mut self,
        decoder: &mut Decoder,
        kind: HeadKind,
        block: &[u8],
        list_size_max: usize,
    ) -> Result<Decoded, ConnectionError> {
        self.current = None;
        self.last_id += 1;
        self.fresh.id = self.last_id;
        self.fresh.begin = None;
        self.fresh.fields.clear();
        self.fresh.fields.begin();
        let version = decoder.version();
        let outcome = decoder.decode(block, list_size_max, &mut self.fresh.fields);
        self.decoded += self.fresh.fields.size();
        match outcome {
            Ok(DecodeOutcome::Complete) => {}
            Ok(DecodeOutcome::TooLarge) => return Ok(Decoded::TooLarge),
            Err(_) => return Err(INVALID),
        }
        match validate(kind, &self.fresh.fields) {
            Ok(summary) => self.fresh.summary = summary,
            Err(malformed) => return Ok(Decoded::Malformed(malformed)),
        }
        self.keep_if_stable(decoder, version, kind, block);
        Ok(self.decoded_valid())
    }

    /// Decodes a request's block that begins, for `begin_len` octets, with all of a block whose head was kept.
    fn decode_behind(
        &mut self,
        decoder: &mut Decoder,
        index: usize,
        block: &[u8],
        begin_len: usize,
        list_size_max: usize,
    ) -> Result<Decoded, ConnectionError> {
        self.current = None;
        self.last_id += 1;
        let (begin, fresh) = (&self.entries[index].head, &mut self.fresh);
        let (summary, field_count) = (begin.summary, begin.fields.len());
        fresh.id = self.last_id;
        fresh.begin = Some(Begin { id: begin.id, field_count });
        fresh.fields.copy_from(&begin.fields);
        let version = decoder.version();
        let outcome = decoder.decode_behind(&block[begin_len..], list_size_max, &mut fresh.fields);
        self.decoded += fresh.fields.size();
        match outcome {
            Ok(DecodeOutcome::Complete) => {}
            Ok(DecodeOutcome::TooLarge) => return Ok(Decoded::TooLarge),
            Err(_) => return Err(INVALID),
        }
        match validate_behind(summary, field_count, &fresh.fields) {
            Ok(summary) => fresh.summary = summary,
            Err(malformed) => return Ok(Decoded::Malformed(malformed)),
        }
        self.keep_if_stable(decoder, version, HeadKind::Request, block);
        Ok(self.decoded_valid())
    }

    /// Keeps the fresh head, unless its block changed the table: that must be decoded each time for the table's sake.
    fn keep_if_stable(&mut self, decoder: &Decoder, version: u64, kind: HeadKind, block: &[u8]) {
        if decoder.version() != version
            || block.len() > BLOCK_LEN_MAX
            || self.fresh.fields.size() > HEAD_SIZE_MAX
        {
            return;
        }
        if kind == HeadKind::Request && self.fresh.begin.is_none() {
            self.keep_begin(version, block);
        }
        self.keep(version, kind, block);
    }

    /// Keeps what the fresh head's block begins with, if that could be a block by itself.
    fn keep_begin(&mut self, version: u64, block: &[u8]) {
        let Some(begin) = indexed_begin(block) else { return };
        let mut head = Head::default();
        for field in self.fresh.fields.iter().take(begin.len()) {
            head.fields.push(field.name, field.value, field.indexing);
        }
        let Ok(summary) = validate(HeadKind::Request, &head.fields) else { return };
        // Behind a regular field there is no pseudo-header, whatever follows.
        if head.iter().next().is_none() {
            return;
        }
        self.last_id += 1;
        (head.id, head.summary) = (self.last_id, summary);
        let whole = mem::replace(&mut self.fresh, head);
        self.keep(version, HeadKind::Request, begin);
        self.fresh = whole;
    }

    fn decoded_valid(&self) -> Decoded {
        if self.decoded >= DECODED_AT_ONCE { Decoded::ValidAfterMuch } else { Decoded::Valid }
    }

    /// Decodes a block whose fields nobody wants: nothing is copied that would not stay in the table.
    pub(crate) fn decode_unread(
        &mut self,
        decoder: &mut Decoder,
        block: &[u8],
    ) -> Result<(), ConnectionError> {
        (self.current, self.behind, self.fresh.begin) = (None, None, None);
        self.last_id += 1;
        self.fresh.id = self.last_id;
        decoder.decode(block, 0, &mut self.fresh.fields).map(|_| ()).map_err(|_| INVALID)
    }

    /// Moves the fresh head into the cache, in place of one that was not met again since the hand last
    /// passed.
    fn keep(&mut self, version: u64, kind: HeadKind, block: &[u8]) {
        let index = if self.entries.len() < HEADS_MAX {
            let (block, head) = (Vec::new(), Head::default());
            self.entries.push(Entry { version, kind, block, head, used: false });
            self.entries.len() - 1
        } else {
            while mem::take(&mut self.entries[self.hand].used) {
                self.hand = (self.hand + 1) % HEADS_MAX;
            }
            let index = self.hand;
            self.hand = (self.hand + 1) % HEADS_MAX;
            index
        };
        let entry = &mut self.entries[index];
        entry.version = version;
        entry.kind = kind;
        entry.used = false;
        entry.block.clear();
        entry.block.extend_from_slice(block);
        mem::swap(&mut entry.head, &mut self.fresh);
        self.fingerprints[index] = fingerprint(kind, block);
        self.current = Some(index);
    }
}

/// A number that differs where blocks do: those of up to [`TOLD_APART_LEN`] bytes and of one kind and length always,
/// others nearly always.
#[inline]
fn fingerprint(kind: HeadKind, block: &[u8]) -> u64 {
    hash(kind as u64, block)
}

/// What a request's block begins with: fields of the table, an octet each, and others behind them.
#[inline]
fn indexed_begin(block: &[u8]) -> Option<&[u8]> {
    let len = block.iter().take_while(|octet| matches!(octet, 0x81..=0xfe)).count();
    // With fewer it is not worth it.
    if len < BEGIN_LEN_MIN || len == block.len() { None } else { Some(&block[..len]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::{Block, FieldList, Indexing};
    use crate::hpack::Encoder;

    fn block(encoder: &mut Encoder, fields: &[(&str, &str, Indexing)]) -> Vec<u8> {
        let mut list = FieldList::new();
        for (name, value, indexing) in fields {
            list.push(name.as_bytes(), value.as_bytes(), *indexing);
        }
        let mut bytes = Vec::new();
        encoder.encode(Block { fixed: None, extra: &list }, &mut bytes);
        bytes
    }

    /// Decodes the blocks in turn; returns the id of each head.
    fn ids(cache: &mut HeadCache, decoder: &mut Decoder, blocks: &[&[u8]]) -> Vec<u64> {
        let decode = |block: &&[u8]| {
            assert_eq!(cache.decode(decoder, HeadKind::Trailers, block, 1 << 14), Ok(Decoded::Valid));
            cache.current().id()
        };
        blocks.iter().map(decode).collect()
    }

    #[test]
    fn a_block_that_is_met_again_keeps_its_id() {
        let mut encoder = Encoder::new();
        let (mut cache, mut decoder) = (HeadCache::default(), Decoder::new(4096));
        let ok = [("grpc-status", "0", Indexing::Insert)];
        let (first, second) = (block(&mut encoder, &ok), block(&mut encoder, &ok));
        let single = block(&mut encoder, &[("x", "1", Indexing::Literal)]);
        let ids = ids(&mut cache, &mut decoder, &[&first, &second, &single, &second, &second]);
        assert_ne!(ids[0], ids[1], "the first block changed the table and cannot be kept");
        assert_ne!(ids[1], ids[2]);
        assert_eq!(ids[1], ids[3]);
        assert_eq!(ids[1], ids[4]);
        assert_eq!(cache.current().get(b"grpc-status"), Some(&b"0"[..]));
    }

    #[test]
    fn a_changed_table_makes_the_same_block_another_head() {
        let mut encoder = Encoder::new();
        let (mut cache, mut decoder) = (HeadCache::default(), Decoder::new(4096));
        let a = [("a", "1", Indexing::Insert)];
        let (a_first, a_index) = (block(&mut encoder, &a), block(&mut encoder, &a));
        let b_first = block(&mut encoder, &[("b", "2", Indexing::Insert)]);
        // The newest entry's index is that of `a` before `b` enters, and that of `b` afterwards.
        let ids = ids(&mut cache, &mut decoder, &[&a_first, &a_index, &b_first, &a_index]);
        assert_ne!(ids[1], ids[3]);
        assert_eq!(cache.current().get(b"b"), Some(&b"2"[..]));
        assert_eq!(cache.current().get(b"a"), None);
    }

    /// What differs is decoded, and what comes before it is known to be the same.
    #[test]
    fn requests_that_differ_in_the_end_begin_alike() {
        let common = [
            (":method", "POST", Indexing::Insert),
            (":scheme", "http", Indexing::Insert),
            (":path", "/a/b", Indexing::Insert),
            ("te", "trailers", Indexing::Insert),
        ];
        let mut encoder = Encoder::new();
        let (mut cache, mut decoder) = (HeadCache::default(), Decoder::new(4096));
        let mut request = |behind: &[(&str, &str, Indexing)], list_size_max| {
            let block = block(&mut encoder, &[&common[..], behind].concat());
            let decoded = cache.decode(&mut decoder, HeadKind::Request, &block, list_size_max);
            let head = cache.current();
            let pairs = |field: crate::fields::Field<'_>| String::from_utf8_lossy(field.value).into_owned();
            let begin = head.begin().map(|(id, own)| (id, own.map(pairs).collect::<Vec<_>>()));
            (decoded, head.fields.len(), begin, head.content_length())
        };
        let literal = |value: &'static str| [("x", value, Indexing::Literal)];
        assert_eq!(request(&[], 1 << 14).0, Ok(Decoded::Valid), "which enters the table");
        assert_eq!(request(&literal("1"), 1 << 14), (Ok(Decoded::Valid), 5, None, None));
        let (decoded, count, begin, _) = request(&literal("2"), 1 << 14);
        let (id, own) = begin.unwrap();
        assert_eq!((decoded, count, own), (Ok(Decoded::Valid), 5, vec!["2".to_owned()]));
        let (_, _, begin, _) = request(&literal("3"), 1 << 14);
        assert_eq!(begin, Some((id, vec!["3".to_owned()])));
        // By itself it is a head.
        assert_eq!(request(&[], 1 << 14), (Ok(Decoded::Valid), 4, None, None));
        // All rules hold for what comes behind.
        let length = ("content-length", "7", Indexing::Literal);
        assert_eq!(request(&[length], 1 << 14).3, Some(7));
        let malformed = |field| request(&[field], 1 << 14).0;
        let mut malformed = malformed;
        let reason = |violation| Ok(Decoded::Malformed(violation));
        let pseudo = (":authority", "a", Indexing::Literal);
        assert_eq!(malformed(pseudo), reason(Violation::PseudoHeaderMisplaced));
        assert_eq!(malformed(("X", "a", Indexing::Literal)), reason(Violation::FieldNameInvalid));
        assert_eq!(malformed(("x", "\n", Indexing::Literal)), reason(Violation::FieldValueInvalid));
        assert_eq!(request(&literal("much"), 200).0, Ok(Decoded::TooLarge));
        // What enters the table is decoded each time.
        let (_, count, begin, _) = request(&[("y", "1", Indexing::Insert)], 1 << 14);
        assert_eq!((count, begin), (5, Some((id, vec!["1".to_owned()]))));
        assert_eq!(request(&literal("4"), 1 << 14).2, None, "the table is another");
    }

    #[test]
    fn heads_of_single_calls_do_not_drive_out_that_of_all() {
        let mut encoder = Encoder::new();
        let (mut cache, mut decoder) = (HeadCache::default(), Decoder::new(4096));
        let hot = block(&mut encoder, &[("x", "hot", Indexing::Literal)]);
        let single = |n: u32| block(&mut Encoder::new(), &[("x", &n.to_string(), Indexing::Literal)]);
        let id = ids(&mut cache, &mut decoder, &[&hot])[0];
        for n in 0..100 {
            assert_eq!(ids(&mut cache, &mut decoder, &[&hot, &single(n)])[0], id);
        }
        assert_eq!(cache.entries.len(), HEADS_MAX);
    }

    #[test]
    fn what_is_valid_as_one_kind_is_not_as_another() {
        let (mut cache, mut decoder) = (HeadCache::default(), Decoder::new(4096));
        let block = block(&mut Encoder::new(), &[("x", "1", Indexing::Literal)]);
        let decode = |kind| cache.decode(&mut decoder, kind, &block, 1 << 14);
        let mut decode = decode;
        assert_eq!(decode(HeadKind::Trailers), Ok(Decoded::Valid));
        assert_eq!(decode(HeadKind::Response), Ok(Decoded::Malformed(Violation::StatusMissing)));
    }

    #[test]
    fn shrinking_forgets_heads_and_gives_no_id_twice() {
        let (mut cache, mut decoder) = (HeadCache::default(), Decoder::new(4096));
        let block = block(&mut Encoder::new(), &[("x", "1", Indexing::Literal)]);
        let before = ids(&mut cache, &mut decoder, &[&block])[0];
        cache.shrink();
        assert_eq!(cache.current().get(b"x"), None);
        assert_ne!(ids(&mut cache, &mut decoder, &[&block])[0], before);
    }
}
