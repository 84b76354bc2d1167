//! Caches of encoded request headers, per method of a channel.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use http::HeaderMap;
use http::header::{CONTENT_TYPE, TE, USER_AGENT};
use thalweg_http2::{FieldList, FixedFields, Indexing};

use crate::grpc::compression::EncodingSet;
use crate::grpc::content_type;
use crate::grpc::metadata::{self, MetadataTooLarge};
use crate::method::Method;
use crate::per_thread::PerThread;

/// The fixed request headers of a channel, cached per method and round timeout.
#[derive(Default)]
pub(crate) struct RequestHeadersCache {
    entries: TwoLevelCache<CachedHeaders>,
}

#[derive(Clone)]
struct CachedHeaders {
    method: u32,
    accepts: EncodingSet,
    timeout: Option<Duration>,
    fields: Arc<FixedFields>,
}

impl RequestHeadersCache {
    #[inline]
    pub(crate) fn get(
        &self,
        method: &Method,
        accepts: EncodingSet,
        timeout: Option<Duration>,
        build: impl FnOnce() -> FieldList,
    ) -> Arc<FixedFields> {
        let method = method.id();
        let matches = |entry: &CachedHeaders| {
            entry.method == method && entry.accepts == accepts && entry.timeout == timeout
        };
        let build = || CachedHeaders { method, accepts, timeout, fields: FixedFields::new(build()) };
        // Methods are numbered in sequence, and most have one timeout.
        let hash = method as usize + timeout.map_or(0, |timeout| timeout.as_millis() as usize % 61);
        self.entries.get(hash, matches, build).fields
    }
}

/// Cache of header blocks: one for the channel, and per-thread copies of those in use, since each call counts a
/// reference.
///
/// The size is bounded, because methods created at run time have ever new numbers.
struct TwoLevelCache<T> {
    channels: RwLock<Vec<Option<T>>>,
    threads: PerThread<RwLock<Vec<Option<T>>>>,
}

/// Size of the channel's cache. After a collision the entry is built again.
const CHANNEL_CACHE_MAX: usize = 256;
/// Size of a thread's cache. It is two-way associative, so two colliding entries used in turn both stay.
const THREAD_CACHE_MAX: usize = 64;

/// A value whose copy has a reference count of its own.
trait Duplicated: Clone {
    fn duplicated(&self) -> Self;
}

impl<T> Default for TwoLevelCache<T> {
    fn default() -> Self {
        Self { channels: RwLock::default(), threads: PerThread::default() }
    }
}

impl<T: Duplicated> TwoLevelCache<T> {
    #[inline]
    fn get(&self, hash: usize, matches: impl Fn(&T) -> bool, build: impl FnOnce() -> T) -> T {
        {
            let thread_entries = read(self.threads.current());
            let index = hash % THREAD_CACHE_MAX;
            if let Some(known) =
                at(&thread_entries, index, &matches).or_else(|| at(&thread_entries, index ^ 1, &matches))
            {
                return known.clone();
            }
        }
        self.copy_for_thread(hash, matches, build)
    }

    #[cold]
    fn copy_for_thread(&self, hash: usize, matches: impl Fn(&T) -> bool, build: impl FnOnce() -> T) -> T {
        let copy = self.of_channel(hash % CHANNEL_CACHE_MAX, &matches, build).duplicated();
        let index = hash % THREAD_CACHE_MAX;
        let mut thread_entries = write(self.threads.current());
        // With more threads than processors, another thread with the same cache may have added it meanwhile.
        if let Some(known) =
            at(&thread_entries, index, &matches).or_else(|| at(&thread_entries, index ^ 1, &matches))
        {
            return known.clone();
        }
        if let Some(former) = put(&mut thread_entries, index, copy.clone()) {
            put(&mut thread_entries, index ^ 1, former);
        }
        copy
    }

    fn of_channel(&self, index: usize, matches: impl Fn(&T) -> bool, build: impl FnOnce() -> T) -> T {
        if let Some(known) = at(&read(&self.channels), index, &matches) {
            return known.clone();
        }
        let built = build();
        let mut entries = write(&self.channels);
        // Concurrent builders all use the first one's, because connections identify header blocks by id.
        if let Some(known) = at(&entries, index, &matches) {
            return known.clone();
        }
        put(&mut entries, index, built.clone());
        built
    }
}

#[inline]
fn read<T>(entries: &RwLock<Vec<Option<T>>>) -> RwLockReadGuard<'_, Vec<Option<T>>> {
    entries.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(entries: &RwLock<Vec<Option<T>>>) -> RwLockWriteGuard<'_, Vec<Option<T>>> {
    entries.write().unwrap_or_else(PoisonError::into_inner)
}

