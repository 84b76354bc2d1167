//! One address to listen on, or several: [`ListenAddresses`].

use std::net::{IpAddr, SocketAddr};

use thalweg_engine::ListenAddress;

/// What a server can be told to listen on: one address, of a socket or any [`ListenAddress`], or a list of them.
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
    /// All of them.
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

// Of lists only those of one type: `&["127.0.0.1:0".parse()?]` has to say of what.
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
