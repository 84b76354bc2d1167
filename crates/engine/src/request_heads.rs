//! Request heads that were encoded once, for each method of a channel.

use std::sync::{Arc, PoisonError, RwLock};

use thalweg_http2::FixedFields;

use crate::grpc::compression::EncodingSet;
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