#[inline]
fn at<T>(entries: &[Option<T>], index: usize, matches: impl FnOnce(&T) -> bool) -> Option<&T> {
    entries.get(index)?.as_ref().filter(|entry| matches(entry))
}

/// Returns the previous entry.
fn put<T>(entries: &mut Vec<Option<T>>, index: usize, entry: T) -> Option<T> {
    if entries.len() <= index {
        entries.resize_with(index + 1, || None);
    }
    entries[index].replace(entry)
}

impl Duplicated for CachedHeaders {
    fn duplicated(&self) -> Self {
        Self { fields: self.fields.duplicate(), ..*self }
    }
}

impl Duplicated for Arc<RawRequestHeaders> {
    fn duplicated(&self) -> Self {
        Arc::new(RawRequestHeaders {
            verb: self.verb.clone(),
            kind: self.kind,
            method: self.method.clone(),
            fields: self.fields.duplicate(),
        })
    }
}

/// Fixed headers of raw requests.
pub(crate) struct RawRequestHeaders {
    verb: http::Method,
    kind: FixedFieldsKind,
    pub(crate) method: Method,
    pub(crate) fields: Arc<FixedFields>,
}

/// The fields that are part of the fixed headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FixedFieldsKind {
    /// gRPC: `te`, `content-type` and our user agent.
    Grpc,
    /// Our user agent only.
    Plain,
    /// None: the application sets its own user agent.
    Named,
}

impl FixedFieldsKind {
    fn of(headers: &HeaderMap) -> Self {
        let (mut has_te, mut is_grpc) = (false, false);
        for (name, value) in headers {
            if *name == TE {
                has_te = value == "trailers";
            } else if *name == CONTENT_TYPE {
                is_grpc = value == content_type::GRPC;
            } else if *name == USER_AGENT {
                return Self::Named;
            }
        }
        if has_te && is_grpc { Self::Grpc } else { Self::Plain }
    }
}

/// Fields that all requests of a channel share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin<'a> {
    pub(crate) scheme: &'a str,
    pub(crate) authority: &'a str,
    pub(crate) user_agent: &'a str,
}

impl RawRequestHeaders {
    fn new(verb: &http::Method, kind: FixedFieldsKind, path: &str, origin: Origin<'_>) -> Self {
        let mut fields = FieldList::new();
        let mut push =
            |name: &str, value: &str| fields.push(name.as_bytes(), value.as_bytes(), Indexing::Insert);
        push(":method", verb.as_str());
        push(":scheme", origin.scheme);
        push(":path", path);
        push(":authority", origin.authority);
        if kind == FixedFieldsKind::Grpc {
            push("te", "trailers");
            push("content-type", content_type::GRPC);
        }
        if kind != FixedFieldsKind::Named {
            push("user-agent", origin.user_agent);
        }
        Self { verb: verb.clone(), kind, method: Method::at(path), fields: FixedFields::new(fields) }
    }

    /// Returns whether it is gRPC without a content subtype. False does not rule gRPC out.
    pub(crate) fn is_grpc(&self) -> bool {
        self.kind == FixedFieldsKind::Grpc
    }

    /// Appends the fields that are not part of the fixed headers.
    pub(crate) fn emit(&self, headers: &HeaderMap, fields: &mut FieldList) -> Result<(), MetadataTooLarge> {
        // The server's limit is checked when the stream is opened.
        let size_max = usize::MAX;
        if self.kind != FixedFieldsKind::Grpc {
            return metadata::emit_raw(headers, |_| false, size_max, fields);
        }
        if headers.len() <= 2 {
            // Only `te` and `content-type`.
            return Ok(());
        }
        metadata::emit_raw(headers, |name| matches!(name, "te" | "content-type"), size_max, fields)
    }
}

/// Like [`RequestHeadersCache`], for raw requests.
#[derive(Default)]
pub(crate) struct RawRequestHeadersCache {
    entries: TwoLevelCache<Arc<RawRequestHeaders>>,
}

