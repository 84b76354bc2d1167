//! Endpoints with settings of their own: TLS, socket options, the names in their requests.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use thalweg_balance::Endpoint;
use thalweg_http2::{FieldList, FixedFields};

use crate::channel::{ChannelConfig, ChannelParts};
use crate::destination::{ConnectError, Destination};
use crate::executor::Executor;
use crate::lanes::{Connector, Lanes};
use crate::resolver::Resolver;

impl ChannelConfig {
    /// Returns an endpoint at `target` that a balanced channel connects to with this configuration in place of its own:
    /// lanes, TLS, socket options, connector, HTTP/2 settings, keepalive, backoff, authority and user agent.
    ///
    /// # Errors
    /// Returns an error if a setting is invalid, as [`Channel::new`](crate::Channel::new) does.
    pub fn endpoint(self, target: &str) -> Result<Endpoint, ConnectError> {
        let destination = Destination::new(target, self.destination_settings())?;
        let addresses = destination.target.unresolved();
        let settings = EndpointSettings {
            resolver: self.resolver(&destination.target),
            executor: self.executor()?,
            origin: Arc::new(EndpointOrigin::new(&destination)),
            destination,
            config: self,
        };
        Ok(Endpoint::with_addresses(addresses).attribute(settings))
    }
}

/// Settings of an endpoint in place of its channel's.
#[derive(Debug)]
pub(crate) struct EndpointSettings {
    config: ChannelConfig,
    destination: Destination,
    resolver: Arc<dyn Resolver>,
    executor: Option<Arc<Executor>>,
    origin: Arc<EndpointOrigin>,
}

impl EndpointSettings {
    pub(crate) fn lanes(&self) -> &Lanes {
        &self.config.lanes
    }

    pub(crate) fn connector(&self, channel: ChannelParts) -> Connector {
        let addresses = self.config.addresses(self.destination.target.clone(), &self.resolver);
        let mut connector =
            self.config.connector(&self.destination, addresses, self.executor.clone(), channel);
        connector.connection.origin = Some(Arc::clone(&self.origin));
        connector
    }
}

/// The names in the requests to an endpoint, in place of its channel's.
pub(crate) struct EndpointOrigin {
    /// `:scheme`, `:authority` and `user-agent`.
    fields: [(&'static [u8], Box<[u8]>); 3],
    /// The channel's fixed headers with these names, by identity.
    adapted: RwLock<HashMap<u64, Arc<FixedFields>>>,
}

/// Maximum number of adapted headers that are kept. A channel has one for each method and timeout in use.
const ADAPTED_MAX: usize = 256;

impl EndpointOrigin {
    fn new(destination: &Destination) -> Self {
        let Destination { scheme, authority, user_agent, .. } = destination;
        let fields = [
            (&b":scheme"[..], scheme.as_bytes().into()),
            (b":authority", authority.as_bytes().into()),
            (b"user-agent", user_agent.as_bytes().into()),
        ];
        Self { fields, adapted: RwLock::default() }
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
