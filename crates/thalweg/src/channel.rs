//! gRPC channels: [`Channel`].

mod builder;
mod handle;

pub use builder::ChannelBuilder;
pub use handle::Channel;
#[cfg(feature = "dns")]
pub use thalweg_engine::DnsResolver;
pub use thalweg_engine::service_config::{
    AttemptPolicy, MethodConfig, MethodName, PolicyRegistry, RetryThrottling, UnknownField,
};
pub use thalweg_engine::{
    Address, Backoff, CodeSet, ConnectError, ConnectStep, ConnectivityState, Endpoint, EndpointList,
    HedgingPolicy, LaneSnapshot, Lanes, Locality, Proxy, ProxyConfig, ProxyError, Resolution, ResolveError,
    Resolver, Resolving, RetryPolicy, ServiceConfig, ServiceConfigError, ServiceConfigSource, TargetError,
    policy,
};
