//! Addresses to listen on: [`ListenAddresses`].

use std::net::{IpAddr, SocketAddr};

use thalweg_engine::ListenAddress;

/// Addresses that a server can listen on: a socket address, any [`ListenAddress`], or a list of them.
///
/// ```no_run
/// # use std::net::SocketAddr;
/// # use thalweg::Server;
/// # async fn example(address: SocketAddr) -> Result<(), Box<dyn std::error::Error>> {
/// let server = Server::builder().bind(address).await?;
/// let server = Server::builder().bind(&["127.0.0.1:50051".parse()?, "unix:/tmp/greeter".parse()?]).await?;
/// # Ok(()) }
/// ```
pub trait ListenAddresses {
    /// Returns all addresses.
    fn into_addresses(self) -> Vec<ListenAddress>;
}

macro_rules! one {
    ($($address:ty),*) => {
        $(
            impl ListenAddresses for $address {
                fn into_addresses(self) -> Vec<ListenAddress> {
                    vec![self.into()]
                }
            }
        )*
    };
}

one!(ListenAddress, SocketAddr, (IpAddr, u16));

impl ListenAddresses for &[ListenAddress] {
    fn into_addresses(self) -> Vec<ListenAddress> {
        self.to_vec()
    }
}

// Only lists of one type: otherwise the type of `"127.0.0.1:0".parse()?` in a list would be ambiguous.
impl<const N: usize> ListenAddresses for &[ListenAddress; N] {
    fn into_addresses(self) -> Vec<ListenAddress> {
        self.to_vec()
    }
}

impl ListenAddresses for &Vec<ListenAddress> {
    fn into_addresses(self) -> Vec<ListenAddress> {
        self.clone()
    }
}
