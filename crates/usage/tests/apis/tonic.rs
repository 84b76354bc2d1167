//! Names that the patterns use, from tonic.

use bytes::Bytes;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::codegen::StdError;
pub(crate) use tonic::transport::Channel;
pub(crate) use tonic::{Request, Response, Status, Streaming};

pub(crate) use pb::Item;
pub(crate) use pb::usage_client::UsageClient;
pub(crate) use pb::usage_server::{Usage, UsageServer};

#[allow(dead_code, unreachable_pub, clippy::pedantic, reason = "generated")]
mod pb {
    include!(concat!(env!("OUT_DIR"), "/tonic/usage.rs"));
}

/// Serves on a free port until the test ends.
pub(crate) async fn serve<T: Usage>(service: UsageServer<T>) -> Channel {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let server = tonic::transport::Server::builder().add_service(service);
    tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
    let endpoint = Channel::from_shared(format!("http://{address}")).expect("a URI");
    endpoint.connect().await.expect("the server listens")
}

/// Wraps the implementation of a service.
macro_rules! handlers {
    ($($item:tt)*) => {
        #[tonic::async_trait]
        $($item)*
    };
}
pub(crate) use handlers;

/// A function that takes a client of any channel.
pub(crate) async fn get_twice<C>(mut client: UsageClient<C>) -> Result<u64, Status>
where
    C: GrpcService<Body>,
    C::Error: Into<StdError>,
    C::ResponseBody: http_body::Body<Data = Bytes> + Send + 'static,
    <C::ResponseBody as http_body::Body>::Error: Into<StdError> + Send,
{
    let first = client.get(Item { value: 1 }).await?.into_inner().value;
    Ok(first + client.get(Item { value: 2 }).await?.into_inner().value)
}

/// A struct that holds a client of any channel, and makes its calls in tasks.
pub(crate) struct Tasks<C>(pub(crate) UsageClient<C>);

impl<C> Tasks<C>
where
    C: GrpcService<Body> + Clone + Send + 'static,
    C::Error: Into<StdError>,
    C::Future: Send,
    C::ResponseBody: http_body::Body<Data = Bytes> + Send + 'static,
    <C::ResponseBody as http_body::Body>::Error: Into<StdError> + Send,
{
    pub(crate) async fn sum(&self, values: Vec<Item>) -> Result<u64, Status> {
        let mut client = self.0.clone();
        let task = tokio::spawn(async move { client.sum(tokio_stream::iter(values)).await });
        Ok(task.await.expect("no panic")?.into_inner().value)
    }
}