/// Applications choose the paths; a collision only costs time.
fn hash_of(path: &str, kind: FixedFieldsKind) -> usize {
    let (chunks, rest) = path.as_bytes().as_chunks::<8>();
    let rest = rest.iter().fold(kind as u64, |word, byte| word << 8 | u64::from(*byte));
    let words = chunks.iter().map(|chunk| u64::from_le_bytes(*chunk));
    // FNV's prime. Multiplication spreads bits upwards, so the index is taken from the high bits.
    let hash =
        words.fold(rest, |hash, word| (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29));
    (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
}

impl RawRequestHeadersCache {
    pub(crate) fn get(
        &self,
        verb: &http::Method,
        path: &str,
        headers: &HeaderMap,
        origin: Origin<'_>,
    ) -> Arc<RawRequestHeaders> {
        let kind = FixedFieldsKind::of(headers);
        let matches = |entry: &Arc<RawRequestHeaders>| {
            entry.kind == kind && entry.method.path() == path && entry.verb == *verb
        };
        let build = || Arc::new(RawRequestHeaders::new(verb, kind, path, origin));
        self.entries.get(hash_of(path, kind), matches, build)
    }
}

#[cfg(test)]
mod tests {
    use http::Method as Verb;

    use super::*;

    #[test]
    fn colliding_requests_have_their_own_headers() {
        let origin = Origin { scheme: "http", authority: "shop", user_agent: "test" };
        let mut grpc = HeaderMap::new();
        grpc.insert(TE, "trailers".parse().unwrap());
        grpc.insert(CONTENT_TYPE, content_type::GRPC.parse().unwrap());
        let path = "/shop.Shop/Buy";
        let hash_of = |path: &str, kind| hash_of(path, kind) % CHANNEL_CACHE_MAX;
        let hash = hash_of(path, FixedFieldsKind::Grpc);
        let other = (0..).map(|index| format!("/shop.Shop/Buy{index}"));
        let other = other.into_iter().find(|other| hash_of(other, FixedFieldsKind::Grpc) == hash).unwrap();
        let entries = RawRequestHeadersCache::default();
        for (verb, path) in
            [(Verb::POST, path), (Verb::POST, &other), (Verb::PUT, &other), (Verb::POST, path)]
        {
            let entry = entries.get(&verb, path, &grpc, origin);
            assert_eq!((&entry.verb, entry.method.path()), (&verb, path));
            assert!(entry.is_grpc());
            assert!(Arc::ptr_eq(&entry, &entries.get(&verb, path, &grpc, origin)));
        }
        assert!(!entries.get(&Verb::POST, path, &HeaderMap::new(), origin).is_grpc());
    }

    /// Encoders identify header blocks by their number: calls with the same timeout share one, others do not.
    #[test]
    fn calls_of_a_method_share_headers_per_timeout() {
        let entries = RequestHeadersCache::default();
        let method = Method::new("/a.B/C");
        let get = |millis: Option<u64>| {
            let timeout = millis.map(Duration::from_millis);
            entries.get(&method, EncodingSet::ALL, timeout, FieldList::new)
        };
        let of = [None, Some(100), Some(250), Some(10_000)].map(|millis| (millis, get(millis)));
        for (millis, entry) in &of {
            for (other, _) in &of {
                assert_eq!(Arc::ptr_eq(entry, &get(*other)), millis == other, "{millis:?} and {other:?}");
            }
        }
    }

    /// Threads use a method for the first time all at once, and another whose entry collides with it.
    #[test]
    fn threads_have_copies_and_keep_two_colliding_entries() {
        let entries = TwoLevelCache::default();
        let barrier = std::sync::Barrier::new(4);
        let get = |method: usize, builder: &str| {
            let build = || {
                let mut fields = FieldList::new();
                fields.push(b"built-by", builder.as_bytes(), Indexing::Literal);
                let (method, accepts) = (method as u32, EncodingSet::ALL);
                CachedHeaders { method, accepts, timeout: None, fields: FixedFields::new(fields) }
            };
            entries.get(method, |entry| entry.method as usize == method, build).fields
        };
        let (one, other) = (7, 7 + THREAD_CACHE_MAX);
        let thread = |builder: &'static str| {
            let (get, barrier) = (&get, &barrier);
            move || {
                barrier.wait();
                let (first, second) = (get(one, builder), get(other, builder));
                assert!(
                    Arc::ptr_eq(&first, &get(one, builder)) && Arc::ptr_eq(&second, &get(other, builder))
                );
                first
            }
        };
        let built = std::thread::scope(|scope| {
            ["a", "b", "c", "d"]
                .map(|builder| scope.spawn(thread(builder)))
                .map(|thread| thread.join().unwrap())
        });
        for entry in &built[1..] {
            assert!(entry.fields() == built[0].fields(), "built by one of them");
        }
    }

    #[test]
    fn paths_are_spread() {
        let mut hashes: Vec<usize> = (0..CHANNEL_CACHE_MAX)
            .map(|index| {
                hash_of(&format!("/shop.Shop/Buy{index}"), FixedFieldsKind::Grpc) % CHANNEL_CACHE_MAX
            })
            .collect();
        hashes.sort_unstable();
        hashes.dedup();
        // Random hashes would fill 162 of the 256.
        assert!(hashes.len() > 130, "{}", hashes.len());
    }
}
