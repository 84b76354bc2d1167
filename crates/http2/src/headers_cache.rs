//! A cache of decoded header blocks.
//!
//! Peers keep sending the same few blocks: the request headers of a method, the response headers, the trailers of a
//! successful call. Once such a block consists of indices only, equal bytes at an equal version of the HPACK table
//! decode equally.
//!
//! Requests that differ mostly do so at the end, for example in the remaining timeout, and start with the same indices.
//! This prefix is cached as if it were a header block, and only the fields after it are decoded.

use std::mem;

use crate::error::{ConnectionError, ErrorCode};
use crate::hash::{COLLISION_FREE_LEN, hash};
use crate::headers::{Headers, HeadersKind, SharedPrefix, validate, validate_after_prefix};
use crate::hpack::{DecodeOutcome, Decoder};
use crate::violation::Violation;

/// Number of cached header blocks.
const CACHED_HEADERS_MAX: usize = 8;

/// Maximum length of a cached block in bytes. Longer ones contain literals, which differ each time.
const BLOCK_LEN_MAX: usize = 256;

/// Maximum size of a cached header list in bytes as HPACK counts it. A peer can make us cache up to 8 × (2 KiB + 256
/// B).
const CACHED_LIST_SIZE_MAX: usize = 2 << 10;

/// Minimum number of fields of a request's cached prefix: a method, a scheme, a path, and another.
const PREFIX_LEN_MIN: usize = 4;

/// Size of header lists in bytes, as HPACK counts them, decoded without a break; takes some hundred microseconds. Table
/// indices in a read of 128 KiB can refer to thirty times as much.
const DECODE_BUDGET: usize = 64 << 10;

const INVALID: ConnectionError =
    ConnectionError::local(ErrorCode::CompressionError, Violation::HeaderBlockInvalid);

/// The result of decoding a header block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decoded {
    /// See [`HeadersCache::current`].
    Valid,
    /// Valid; check [`HeadersCache::take_decode_budget_spent`].
    ValidBudgetSpent,
    Malformed(Violation),
    /// Exceeds the maximum header list size.
    TooLarge,
}

/// The last decoded headers, and a few that may recur.
#[derive(Debug, Default)]
pub(crate) struct HeadersCache {
    /// Fingerprints of the entries, contiguous so that a search touches one cache line.
    fingerprints: [u64; CACHED_HEADERS_MAX],
    entries: Vec<Entry>,
    /// Index of the current entry; `None` if it is `fresh`.
    current: Option<usize>,
    /// Index of trailers found after the current headers in the same input.
    trailers: Option<usize>,
    /// The last decoded headers, if they were not worth caching.
    fresh: Headers,
    /// Position of the search for an entry to replace.
    hand: usize,
    last_id: u64,
    /// Bytes of lists decoded, not found in the cache, since the last
    /// [`take_decode_budget_spent`](Self::take_decode_budget_spent).
    decoded: usize,
}

#[derive(Debug)]
struct Entry {
    /// The [`Decoder::version`] at which the block decodes to these headers.
    version: u64,
    kind: HeadersKind,
    block: Vec<u8>,
    headers: Headers,
    /// Found again since the hand last passed. Prevents headers of single calls from evicting those of all calls.
    used: bool,
}

impl Entry {
    /// Returns whether the entry has this block, given equal fingerprints.
    #[inline]
    fn matches(&self, version: u64, kind: HeadersKind, block: &[u8]) -> bool {
        self.version == version
            && self.kind == kind
            && self.block.len() == block.len()
            && (block.len() <= COLLISION_FREE_LEN || self.block == block)
    }
}

impl HeadersCache {
    /// Returns the headers from the last [`decode`](Self::decode).
    #[inline]
    pub(crate) fn current(&self) -> &Headers {
        match self.current {
            Some(index) => &self.entries[index].headers,
            None => &self.fresh,
        }
    }

    /// Returns the trailers found after the current headers, or else the current headers.
    #[inline]
    pub(crate) fn trailers(&self) -> &Headers {
        match self.trailers {
            Some(index) => &self.entries[index].headers,
            None => self.current(),
        }
    }

