//! Servers as a resolver lists them, and the states of their connections.

use core::net::SocketAddr;
use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;

/// Address of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Address {
    /// IP address and port.
    Tcp(SocketAddr),
    /// Path of a UNIX domain socket.
    Unix(PathBuf),
    /// Name of a UNIX domain socket in Linux's abstract namespace, without the leading NUL.
    UnixAbstract(String),
    /// `host:port`, resolved by each attempt to connect.
    Name(String),
}

/// One server, with all its addresses (gRFC A61).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Endpoint {
    /// Addresses in order of preference; never empty.
    pub addresses: Vec<Address>,
    /// Relative weight, at least 1; 1 by default. Used by `ring_hash`, and by `pick_first` when it shuffles
    /// (gRFC A113).
    pub weight: u32,
    /// Key of the endpoint in the ring of `ring_hash` (gRFC A76); its first address by default.
    pub hash_key: Option<String>,
    /// Location of the endpoint, for policies of the application.
    pub locality: Locality,
    attributes: Attributes,
}

/// Values of the application; equal if they are the same objects.
#[derive(Clone, Default)]
struct Attributes(Vec<Arc<dyn Any + Send + Sync>>);

/// Location of an endpoint; empty strings by default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Locality {
    /// Region, such as `europe-west1`.
    pub region: String,
    /// Zone within the region.
    pub zone: String,
    /// Sub-zone within the zone.
    pub sub_zone: String,
}

/// Connectivity state of an endpoint or a channel, as gRPC defines it.
///
/// An endpoint that failed to connect stays in `TransientFailure` until it is `Ready` again, even while it reconnects
/// (gRFC A62).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConnectivityState {
    /// Not connected, and not trying to.
    Idle,
    /// Connecting for the first time, or after a connection was lost.
    Connecting,
    /// Connected: accepts calls.
    Ready,
    /// The last attempt to connect failed, or the endpoint reports that it is unhealthy.
    TransientFailure,
    /// Accepts no calls and never will again.
    Shutdown,
}

impl Endpoint {
    /// Creates an endpoint with one address.
    pub fn new(address: Address) -> Self {
        Self::with_addresses(vec![address])
    }

    /// Creates an endpoint with several addresses, in order of preference.
    ///
    /// # Panics
    /// Panics if `addresses` is empty.
    pub fn with_addresses(addresses: Vec<Address>) -> Self {
        assert!(!addresses.is_empty(), "an endpoint has at least one address");
        Self {
            addresses,
            weight: 1,
            hash_key: None,
            locality: Locality::default(),
            attributes: Attributes::default(),
        }
    }

    /// Sets the weight; 0 counts as 1.
    pub fn weight(mut self, weight: u32) -> Self {
        self.weight = weight.max(1);
        self
    }

    /// Sets the key in the ring of `ring_hash`.
    pub fn hash_key(mut self, key: impl Into<String>) -> Self {
        self.hash_key = Some(key.into());
        self
    }

    /// Sets the location.
    pub fn locality(mut self, locality: Locality) -> Self {
        self.locality = locality;
        self
    }

    /// Attaches a value, for resolvers and policies of the application; one per type.
    pub fn attribute<T: Any + Send + Sync>(mut self, value: T) -> Self {
        self.attributes.0.retain(|other| !other.is::<T>());
        self.attributes.0.push(Arc::new(value));
        self
    }

    /// Returns the attached value of this type.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.attributes.0.iter().find_map(|value| value.downcast_ref())
    }

    /// Returns whether the two are one server: they have the same addresses and the same attached values. Connections
    /// are kept then, even if a weight has changed.
    pub fn is_same(&self, other: &Self) -> bool {
        self.addresses == other.addresses && self.attributes == other.attributes
    }

    /// Returns the first address, which names the endpoint in messages.
    pub fn name(&self) -> &Address {
        &self.addresses[0]
    }
}

impl Attributes {
    fn addresses(&self) -> impl Iterator<Item = *const ()> {
        self.0.iter().map(|value| Arc::as_ptr(value).cast())
    }
}

impl PartialEq for Attributes {
    fn eq(&self, other: &Self) -> bool {
        self.addresses().eq(other.addresses())
    }
}

impl Eq for Attributes {}

impl Hash for Attributes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.addresses().for_each(|address| address.hash(state));
    }
}

impl fmt::Debug for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} set", self.0.len())
    }
}

impl From<SocketAddr> for Endpoint {
    fn from(address: SocketAddr) -> Self {
        Self::new(Address::Tcp(address))
    }
}

impl Locality {
    /// Creates a location.
    pub fn new(region: impl Into<String>, zone: impl Into<String>, sub_zone: impl Into<String>) -> Self {
        Self { region: region.into(), zone: zone.into(), sub_zone: sub_zone.into() }
    }
}

impl ConnectivityState {
    /// Returns the name that gRPC gives to the state, such as `TRANSIENT_FAILURE`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "IDLE",
            Self::Connecting => "CONNECTING",
            Self::Ready => "READY",
            Self::TransientFailure => "TRANSIENT_FAILURE",
            Self::Shutdown => "SHUTDOWN",
        }
    }
}

impl fmt::Display for ConnectivityState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::UnixAbstract(name) => write!(f, "unix-abstract:{name}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}
