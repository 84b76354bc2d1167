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
pub(crate) struct RequestHeads {
    heads: Heads<CachedHead>,
}

#[derive(Clone)]
struct CachedHead {
    method: u32,
    accepts: EncodingSet,
    timeout: Option<Duration>,
    fields: Arc<FixedFields>,
}

impl RequestHeads {
    #[inline]
    pub(crate) fn get(
        &self,
        method: &Method,
        accepts: EncodingSet,
        timeout: Option<Duration>,
        build: impl FnOnce() -> FieldList,
    ) -> Arc<FixedFields> {
        let method = method.id();
        let is_it =
            |head: &CachedHead| head.method == method && head.accepts == accepts && head.timeout == timeout;
        let build = || CachedHead { method, accepts, timeout, fields: FixedFields::new(build()) };
        // Methods are numbered in sequence, and most have one timeout.
        let place = method as usize + timeout.map_or(0, |timeout| timeout.as_millis() as usize % 61);
        self.heads.get(place, is_it, build).fields
    }
}

/// Cache of header blocks: one for the channel, and per-thread copies of those in use, since each call counts a
/// reference.
///
/// The size is bounded, because methods created at run time have ever new numbers.
struct Heads<T> {
    channels: RwLock<Vec<Option<T>>>,
    threads: PerThread<RwLock<Vec<Option<T>>>>,
}

/// Size of the channel's cache. After a collision the entry is built again.
const HEADS_MAX: usize = 256;
/// Size of a thread's cache. It is two-way associative, so two colliding entries used in turn both stay.
const HEADS_OF_THREAD_MAX: usize = 64;

/// A value whose copy has a reference count of its own.
trait Copied: Clone {
    fn copied(&self) -> Self;
}

impl<T> Default for Heads<T> {
    fn default() -> Self {
        Self { channels: RwLock::default(), threads: PerThread::default() }
    }
}

impl<T: Copied> Heads<T> {
    #[inline]
    fn get(&self, place: usize, is_it: impl Fn(&T) -> bool, build: impl FnOnce() -> T) -> T {
        {
            let own = read(self.threads.own());
            let index = place % HEADS_OF_THREAD_MAX;
            if let Some(known) = at(&own, index, &is_it).or_else(|| at(&own, index ^ 1, &is_it)) {
                return known.clone();
            }
        }
        self.copy_for_thread(place, is_it, build)
    }

    #[cold]
    fn copy_for_thread(&self, place: usize, is_it: impl Fn(&T) -> bool, build: impl FnOnce() -> T) -> T {
        let copy = self.of_channel(place % HEADS_MAX, &is_it, build).copied();
        let index = place % HEADS_OF_THREAD_MAX;
        let mut own = write(self.threads.own());
        // With more threads than processors, another thread with the same cache may have added it meanwhile.
        if let Some(known) = at(&own, index, &is_it).or_else(|| at(&own, index ^ 1, &is_it)) {
            return known.clone();
        }
        if let Some(former) = put(&mut own, index, copy.clone()) {
            put(&mut own, index ^ 1, former);
        }
        copy
    }

    fn of_channel(&self, index: usize, is_it: impl Fn(&T) -> bool, build: impl FnOnce() -> T) -> T {
        if let Some(known) = at(&read(&self.channels), index, &is_it) {
            return known.clone();
        }
        let built = build();
        let mut heads = write(&self.channels);
        // Concurrent builders all use the first one's, because connections identify header blocks by id.
        if let Some(known) = at(&heads, index, &is_it) {
            return known.clone();
        }
        put(&mut heads, index, built.clone());
        built
    }
}

#[inline]
fn read<T>(heads: &RwLock<Vec<Option<T>>>) -> RwLockReadGuard<'_, Vec<Option<T>>> {
    heads.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(heads: &RwLock<Vec<Option<T>>>) -> RwLockWriteGuard<'_, Vec<Option<T>>> {
    heads.write().unwrap_or_else(PoisonError::into_inner)
}

