//! Patterns of user code, one per test. Most run as a task, which requires their future to be `Send`.

#![allow(unused_mut, reason = "a client of tonic's is mutable")]

mod clients;
mod requests;
mod responses;
mod servers;

use std::pin::Pin;

use tokio_stream::{Stream, StreamExt as _};

use crate::api::{
    Channel, Item, Request, Response, Status, Streaming, Usage, UsageClient, UsageServer, handlers, serve,
};

pub(crate) type BoxStream<T> = Pin<Box<dyn Stream<Item = T> + Send>>;

/// A service without state: `List` counts up to the request's value, `Chat` doubles values.
#[derive(Clone, Copy, Debug)]
struct Plain;

handlers! {
    impl Usage for Plain {
        async fn get(&self, request: Request<Item>) -> Result<Response<Item>, Status> {
            Ok(Response::new(request.into_inner()))
        }

        type ListStream = BoxStream<Result<Item, Status>>;

        async fn list(&self, request: Request<Item>) -> Result<Response<Self::ListStream>, Status> {
            let values = (1..=request.into_inner().value).map(|value| Ok(Item { value }));
            Ok(Response::new(Box::pin(tokio_stream::iter(values))))
        }

        async fn sum(&self, request: Request<Streaming<Item>>) -> Result<Response<Item>, Status> {
            let (mut items, mut value) = (request.into_inner(), 0);
            while let Some(item) = items.message().await? {
                value += item.value;
            }
            Ok(Response::new(Item { value }))
        }

        type ChatStream = BoxStream<Result<Item, Status>>;

        async fn chat(&self, request: Request<Streaming<Item>>) -> Result<Response<Self::ChatStream>, Status> {
            let doubled = request.into_inner().map(|item| item.map(|item| Item { value: item.value * 2 }));
            Ok(Response::new(Box::pin(doubled)))
        }
    }
}

pub(crate) fn item(value: u64) -> Item {
    Item { value }
}

pub(crate) async fn channel() -> Channel {
    serve(UsageServer::new(Plain)).await
}

pub(crate) async fn client() -> UsageClient<Channel> {
    UsageClient::new(channel().await)
}

/// Collects the values of a stream of responses.
pub(crate) async fn values(response: Response<Streaming<Item>>) -> Vec<u64> {
    response.into_inner().map(|item| item.expect("a message").value).collect().await
}
