//! Names that the patterns use, from the crate `thalweg`.

use std::net::{Ipv4Addr, SocketAddr};

pub(crate) use thalweg::{Channel, Request, Response, Status, Streaming};

pub(crate) use pb::Item;
pub(crate) use pb::usage_client::UsageClient;
pub(crate) use pb::usage_server::{Usage, UsageServer};

#[allow(unreachable_pub, clippy::pedantic, reason = "generated")]
mod pb {
    include!(concat!(env!("OUT_DIR"), "/native/usage.rs"));
}

/// Serves on a free port until the test ends.
pub(crate) async fn serve<T: Usage>(service: UsageServer<T>) -> Channel {
    let server = thalweg::Server::builder().add_service(service);
    let server = server.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.expect("a free port");
    let address = server.local_addresses()[0].to_string();
    tokio::spawn(server.serve());
    Channel::builder(address).connect().await.expect("the server listens")
}

/// Wraps the implementation of a service.
macro_rules! handlers {
    ($($item:tt)*) => { $($item)* };
}
pub(crate) use handlers;

/// A function that takes a client of any channel.
pub(crate) async fn get_twice<C: thalweg::Caller>(client: UsageClient<C>) -> Result<u64, Status> {
    let first = client.get(Item { value: 1 }).await?.into_inner().value;
    Ok(first + client.get(Item { value: 2 }).await?.into_inner().value)
}

/// A struct that holds a client of any channel, and makes its calls in tasks.
pub(crate) struct Tasks<C>(pub(crate) UsageClient<C>);

impl<C: thalweg::Caller> Tasks<C> {
    pub(crate) async fn sum(&self, values: Vec<Item>) -> Result<u64, Status> {
        let client = self.0.clone();
        let task = tokio::spawn(async move { client.sum(tokio_stream::iter(values)).await });
        Ok(task.await.expect("no panic")?.into_inner().value)
    }
}