    /// Decodes and validates a block, or finds it in the cache.
    #[inline]
    pub(crate) fn decode(
        &mut self,
        decoder: &mut Decoder,
        kind: HeadersKind,
        block: &[u8],
        list_size_max: usize,
    ) -> Result<Decoded, ConnectionError> {
        self.trailers = None;
        if let Some(index) = self.find(decoder.version(), kind, block) {
            self.current = Some(index);
            return Ok(Decoded::Valid);
        }
        if kind == HeadersKind::Request
            && let Some(prefix) = indexed_prefix(block)
            && let Some(index) = self.find(decoder.version(), kind, prefix)
        {
            return self.decode_after_prefix(decoder, index, block, prefix.len(), list_size_max);
        }
        self.decode_fresh(decoder, kind, block, list_size_max)
    }

    /// Returns whether [`DECODE_BUDGET`] bytes were decoded since the last time it returned true.
    pub(crate) fn take_decode_budget_spent(&mut self) -> bool {
        let is_spent = self.decoded >= DECODE_BUDGET;
        if is_spent {
            self.decoded = 0;
        }
        is_spent
    }

    /// Returns whether trailers after the current headers are in the cache. If so, they become
    /// [`trailers`](Self::trailers), and the current headers stay.
    #[inline]
    pub(crate) fn find_trailers(&mut self, decoder: &Decoder, block: &[u8]) -> bool {
        let kind = HeadersKind::Trailers;
        self.trailers = self.find(decoder.version(), kind, block);
        self.trailers.is_some()
    }

    /// Returns the index of the cached headers of this block at this version.
    fn find(&mut self, version: u64, kind: HeadersKind, block: &[u8]) -> Option<usize> {
        let fingerprint = fingerprint(kind, block);
        for (index, entry) in self.entries.iter_mut().enumerate() {
            if self.fingerprints[index] == fingerprint && entry.matches(version, kind, block) {
                entry.used = true;
                return Some(index);
            }
        }
        None
    }

    /// Removes all entries and frees their memory. Ids are not reused.
    pub(crate) fn shrink(&mut self) {
        *self = HeadersCache { last_id: self.last_id, ..HeadersCache::default() };
    }

    #[cold]
    fn decode_fresh(
        &mut self,
        decoder: &mut Decoder,
        kind: HeadersKind,
        block: &[u8],
        list_size_max: usize,
    ) -> Result<Decoded, ConnectionError> {
        self.current = None;
        self.last_id += 1;
        self.fresh.id = self.last_id;
        self.fresh.shared_prefix = None;
        self.fresh.fields.clear();
        self.fresh.fields.reserve_initial();
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
        self.cache_if_stable(decoder, version, kind, block);
        Ok(self.decoded_valid())
    }

    /// Decodes a request's block whose first `prefix_len` octets are a cached block.
    fn decode_after_prefix(
        &mut self,
        decoder: &mut Decoder,
        index: usize,
        block: &[u8],
        prefix_len: usize,
        list_size_max: usize,
    ) -> Result<Decoded, ConnectionError> {
        self.current = None;
        self.last_id += 1;
        let (prefix, fresh) = (&self.entries[index].headers, &mut self.fresh);
        let (summary, field_count) = (prefix.summary, prefix.fields.len());
        fresh.id = self.last_id;
        fresh.shared_prefix = Some(SharedPrefix { id: prefix.id, field_count });
        fresh.fields.copy_from(&prefix.fields);
        let version = decoder.version();
        let outcome = decoder.decode_after_prefix(&block[prefix_len..], list_size_max, &mut fresh.fields);
        self.decoded += fresh.fields.size();
        match outcome {
            Ok(DecodeOutcome::Complete) => {}
            Ok(DecodeOutcome::TooLarge) => return Ok(Decoded::TooLarge),
            Err(_) => return Err(INVALID),
        }
        match validate_after_prefix(summary, field_count, &fresh.fields) {
            Ok(summary) => fresh.summary = summary,
            Err(malformed) => return Ok(Decoded::Malformed(malformed)),
        }
        self.cache_if_stable(decoder, version, HeadersKind::Request, block);
        Ok(self.decoded_valid())
    }

    /// Caches the fresh headers, unless their block changed the table: such a block must be decoded each time to keep
    /// the table in sync.
    fn cache_if_stable(&mut self, decoder: &Decoder, version: u64, kind: HeadersKind, block: &[u8]) {
        if decoder.version() != version
            || block.len() > BLOCK_LEN_MAX
            || self.fresh.fields.size() > CACHED_LIST_SIZE_MAX
        {
            return;
        }
        if kind == HeadersKind::Request && self.fresh.shared_prefix.is_none() {
            self.cache_prefix(version, block);
        }
        self.insert(version, kind, block);
    }

