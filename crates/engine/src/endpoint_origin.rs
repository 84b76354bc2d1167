//! The names in the requests to an endpoint that has its own, and their timeout.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use thalweg_http2::{FieldList, FixedFields};

/// The names in the requests to an endpoint, in place of its channel's, and their timeout.
pub(crate) struct EndpointOrigin {
    /// The timeout of calls, which only [`CallPeer`](crate::CallPeer) reports.
    pub(crate) call_timeout: Option<Duration>,
    /// `:scheme`, `:authority` and `user-agent`.
    fields: [(&'static [u8], Box<[u8]>); 3],
    /// The channel's fixed headers with these names, by identity.
    adapted: RwLock<HashMap<u64, Arc<FixedFields>>>,
}

/// Maximum number of adapted headers that are kept. A channel has one for each method and timeout in use.
const ADAPTED_MAX: usize = 256;

impl EndpointOrigin {
    pub(crate) fn new(
        scheme: &str,
        authority: &str,
        user_agent: &str,
        call_timeout: Option<Duration>,
    ) -> Self {
        let fields = [
            (&b":scheme"[..], scheme.as_bytes().into()),
            (b":authority", authority.as_bytes().into()),
            (b"user-agent", user_agent.as_bytes().into()),
        ];
        Self { call_timeout, fields, adapted: RwLock::default() }
    }

    /// Returns fixed request headers of the channel with the names of this endpoint.
    pub(crate) fn adapt(&self, channel: &FixedFields) -> Arc<FixedFields> {
        let known = self.adapted.read().unwrap_or_else(PoisonError::into_inner).get(&channel.id()).cloned();
        known.unwrap_or_else(|| self.build(channel))
    }

    #[cold]
    fn build(&self, channel: &FixedFields) -> Arc<FixedFields> {
        let mut fields = FieldList::new();
        for field in channel.fields().iter() {
            let own = self.fields.iter().find(|(name, _)| *name == field.name);
            fields.push(field.name, own.map_or(field.value, |(_, value)| value), field.indexing);
        }
        let built = FixedFields::new(fields);
        let mut adapted = self.adapted.write().unwrap_or_else(PoisonError::into_inner);
        if adapted.len() >= ADAPTED_MAX {
            adapted.clear();
        }
        Arc::clone(adapted.entry(channel.id()).or_insert(built))
    }
}

impl fmt::Debug for EndpointOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointOrigin").finish_non_exhaustive()
    }
}
