//! Clients: an [`Endpoint`] holds the settings of a [`Channel`].

mod balance;
mod connection;
mod connector;
mod endpoint;
mod handle;
mod layers;
#[cfg(feature = "_tls-any")]
mod tls;

pub use balance::Change;
pub use endpoint::Endpoint;
pub use handle::{Channel, ResponseFuture};
pub use thalweg_engine::Lanes;
#[cfg(feature = "_tls-any")]
pub use tls::ClientTlsConfig;
