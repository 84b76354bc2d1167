//! Endpoints with settings of their own: TLS, socket options, the names in their requests.

use std::sync::Arc;

use thalweg_balance::Endpoint;

use crate::channel::ChannelConfig;
use crate::destination::{ConnectError, Destination};
use crate::endpoint_origin::EndpointOrigin;
use crate::endpoints::{ConnectorFactory, OwnSettings};
use crate::executor::Executor;
use crate::lanes::{ChannelParts, Connector, Lanes};
use crate::resolver::Resolver;

impl ChannelConfig {
    /// Returns an endpoint at `target` that a balanced channel connects to with this configuration in place of its own:
    /// lanes, TLS, socket options, connector, HTTP/2 settings, keepalive, backoff, authority and user agent. Of its
    /// options of calls, only the timeout counts: [`CallPeer::endpoint_deadline`](crate::CallPeer::endpoint_deadline).
    ///
    /// # Errors
    /// Returns an error if a setting is invalid, as [`Channel::new`](crate::Channel::new) does.
    pub fn endpoint(self, target: &str) -> Result<Endpoint, ConnectError> {
        let destination = Destination::new(target, self.destination_settings())?;
        let addresses = destination.target.unresolved();
        let Destination { scheme, authority, user_agent, .. } = &destination;
        let origin = EndpointOrigin::new(scheme, authority, user_agent, self.call_options.timeout);
        let settings = EndpointSettings {
            resolver: self.resolver(&destination),
            executor: self.executor()?,
            origin: Arc::new(origin),
            destination,
            config: self,
        };
        Ok(Endpoint::with_addresses(addresses).attribute(OwnSettings(Box::new(settings))))
    }
}

/// Settings of an endpoint in place of its channel's.
#[derive(Debug)]
struct EndpointSettings {
    config: ChannelConfig,
    destination: Destination,
    resolver: Arc<dyn Resolver>,
    executor: Option<Arc<Executor>>,
    origin: Arc<EndpointOrigin>,
}

impl ConnectorFactory for EndpointSettings {
    fn lanes(&self) -> &Lanes {
        &self.config.lanes
    }

    fn connector(&self, channel: ChannelParts) -> Connector {
        let addresses = self.config.addresses(&self.destination, &self.resolver, &self.config.load_balancing);
        let mut connector =
            self.config.connector(&self.destination, addresses, self.executor.clone(), channel);
        connector.connection.origin = Some(Arc::clone(&self.origin));
        connector
    }
}