#[inline]
fn at<T>(heads: &[Option<T>], index: usize, is_it: impl FnOnce(&T) -> bool) -> Option<&T> {
    heads.get(index)?.as_ref().filter(|head| is_it(head))
}

/// Returns the previous entry.
fn put<T>(heads: &mut Vec<Option<T>>, index: usize, head: T) -> Option<T> {
    if heads.len() <= index {
        heads.resize_with(index + 1, || None);
    }
    heads[index].replace(head)
}

impl Copied for CachedHead {
    fn copied(&self) -> Self {
        Self { fields: self.fields.duplicate(), ..*self }
    }
}

impl Copied for Arc<RawRequestHead> {
    fn copied(&self) -> Self {
        Arc::new(RawRequestHead {
            verb: self.verb.clone(),
            kind: self.kind,
            method: self.method.clone(),
            fields: self.fields.duplicate(),
        })
    }
}

/// Fixed headers of raw requests.
pub(crate) struct RawRequestHead {
    verb: http::Method,
    kind: Kind,
    pub(crate) method: Method,
    pub(crate) fields: Arc<FixedFields>,
}

/// The fields that are part of the fixed headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// gRPC: `te`, `content-type` and our user agent.
    Grpc,
    /// Our user agent only.
    Plain,
    /// None: the application sets its own user agent.
    Named,
}

impl Kind {
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

impl RawRequestHead {
    fn new(verb: &http::Method, kind: Kind, path: &str, origin: Origin<'_>) -> Self {
        let mut fields = FieldList::new();
        let mut push =
            |name: &str, value: &str| fields.push(name.as_bytes(), value.as_bytes(), Indexing::Insert);
        push(":method", verb.as_str());
        push(":scheme", origin.scheme);
        push(":path", path);
        push(":authority", origin.authority);
        if kind == Kind::Grpc {
            push("te", "trailers");
            push("content-type", content_type::GRPC);
        }
        if kind != Kind::Named {
            push("user-agent", origin.user_agent);
        }
        Self { verb: verb.clone(), kind, method: Method::at(path), fields: FixedFields::new(fields) }
    }

    /// Returns whether it is gRPC without a content subtype. False does not rule gRPC out.
    pub(crate) fn is_grpc(&self) -> bool {
        self.kind == Kind::Grpc
    }