    /// Caches the prefix of the fresh headers' block, if it is a valid block itself.
    fn cache_prefix(&mut self, version: u64, block: &[u8]) {
        let Some(prefix) = indexed_prefix(block) else { return };
        let mut headers = Headers::default();
        for field in self.fresh.fields.iter().take(prefix.len()) {
            headers.fields.push(field.name, field.value, field.indexing);
        }
        let Ok(summary) = validate(HeadersKind::Request, &headers.fields) else { return };
        // After a regular field no pseudo-header can follow.
        if headers.iter().next().is_none() {
            return;
        }
        self.last_id += 1;
        (headers.id, headers.summary) = (self.last_id, summary);
        let complete = mem::replace(&mut self.fresh, headers);
        self.insert(version, HeadersKind::Request, prefix);
        self.fresh = complete;
    }

    fn decoded_valid(&self) -> Decoded {
        if self.decoded >= DECODE_BUDGET { Decoded::ValidBudgetSpent } else { Decoded::Valid }
    }

    /// Decodes a block without keeping its fields: copies only what enters the table.
    pub(crate) fn decode_and_discard(
        &mut self,
        decoder: &mut Decoder,
        block: &[u8],
    ) -> Result<(), ConnectionError> {
        (self.current, self.trailers, self.fresh.shared_prefix) = (None, None, None);
        self.last_id += 1;
        self.fresh.id = self.last_id;
        decoder.decode(block, 0, &mut self.fresh.fields).map(|_| ()).map_err(|_| INVALID)
    }

    /// Moves the fresh headers into the cache. Replaces an entry that was not found again since the hand last passed.
    fn insert(&mut self, version: u64, kind: HeadersKind, block: &[u8]) {
        let index = if self.entries.len() < CACHED_HEADERS_MAX {
            let (block, headers) = (Vec::new(), Headers::default());
            self.entries.push(Entry { version, kind, block, headers, used: false });
            self.entries.len() - 1
        } else {
            while mem::take(&mut self.entries[self.hand].used) {
                self.hand = (self.hand + 1) % CACHED_HEADERS_MAX;
            }
            let index = self.hand;
            self.hand = (self.hand + 1) % CACHED_HEADERS_MAX;
            index
        };
        let entry = &mut self.entries[index];
        entry.version = version;
        entry.kind = kind;
        entry.used = false;
        entry.block.clear();
        entry.block.extend_from_slice(block);
        mem::swap(&mut entry.headers, &mut self.fresh);
        self.fingerprints[index] = fingerprint(kind, block);
        self.current = Some(index);
    }
}

/// Returns a fingerprint: unique among blocks of up to [`COLLISION_FREE_LEN`] bytes of one kind and length, almost
/// unique otherwise.
#[inline]
fn fingerprint(kind: HeadersKind, block: &[u8]) -> u64 {
    hash(kind as u64, block)
}

