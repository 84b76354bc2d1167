//! Patterns that do not compile with tonic: "higher-ranked lifetime error", "implementation of `FnOnce` is not general
//! enough".
//!
//! With tonic, the type of a call's future names the stream of its requests. rustc cannot prove such a future to be
//! `Send` if the stream contains a trait object, or a closure that takes references.

#![allow(unused_mut, reason = "a client of tonic's is mutable")]

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use tokio_stream::Stream;

use crate::api::{
    Channel, Item, Request, Response, Status, Streaming, Usage, UsageClient, UsageServer, handlers, serve,
};
use crate::patterns::{BoxStream, channel, client, item, values};

static NAMES: [&str; 3] = ["a", "bb", "ccc"];

fn boxed() -> BoxStream<Item> {
    Box::pin(tokio_stream::iter([item(1), item(2)]))
}

#[tokio::test]
async fn boxed_stream() {
    let mut client = client().await;
    let requests = boxed();
    let sum = tokio::spawn(async move { client.sum(requests).await }).await.unwrap();
    assert_eq!(sum.unwrap().into_inner().value, 3);
}

#[tokio::test]
async fn boxed_stream_both_ways() {
    let mut client = client().await;
    let doubled = tokio::spawn(async move { values(client.chat(boxed()).await.unwrap()).await });
    assert_eq!(doubled.await.unwrap(), [2, 4]);
}

#[tokio::test]
async fn boxed_stream_with_metadata() {
    let mut client = client().await;
    let sum = tokio::spawn(async move {
        let mut request = Request::new(boxed());
        request.metadata_mut().insert("key", "value".parse().unwrap());
        client.sum(request).await
    });
    assert_eq!(sum.await.unwrap().unwrap().into_inner().value, 3);
}

#[tokio::test]
async fn mapped_references() {
    let mut client = client().await;
    let sum = tokio::spawn(async move {
        client.sum(tokio_stream::iter(NAMES.iter().map(|name| item(name.len() as u64)))).await
    });
    assert_eq!(sum.await.unwrap().unwrap().into_inner().value, 6);
}

#[tokio::test]
async fn mapped_references_both_ways() {
    let mut client = client().await;
    let doubled = tokio::spawn(async move {
        let lengths = NAMES.iter().filter(|name| name.len() > 1).map(|name| item(name.len() as u64));
        values(client.chat(tokio_stream::iter(lengths)).await.unwrap()).await
    });
    assert_eq!(doubled.await.unwrap(), [4, 6]);
}

#[tokio::test]
async fn generic_stream() {
    async fn total<S>(mut client: UsageClient<Channel>, requests: S) -> Result<u64, Status>
    where
        S: Stream<Item = Item> + Send + 'static,
    {
        Ok(client.sum(requests).await?.into_inner().value)
    }
    let client = client().await;
    let sum = tokio::spawn(async move { total(client, boxed()).await });
    assert_eq!(sum.await.unwrap().unwrap(), 3);
}

#[tokio::test]
async fn boxed_stream_with_timeout() {
    let mut client = client().await;
    let sum = tokio::spawn(async move {
        tokio::time::timeout(Duration::from_secs(60), client.sum(boxed())).await.expect("in time")
    });
    assert_eq!(sum.await.unwrap().unwrap().into_inner().value, 3);
}

/// The interface to a service that tests can replace.
trait Totals: Send + Sync {
    fn total(&self, items: BoxStream<Item>) -> BoxFuture<'_, Result<u64, Status>>;
}

/// Implements it with a client.
struct Store {
    client: UsageClient<Channel>,
}

impl Totals for Store {
    fn total(&self, items: BoxStream<Item>) -> BoxFuture<'_, Result<u64, Status>> {
        Box::pin(async move {
            let mut client = self.client.clone();
            Ok(client.sum(items).await?.into_inner().value)
        })
    }
}

#[tokio::test]
async fn client_behind_a_trait_object() {
    let totals: Arc<dyn Totals> = Arc::new(Store { client: client().await });
    let task = tokio::spawn(async move { totals.total(Box::pin(tokio_stream::iter([item(4)]))).await });
    assert_eq!(task.await.unwrap().unwrap(), 4);
}

#[tokio::test]
async fn boxed_stream_behind_an_interceptor() {
    let add = |mut request: Request<()>| {
        request.metadata_mut().insert("key", "value".parse().unwrap());
        Ok(request)
    };
    let mut client = UsageClient::with_interceptor(channel().await, add);
    let task = tokio::spawn(async move {
        let items: BoxStream<Item> = Box::pin(tokio_stream::iter([item(1), item(2)]));
        let sum = client.sum(items).await.unwrap().into_inner().value;
        let list = values(client.list(item(1)).await.unwrap()).await;
        (sum, list, client.get(item(1)).await.unwrap().into_inner().value)
    });
    assert_eq!(task.await.unwrap(), (3, vec![1], 1));
}

#[tokio::test]
async fn one_function_for_all_streams() {
    let mut client = client().await;
    let task = tokio::spawn(async move {
        let listed = values(client.list(item(1)).await.unwrap()).await;
        let requests: BoxStream<Item> = Box::pin(tokio_stream::once(item(1)));
        (listed, values(client.chat(requests).await.unwrap()).await)
    });
    assert_eq!(task.await.unwrap(), (vec![1], vec![2]));
}

/// A proxy that boxes its requests.
struct Proxy(UsageClient<Channel>);

handlers! {
    impl Usage for Proxy {
        async fn get(&self, request: Request<Item>) -> Result<Response<Item>, Status> {
            self.0.clone().sum(boxed().chain(tokio_stream::once(request.into_inner()))).await
        }

        type ListStream = Streaming<Item>;

        async fn list(&self, request: Request<Item>) -> Result<Response<Self::ListStream>, Status> {
            let factor = request.into_inner().value;
            let items = NAMES.iter().map(move |name| item(factor * name.len() as u64));
            self.0.clone().chat(tokio_stream::iter(items)).await
        }

        async fn sum(&self, request: Request<Streaming<Item>>) -> Result<Response<Item>, Status> {
            let items = request.into_inner().filter_map(|item| async move { item.ok() }).boxed();
            self.0.clone().sum(items).await
        }

        type ChatStream = Streaming<Item>;

        async fn chat(&self, request: Request<Streaming<Item>>) -> Result<Response<Self::ChatStream>, Status> {
            let items = request.into_inner().filter_map(|item| async move { item.ok() }).boxed();
            self.0.clone().chat(items).await
        }
    }
}

#[tokio::test]
async fn boxed_streams_in_handlers() {
    let mut client = UsageClient::new(serve(UsageServer::new(Proxy(client().await))).await);
    assert_eq!(client.get(item(2)).await.unwrap().into_inner().value, 5);
    assert_eq!(values(client.list(item(2)).await.unwrap()).await, [4, 8, 12]);
    assert_eq!(client.sum(tokio_stream::iter([1, 2].map(item))).await.unwrap().into_inner().value, 3);
    assert_eq!(values(client.chat(tokio_stream::iter([1, 2].map(item))).await.unwrap()).await, [2, 4]);
}
