//! Request heads that were encoded once, for each method of a channel.

use std::sync::{Arc, PoisonError, RwLock};

use http::HeaderMap;
use http::header::{CONTENT_TYPE, TE, USER_AGENT};
use thalweg_http2::{FieldList, FixedFields, Indexing};

use crate::grpc::compression::EncodingSet;
use crate::grpc::content_type;
use crate::grpc::metadata::{self, MetadataTooLarge};
use crate::method::Method;

/// The fixed part of the request heads of a channel, one for each method that was called.
///
/// A direct-mapped cache: methods made at run time have ever new numbers, and must not fill the memory.
pub(crate) struct RequestHeads {
    entries: RwLock<Vec<Option<CachedHead>>>,
}

struct CachedHead {
    method: u32,
    accepts: EncodingSet,
    fields: Arc<FixedFields>,
}

/// Methods whose heads are kept; two that meet in one entry only build theirs again.
const HEADS_MAX: usize = 256;

impl Default for RequestHeads {
    fn default() -> Self {
        Self { entries: RwLock::new(Vec::new()) }
    }
}

impl RequestHeads {
    pub(crate) fn get(
        &self,
        method: &Method,
        accepts: EncodingSet,
        build: impl FnOnce() -> thalweg_http2::FieldList,
    ) -> Arc<FixedFields> {
        let id = method.id();
        let index = id as usize % HEADS_MAX;
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(Some(cached)) = entries.get(index)
            && cached.method == id
            && cached.accepts == accepts
        {
            return Arc::clone(&cached.fields);
        }
        drop(entries);
        let fields = FixedFields::new(build());
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        if entries.len() <= index {
            entries.resize_with(index + 1, || None);
        }
        entries[index] = Some(CachedHead { method: id, accepts, fields: Arc::clone(&fields) });
        fields
    }
}

/// The beginning of the heads of requests that are sent as they are.
pub(crate) struct RequestHeadAsItIs {
    verb: http::Method,
    kind: Kind,
    pub(crate) method: Method,
    pub(crate) fields: Arc<FixedFields>,
}

/// What heads of requests have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// What gRPC's have: `te`, `content-type` and our user agent.
    Grpc,
    /// Our user agent.
    Plain,
    /// The application says who it is.
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

/// What the heads of requests of a channel say besides what is theirs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin<'a> {
    pub(crate) scheme: &'a str,
    pub(crate) authority: &'a str,
    pub(crate) user_agent: &'a str,
}

impl RequestHeadAsItIs {
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

    /// Whether it is surely gRPC's: its content type has no subtype.
    pub(crate) fn is_grpc(&self) -> bool {
        self.kind == Kind::Grpc
    }

    /// Appends what differs between requests with this beginning.
    pub(crate) fn emit(&self, headers: &HeaderMap, fields: &mut FieldList) -> Result<(), MetadataTooLarge> {
        // Opening the stream asks what the server accepts.
        let size_max = usize::MAX;
        if self.kind != Kind::Grpc {
            return metadata::emit_as_they_are(headers, |_| false, size_max, fields);
        }
        if headers.len() <= 2 {
            // `te` and `content-type`.
            return Ok(());
        }
        metadata::emit_as_they_are(headers, |name| matches!(name, "te" | "content-type"), size_max, fields)
    }
}

/// As [`RequestHeads`], of requests that are sent as they are.
#[derive(Default)]
pub(crate) struct RequestHeadsAsTheyAre {
    entries: RwLock<Vec<Option<Arc<RequestHeadAsItIs>>>>,
}

/// Paths of an application are its own choice: two that meet cost time, and nothing else.
fn place_of(path: &str, kind: Kind) -> usize {
    let (chunks, rest) = path.as_bytes().as_chunks::<8>();
    let rest = rest.iter().fold(kind as u64, |word, byte| word << 8 | u64::from(*byte));
    let words = chunks.iter().map(|chunk| u64::from_le_bytes(*chunk));
    // FNV's prime: what is multiplied spreads upwards, so the place is taken from there.
    let hash =
        words.fold(rest, |hash, word| (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29));
    (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % HEADS_MAX
}

impl RequestHeadsAsTheyAre {
    pub(crate) fn get(
        &self,
        verb: &http::Method,
        path: &str,
        headers: &HeaderMap,
        origin: Origin<'_>,
    ) -> Arc<RequestHeadAsItIs> {
        let kind = Kind::of(headers);
        let index = place_of(path, kind);
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(Some(known)) = entries.get(index)
            && known.kind == kind
            && known.method.path() == path
            && known.verb == *verb
        {
            return Arc::clone(known);
        }
        drop(entries);
        let head = Arc::new(RequestHeadAsItIs::new(verb, kind, path, origin));
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        if entries.len() <= index {
            entries.resize_with(index + 1, || None);
        }
        entries[index] = Some(Arc::clone(&head));
        head
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
        let place = place_of(path, Kind::Grpc);
        let other = (0..).map(|index| format!("/shop.Shop/Buy{index}"));
        let other = other.into_iter().find(|other| place_of(other, Kind::Grpc) == place).unwrap();
        let heads = RequestHeadsAsTheyAre::default();
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

    #[test]
    fn paths_are_spread() {
        let mut places: Vec<usize> =
            (0..HEADS_MAX).map(|index| place_of(&format!("/shop.Shop/Buy{index}"), Kind::Grpc)).collect();
        places.sort_unstable();
        places.dedup();
        // Chance would fill 162 of the 256.
        assert!(places.len() > 130, "{}", places.len());
    }
}
