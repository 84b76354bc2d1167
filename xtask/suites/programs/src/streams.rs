//! Streams of small messages, as programs write them: any `Stream` of plain messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use futures::stream::{self, BoxStream, Stream, StreamExt as _};
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status, Streaming};

use crate::outcome::Outcome;

tonic::include_proto!("programs.Leaves");

use leaves_client::LeavesClient;
use leaves_server::{Leaves, LeavesServer};

#[derive(Clone, PartialEq, prost::Message)]
pub struct Leaf {
    #[prost(bytes = "bytes", tag = "1")]
    pub data: Bytes,
}

pub async fn serve(address: &str) -> Outcome {
    Ok(Server::builder().add_service(LeavesServer::new(Branch)).serve(address.parse()?).await?)
}

/// A stream that runs until the window is over, and the messages that have passed its end.
#[derive(Clone)]
pub struct Passing {
    pub passed: Arc<AtomicU64>,
    pub is_over: Arc<AtomicBool>,
}

/// Runs the stream `name`: `send-N`, `receive-N` or `exchange-N`, with messages of N bytes.
pub async fn run(name: &str, address: &str, passing: Passing) -> Outcome {
    let endpoint = Endpoint::from_shared(format!("http://{address}"))?;
    let mut client: LeavesClient<Channel> = LeavesClient::new(endpoint.connect().await?);
    let (call, size) = name.split_once('-').ok_or("no size")?;
    let leaf = Leaf { data: Bytes::from(vec![7; size.parse()?]) };
    match call {
        "send" => {
            client.send(passing.clone().count(leaf)).await?;
            Ok(())
        }
        "receive" => passing.drain(client.receive(leaf).await?.into_inner()).await,
        "exchange" => {
            let is_over = passing.is_over.clone();
            let requests = stream::repeat(leaf).take_while(move |_| {
                let goes_on = !is_over.load(Ordering::Relaxed);
                async move { goes_on }
            });
            passing.drain(client.exchange(requests).await?.into_inner()).await
        }
        _ => Err(format!("unknown stream `{name}`").into()),
    }
}

impl Passing {
    /// Messages that count when they are taken: the window is long against a connection's buffers.
    fn count(self, leaf: Leaf) -> impl Stream<Item = Leaf> {
        stream::iter(std::iter::repeat_with(move || leaf.clone()).take_while(move |_| {
            self.passed.fetch_add(1, Ordering::Relaxed);
            !self.is_over.load(Ordering::Relaxed)
        }))
    }

    async fn drain(self, mut leaves: Streaming<Leaf>) -> Outcome {
        while !self.is_over.load(Ordering::Relaxed) {
            leaves.message().await?.ok_or("the stream ended")?;
            self.passed.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

struct Branch;

#[tonic::async_trait]
impl Leaves for Branch {
    async fn send(&self, request: Request<Streaming<Leaf>>) -> Result<Response<Leaf>, Status> {
        let mut leaves = request.into_inner();
        while leaves.message().await?.is_some() {}
        Ok(Response::new(Leaf::default()))
    }

    type ReceiveStream = BoxStream<'static, Result<Leaf, Status>>;

    async fn receive(&self, request: Request<Leaf>) -> Result<Response<Self::ReceiveStream>, Status> {
        let leaf = request.into_inner();
        Ok(Response::new(stream::iter(std::iter::repeat_with(move || Ok(leaf.clone()))).boxed()))
    }

    type ExchangeStream = BoxStream<'static, Result<Leaf, Status>>;

    async fn exchange(
        &self,
        request: Request<Streaming<Leaf>>,
    ) -> Result<Response<Self::ExchangeStream>, Status> {
        Ok(Response::new(request.into_inner().boxed()))
    }
}