/// Returns the prefix of a request's block that consists of one-octet table indices, if other fields follow.
#[inline]
fn indexed_prefix(block: &[u8]) -> Option<&[u8]> {
    let len = block.iter().take_while(|octet| matches!(octet, 0x81..=0xfe)).count();
    // A shorter prefix does not pay off.
    if len < PREFIX_LEN_MIN || len == block.len() { None } else { Some(&block[..len]) }
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

    /// Decodes the blocks in turn; returns the id of each header list.
    fn ids(cache: &mut HeadersCache, decoder: &mut Decoder, blocks: &[&[u8]]) -> Vec<u64> {
        let decode = |block: &&[u8]| {
            assert_eq!(cache.decode(decoder, HeadersKind::Trailers, block, 1 << 14), Ok(Decoded::Valid));
            cache.current().id()
        };
        blocks.iter().map(decode).collect()
    }

    #[test]
    fn repeated_block_keeps_its_id() {
        let mut encoder = Encoder::new();
        let (mut cache, mut decoder) = (HeadersCache::default(), Decoder::new(4096));
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
    fn same_block_has_a_new_id_after_the_table_changes() {
        let mut encoder = Encoder::new();
        let (mut cache, mut decoder) = (HeadersCache::default(), Decoder::new(4096));
        let a = [("a", "1", Indexing::Insert)];
        let (a_first, a_index) = (block(&mut encoder, &a), block(&mut encoder, &a));
        let b_first = block(&mut encoder, &[("b", "2", Indexing::Insert)]);
        // The same index refers to `a` before `b` enters, and to `b` afterwards.
        let ids = ids(&mut cache, &mut decoder, &[&a_first, &a_index, &b_first, &a_index]);
        assert_ne!(ids[1], ids[3]);
        assert_eq!(cache.current().get(b"b"), Some(&b"2"[..]));
        assert_eq!(cache.current().get(b"a"), None);
    }

    /// Only the differing end is decoded; the prefix is recognized.
    #[test]
    fn requests_that_differ_only_at_the_end_share_a_prefix_id() {
        let common = [
            (":method", "POST", Indexing::Insert),
            (":scheme", "http", Indexing::Insert),
            (":path", "/a/b", Indexing::Insert),
            ("te", "trailers", Indexing::Insert),
        ];
        let mut encoder = Encoder::new();
        let (mut cache, mut decoder) = (HeadersCache::default(), Decoder::new(4096));
        let mut request = |rest: &[(&str, &str, Indexing)], list_size_max| {
            let block = block(&mut encoder, &[&common[..], rest].concat());
            let decoded = cache.decode(&mut decoder, HeadersKind::Request, &block, list_size_max);
            let headers = cache.current();
            let pairs = |field: crate::fields::Field<'_>| String::from_utf8_lossy(field.value).into_owned();
            let prefix = headers.shared_prefix().map(|(id, rest)| (id, rest.map(pairs).collect::<Vec<_>>()));
            (decoded, headers.fields.len(), prefix, headers.content_length())
        };
        let literal = |value: &'static str| [("x", value, Indexing::Literal)];
        assert_eq!(request(&[], 1 << 14).0, Ok(Decoded::Valid), "enters the table");
        assert_eq!(request(&literal("1"), 1 << 14), (Ok(Decoded::Valid), 5, None, None));
        let (decoded, count, prefix, _) = request(&literal("2"), 1 << 14);
        let (id, rest) = prefix.unwrap();
        assert_eq!((decoded, count, rest), (Ok(Decoded::Valid), 5, vec!["2".to_owned()]));
        let (_, _, prefix, _) = request(&literal("3"), 1 << 14);
        assert_eq!(prefix, Some((id, vec!["3".to_owned()])));
        // The prefix alone is a complete request.
        assert_eq!(request(&[], 1 << 14), (Ok(Decoded::Valid), 4, None, None));
        // All rules apply to the fields after the prefix.
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
        // Blocks with insertions are decoded each time.
        let (_, count, prefix, _) = request(&[("y", "1", Indexing::Insert)], 1 << 14);
        assert_eq!((count, prefix), (5, Some((id, vec!["1".to_owned()]))));
        assert_eq!(request(&literal("4"), 1 << 14).2, None, "the table has changed");
    }

    #[test]
    fn one_off_headers_do_not_evict_recurring_ones() {
        let mut encoder = Encoder::new();
        let (mut cache, mut decoder) = (HeadersCache::default(), Decoder::new(4096));
        let hot = block(&mut encoder, &[("x", "hot", Indexing::Literal)]);
        let single = |n: u32| block(&mut Encoder::new(), &[("x", &n.to_string(), Indexing::Literal)]);
        let id = ids(&mut cache, &mut decoder, &[&hot])[0];
        for n in 0..100 {
            assert_eq!(ids(&mut cache, &mut decoder, &[&hot, &single(n)])[0], id);
        }
        assert_eq!(cache.entries.len(), CACHED_HEADERS_MAX);
    }

    #[test]
    fn cached_trailers_are_not_accepted_as_a_response() {
        let (mut cache, mut decoder) = (HeadersCache::default(), Decoder::new(4096));
        let block = block(&mut Encoder::new(), &[("x", "1", Indexing::Literal)]);
        let decode = |kind| cache.decode(&mut decoder, kind, &block, 1 << 14);
        let mut decode = decode;
        assert_eq!(decode(HeadersKind::Trailers), Ok(Decoded::Valid));
        assert_eq!(decode(HeadersKind::Response), Ok(Decoded::Malformed(Violation::StatusMissing)));
    }

    #[test]
    fn shrink_clears_the_cache_and_reuses_no_id() {
        let (mut cache, mut decoder) = (HeadersCache::default(), Decoder::new(4096));
        let block = block(&mut Encoder::new(), &[("x", "1", Indexing::Literal)]);
        let before = ids(&mut cache, &mut decoder, &[&block])[0];
        cache.shrink();
        assert_eq!(cache.current().get(b"x"), None);
        assert_ne!(ids(&mut cache, &mut decoder, &[&block])[0], before);
    }
}
