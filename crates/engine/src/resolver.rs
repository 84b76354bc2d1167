//! Name resolution: from a channel's target to its endpoints.

use std::borrow::Cow;
use std::fmt;
use std::future::pending;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use thalweg_balance::policy::{PickFirstConfig, PolicyConfig};
use thalweg_balance::service_config::ServiceConfigError;
use thalweg_balance::{Address, Endpoint};
use tokio::sync::watch;

use crate::service_config_source::ServiceConfigSource;

/// Resolves a channel's target to endpoints.
///
/// The channel calls [`resolve`](Self::resolve) when it first needs a connection, after [`changed`](Self::changed), and
/// when an endpoint has failed. If its policy balances over several endpoints, it also calls it periodically. Several
/// channels may share a resolver.
pub trait Resolver: fmt::Debug + Send + Sync + 'static {
    /// Returns the current endpoints.
    fn resolve(&self) -> Resolving<'_>;

    /// Returns whether [`resolve`](Self::resolve) looks up a name, which the steps of a connection attempt then show;
    /// true by default.
    fn looks_up(&self) -> bool {
        true
    }

    /// Returns whether resolutions may have a [service config](Resolution::service_config); false by default. If so,
    /// calls wait for the first resolution, since it may have settings for them.
    fn gives_service_config(&self) -> bool {
        false
    }

    /// Waits until the resolver has another [`version`](Resolution::version) than this one, for resolvers that are
    /// notified of changes; never by default. Must be cancel-safe.
    fn changed(&self, _version: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(pending())
    }
}

impl<R: Resolver + ?Sized> Resolver for Arc<R> {
    fn resolve(&self) -> Resolving<'_> {
        (**self).resolve()
    }

    fn looks_up(&self) -> bool {
        (**self).looks_up()
    }

    fn gives_service_config(&self) -> bool {
        (**self).gives_service_config()
    }

    fn changed(&self, version: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        (**self).changed(version)
    }
}

/// A resolution in progress.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = Result<Resolution, ResolveError>> + Send + 'a>>;

/// Result of a resolution.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Resolution {
    /// The endpoints, in order of preference. Calls fail while the list is empty.
    pub endpoints: Vec<Endpoint>,
    /// Version of the list, for [`Resolver::changed`]; 0 by default.
    pub version: u64,
    /// The service config of the target, if it has one; none by default. It takes the place of the channel's own. After
    /// an error, or if it is invalid, the last one stays; without one, the resolution has failed (gRFC A21). Needs
    /// [`Resolver::gives_service_config`].
    pub service_config: Option<Result<ServiceConfigSource, ServiceConfigError>>,
    /// Reason why the list is empty, for the errors of calls; none by default.
    pub note: Option<Cow<'static, str>>,
}

/// Reason why a target was not resolved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ResolveError(Cow<'static, str>);

impl Resolution {
    /// Creates a resolution with these endpoints.
    pub fn new(endpoints: impl IntoIterator<Item = impl Into<Endpoint>>) -> Self {
        Self { endpoints: endpoints.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Sets the service config.
    pub fn service_config(mut self, config: impl Into<ServiceConfigSource>) -> Self {
        self.service_config = Some(Ok(config.into()));
        self
    }

    /// Returns the note, if the list is empty.
    pub(crate) fn why_empty(&mut self) -> Option<Cow<'static, str>> {
        self.note.take().filter(|_| self.endpoints.is_empty())
    }
}

impl ResolveError {
    /// Creates an error with a message for humans.
    pub fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self(message.into())
    }
}

impl From<io::Error> for ResolveError {
    fn from(error: io::Error) -> Self {
        Self(error.to_string().into())
    }
}

/// A list of endpoints that the application changes at any time. Clones share the list.
///
/// ```
/// use thalweg_engine::EndpointList;
///
/// let servers = EndpointList::new(["10.0.0.1:50051".parse::<std::net::SocketAddr>()?]);
/// servers.set(["10.0.0.1:50051".parse::<std::net::SocketAddr>()?, "10.0.0.2:50051".parse()?]);
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Debug)]
pub struct EndpointList {
    current: Arc<watch::Sender<Resolution>>,
}

impl EndpointList {
    /// Creates a list of endpoints.
    pub fn new(endpoints: impl IntoIterator<Item = impl Into<Endpoint>>) -> Self {
        Self { current: Arc::new(watch::Sender::new(Resolution::new(endpoints))) }
    }

