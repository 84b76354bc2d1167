//! Clients: an [`Endpoint`] holds the settings of a [`Channel`].

mod balance;
mod connection;
mod connector;
mod endpoint;
mod extension;
#[cfg(not(own_vocabulary))]
mod foreign_body;
mod handle;
mod layers;
mod rate_limit;
#[cfg(feature = "_tls-any")]
mod tls;
mod wait_for_ready;

pub use balance::Change;
pub use endpoint::Endpoint;
pub use extension::{ChannelExt, EndpointExt};
pub use handle::{Channel, ResponseFuture};
pub use thalweg_engine::{
    ChannelConfig, ConnectivityState, EndpointList, Lanes, Resolution, ResolveError, Resolver, Resolving,
    ServiceConfigSource, policy, service_config,
};
#[cfg(feature = "_tls-any")]
pub use tls::ClientTlsConfig;
pub use wait_for_ready::WaitForReady;