    /// Appends the fields that are not part of the fixed headers.
    pub(crate) fn emit(&self, headers: &HeaderMap, fields: &mut FieldList) -> Result<(), MetadataTooLarge> {
        // The server's limit is checked when the stream is opened.
        let size_max = usize::MAX;
        if self.kind != Kind::Grpc {
            return metadata::emit_raw(headers, |_| false, size_max, fields);
        }
        if headers.len() <= 2 {
            // Only `te` and `content-type`.
            return Ok(());
        }
        metadata::emit_raw(headers, |name| matches!(name, "te" | "content-type"), size_max, fields)
    }
}

/// Like [`RequestHeads`], for raw requests.
#[derive(Default)]
pub(crate) struct RawRequestHeads {
    heads: Heads<Arc<RawRequestHead>>,
}

/// Applications choose the paths; a collision only costs time.
fn place_of(path: &str, kind: Kind) -> usize {
    let (chunks, rest) = path.as_bytes().as_chunks::<8>();
    let rest = rest.iter().fold(kind as u64, |word, byte| word << 8 | u64::from(*byte));
    let words = chunks.iter().map(|chunk| u64::from_le_bytes(*chunk));
    // FNV's prime. Multiplication spreads bits upwards, so the place is taken from the high bits.
    let hash =
        words.fold(rest, |hash, word| (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29));
    (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
}

impl RawRequestHeads {
    pub(crate) fn get(
        &self,
        verb: &http::Method,
        path: &str,
        headers: &HeaderMap,
        origin: Origin<'_>,
    ) -> Arc<RawRequestHead> {
        let kind = Kind::of(headers);
        let is_it = |head: &Arc<RawRequestHead>| {
            head.kind == kind && head.method.path() == path && head.verb == *verb
        };
        let build = || Arc::new(RawRequestHead::new(verb, kind, path, origin));
        self.heads.get(place_of(path, kind), is_it, build)
    }
}

#[cfg(test)]
mod tests {
    use http::Method as Verb;

    use super::*;

    #[test]
    fn requests_that_meet_in_one_place_have_their_own_heads() {
        let origin = Origin { scheme: "http", authority: "shop", user_agent: "test" };
        let mut grpc = HeaderMap::new();
        grpc.insert(TE, "trailers".parse().unwrap());
        grpc.insert(CONTENT_TYPE, content_type::GRPC.parse().unwrap());
        let path = "/shop.Shop/Buy";
        let place_of = |path: &str, kind| place_of(path, kind) % HEADS_MAX;
        let place = place_of(path, Kind::Grpc);
        let other = (0..).map(|index| format!("/shop.Shop/Buy{index}"));
        let other = other.into_iter().find(|other| place_of(other, Kind::Grpc) == place).unwrap();
        let heads = RawRequestHeads::default();
        for (verb, path) in
            [(Verb::POST, path), (Verb::POST, &other), (Verb::PUT, &other), (Verb::POST, path)]
        {
            let head = heads.get(&verb, path, &grpc, origin);
            assert_eq!((&head.verb, head.method.path()), (&verb, path));
            assert!(head.is_grpc());
            assert!(Arc::ptr_eq(&head, &heads.get(&verb, path, &grpc, origin)));
        }
        assert!(!heads.get(&Verb::POST, path, &HeaderMap::new(), origin).is_grpc());
    }

    /// Encoders identify header blocks by their number: calls with the same timeout share one, others do not.
    #[test]
    fn calls_of_a_method_share_a_head_for_each_timeout() {
        let heads = RequestHeads::default();
        let method = Method::new("/a.B/C");
        let get = |millis: Option<u64>| {
            let timeout = millis.map(Duration::from_millis);
            heads.get(&method, EncodingSet::ALL, timeout, FieldList::new)
        };
        let of = [None, Some(100), Some(250), Some(10_000)].map(|millis| (millis, get(millis)));
        for (millis, head) in &of {
            for (other, _) in &of {
                assert_eq!(Arc::ptr_eq(head, &get(*other)), millis == other, "{millis:?} and {other:?}");
            }
        }
    }

    /// Threads use a method for the first time all at once, and another whose entry collides with it.
    #[test]
    fn threads_have_copies_of_one_head_and_keep_two_that_meet() {
        let heads = Heads::default();
        let barrier = std::sync::Barrier::new(4);
        let get = |method: usize, builder: &str| {
            let build = || {
                let mut fields = FieldList::new();
                fields.push(b"built-by", builder.as_bytes(), Indexing::Literal);
                let (method, accepts) = (method as u32, EncodingSet::ALL);
                CachedHead { method, accepts, timeout: None, fields: FixedFields::new(fields) }
            };
            heads.get(method, |head| head.method as usize == method, build).fields
        };
        let (one, other) = (7, 7 + HEADS_OF_THREAD_MAX);
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
        let firsts = std::thread::scope(|scope| {
            ["a", "b", "c", "d"]
                .map(|builder| scope.spawn(thread(builder)))
                .map(|thread| thread.join().unwrap())
        });
        for head in &firsts[1..] {
            assert!(head.fields() == firsts[0].fields(), "built by one of them");
        }
    }

    #[test]
    fn paths_are_spread() {
        let mut places: Vec<usize> = (0..HEADS_MAX)
            .map(|index| place_of(&format!("/shop.Shop/Buy{index}"), Kind::Grpc) % HEADS_MAX)
            .collect();
        places.sort_unstable();
        places.dedup();
        // Random places would fill 162 of the 256.
        assert!(places.len() > 130, "{}", places.len());
    }
}