    /// Replaces the endpoints. Channels keep their connections to those that stay. Calls in flight on others end
    /// normally.
    pub fn set(&self, endpoints: impl IntoIterator<Item = impl Into<Endpoint>>) {
        let endpoints: Vec<Endpoint> = endpoints.into_iter().map(Into::into).collect();
        self.current.send_modify(|current| {
            current.endpoints = endpoints;
            current.version += 1;
        });
    }
}

impl Resolver for EndpointList {
    fn looks_up(&self) -> bool {
        false
    }

    fn resolve(&self) -> Resolving<'_> {
        let current = self.current.borrow().clone();
        Box::pin(async move { Ok(current) })
    }

    fn changed(&self, version: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let mut receiver = self.current.subscribe();
        Box::pin(async move {
            // The sender lives as long as this borrow.
            let _ = receiver.wait_for(|current| current.version != version).await;
        })
    }
}

/// Source of the addresses that a connection attempt tries.
#[derive(Clone, Debug)]
pub(crate) enum AddressSource {
    /// All addresses that the resolver lists, in the order of gRPC's `pick_first`.
    Resolver { resolver: Arc<dyn Resolver>, pick_first: PickFirstConfig, seed: u64 },
    /// The addresses of one endpoint of a balanced channel.
    Endpoint(Endpoint),
}

impl AddressSource {
    /// Returns whether addresses come from a name lookup, which takes time.
    pub(crate) fn resolves_names(&self) -> bool {
        match self {
            Self::Endpoint(_) => false,
            Self::Resolver { resolver, .. } => resolver.looks_up(),
        }
    }

    /// Returns the addresses. Names stay names unless it `looks_up` these.
    pub(crate) async fn addresses(&self, looks_up: bool) -> Result<Vec<Address>, ResolveError> {
        let addresses = match self {
            Self::Endpoint(endpoint) => endpoint.addresses.clone(),
            Self::Resolver { resolver, pick_first, seed } => {
                let mut resolution = resolve(&**resolver).await?;
                if let Some(note) = resolution.why_empty() {
                    return Err(ResolveError(note));
                }
                let selected = PolicyConfig::PickFirst(*pick_first).build(*seed).select(resolution.endpoints);
                selected.into_iter().flat_map(|endpoint| endpoint.addresses).collect()
            }
        };
        if looks_up { look_up(addresses).await } else { Ok(addresses) }
    }
}

/// Resolves a target.
pub(crate) async fn resolve(resolver: &dyn Resolver) -> Result<Resolution, ResolveError> {
    let resolution = resolver.resolve().await?;
    if resolution.service_config.is_some() && !resolver.gives_service_config() {
        let hint = "let its gives_service_config() return true";
        return Err(ResolveError::new(format!("the resolver gives a service config unannounced; {hint}")));
    }
    Ok(resolution)
}

/// Replaces names by their addresses.
async fn look_up(addresses: Vec<Address>) -> Result<Vec<Address>, ResolveError> {
    let mut found = Vec::with_capacity(addresses.len());
    for address in addresses {
        match address {
            Address::Name(name) => found.extend(look_up_name(&name).await?),
            address => found.push(address),
        }
    }
    Ok(found)
}

/// Looks up the addresses of `host:port` with the system's resolver.
pub(crate) async fn look_up_name(name: &str) -> Result<Vec<Address>, ResolveError> {
    let hint = "check the name and its DNS records";
    // The system looks up an IPv6 zone only without brackets.
    let zoned = name.strip_prefix('[').and_then(|rest| rest.split_once("]:"));
    let zoned = zoned.and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
    let found = match zoned {
        Some((host, port)) => tokio::net::lookup_host((host, port)).await.map(Vec::from_iter),
        None => tokio::net::lookup_host(name).await.map(Vec::from_iter),
    };
    let found: Vec<_> = found
        .map_err(|error| ResolveError::new(format!("{error} ({hint})")))?
        .into_iter()
        .map(Address::Tcp)
        .collect();
    if found.is_empty() {
        return Err(ResolveError::new(format!("the name has no address ({hint})")));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn zones_of_ipv6_addresses_are_looked_up() {
        let found = look_up_name("[fe80::1%lo]:7101").await.expect("the loopback interface");
        let [Address::Tcp(std::net::SocketAddr::V6(address))] = found[..] else { panic!("{found:?}") };
        assert_eq!((address.ip().segments()[0], address.port()), (0xfe80, 7101));
        assert!(address.scope_id() > 0, "{address}");
        let error = look_up_name("[fe80::1%none]:7101").await.unwrap_err();
        assert!(error.to_string().contains("check the name"), "{error}");
    }
}
