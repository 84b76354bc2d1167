//! Settings and functions of channels beyond tonic's interface: [`EndpointExt`] and [`ChannelExt`].

use std::sync::Arc;
use std::time::Duration;

use thalweg_engine::policy::PolicyConfig;
use thalweg_engine::{Backoff, ChannelConfig, ConnectivityState, Resolver, ServiceConfigSource};
use vocabulary::ConnectError;

use super::endpoint::Endpoint;
use super::handle::Channel;
use crate::transport::error::Error;

/// Settings of an [`Endpoint`] beyond tonic's. Without them it behaves like tonic's.
///
/// Those of an endpoint in a balanced list concern its own connections only: the backoff, for example, but not the
/// service config. A channel with a [resolver](Self::resolver) and a [policy](Self::load_balancing) has all of them.
///
/// ```no_run
/// use thalweg_tonic::transport::channel::policy::PolicyConfig;
/// use thalweg_tonic::transport::channel::{ChannelExt, EndpointExt};
/// use thalweg_tonic::transport::Endpoint;
///
/// # async fn example() -> Result<(), thalweg_tonic::transport::Error> {
/// let channel = Endpoint::from_static("http://orders.shop:50051")
///     .load_balancing(PolicyConfig::RoundRobin)
///     .service_config(r#"{ "methodConfig": [{ "name": [{}], "timeout": "2s" }] }"#)
///     .connect_lazy();
/// channel.connected().await?;
/// # Ok(()) }
/// ```
pub trait EndpointExt: sealed::Sealed + Sized {
    /// Changes any setting of the engine: [`ChannelConfig`]. It runs after tonic's settings, each time that a channel
    /// is created.
    #[must_use]
    fn configure(self, set: impl Fn(&mut ChannelConfig) + Send + Sync + 'static) -> Self;

    /// Sets the resolver in place of DNS. The URI then names the server: scheme and `:authority`.
    #[must_use]
    fn resolver(self, resolver: impl Resolver) -> Self {
        let resolver = Arc::new(resolver);
        self.configure(move |config| config.set_resolver(Arc::clone(&resolver)))
    }

    /// Sets the [balancing policy](field@ChannelConfig::load_balancing); `pick_first` by default.
    #[must_use]
    fn load_balancing(self, policy: PolicyConfig) -> Self {
        self.configure(move |config| config.load_balancing = policy.clone())
    }

    /// Sets a [service config](field@ChannelConfig::service_config), as JSON or typed; none by default. If it is
    /// invalid, connecting fails, and so do calls of a lazy channel.
    #[must_use]
    fn service_config(self, config: impl Into<ServiceConfigSource>) -> Self {
        let source = config.into();
        self.configure(move |config| config.service_config = Some(source.clone()))
    }

    /// Sets the delay after a failed attempt to connect, which grows from `min` by 1.6 each time to `max`; 50 ms and
    /// 1 s by default. gRPC's other implementations wait 1 s to 120 s.
    #[must_use]
    fn connect_backoff(self, min: Duration, max: Duration) -> Self {
        self.configure(move |config| {
            config.backoff = Backoff::default().base_delay(min).max_delay(max);
        })
    }

    /// Sets whether calls wait while no server is reachable, instead of failing with UNAVAILABLE; off by default. A
    /// request may decide for itself: [`WaitForReady`](super::WaitForReady).
    #[must_use]
    fn wait_for_ready(self, waits: bool) -> Self {
        self.configure(move |config| config.call_options.wait_for_ready = Some(waits))
    }

    /// Sets whether [retry policies](field@ChannelConfig::retries) of the service config apply; on by default.
    #[must_use]
    fn retries(self, is_enabled: bool) -> Self {
        self.configure(move |config| config.retries = is_enabled)
    }
}

/// Functions of a [`Channel`] beyond tonic's.
pub trait ChannelExt: sealed::Sealed {
    /// Returns the connectivity state of the channel; `TransientFailure` if it could not be set up.
    fn state(&self) -> ConnectivityState;

    /// Retries a failed connection at once, and starts the backoff again. For programs that know that the network is
    /// back.
    fn reset_backoff(&self);

    /// Connects the channel, unless it is connected.
    ///
    /// # Errors
    /// Returns an error if no server is reachable, or the channel could not be set up.
    fn connected(&self) -> impl Future<Output = Result<(), Error>> + Send;
}

impl EndpointExt for Endpoint {
    fn configure(self, set: impl Fn(&mut ChannelConfig) + Send + Sync + 'static) -> Self {
        self.with_setting(Arc::new(set))
    }
}

impl ChannelExt for Channel {
    fn state(&self) -> ConnectivityState {
        self.engine().map_or(ConnectivityState::TransientFailure, thalweg_engine::Channel::state)
    }

    fn reset_backoff(&self) {
        if let Some(engine) = self.engine() {
            engine.reset_connect_backoff();
        }
    }

    async fn connected(&self) -> Result<(), Error> {
        match (self.engine(), self.setup_error()) {
            (Some(engine), _) => {
                engine.connect().await.map_err(|error| Error::transport(ConnectError(error.into())))
            }
            (None, error) => error.map_or(Ok(()), Err),
        }
    }
}

mod sealed {
    pub trait Sealed {}

    impl Sealed for super::Endpoint {}
    impl Sealed for super::Channel {}
}
