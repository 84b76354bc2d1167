//! Handlers: what they hold, await and return.

use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _};
use tokio::sync::{Mutex, mpsc};
use tokio_stream::wrappers::ReceiverStream;

use super::{BoxStream, Plain, client, item, values};
use crate::api::{
    Channel, Item, Request, Response, Status, Streaming, Usage, UsageClient, UsageServer, handlers, serve,
};

/// A store that services hold as a type parameter or as a trait object.
trait Store: Send + Sync + 'static {
    fn load(&self, value: u64) -> impl Future<Output = Result<u64, Status>> + Send;
}

struct Plus(u64);

impl Store for Plus {
    async fn load(&self, value: u64) -> Result<u64, Status> {
        tokio::task::yield_now().await;
        Ok(value + self.0)
    }
}

/// Loads many values concurrently, two at a time.
struct Buffered<S> {
    store: Arc<S>,
    known: Vec<u64>,
}

handlers! {
    impl<S: Store> Usage for Buffered<S> {
        async fn get(&self, request: Request<Item>) -> Result<Response<Item>, Status> {
            let factor = request.into_inner().value;
            // This stream borrows from the service.
            let loads = futures_util::stream::iter(self.known.iter().copied())
                .map(|value| async move { Ok::<_, Status>(self.store.load(value).await? * factor) });
            let value = loads.buffered(2).try_fold(0, |sum, value| async move { Ok(sum + value) }).await?;
            Ok(Response::new(item(value)))
        }

        type ListStream = BoxStream<Result<Item, Status>>;

        async fn list(&self, request: Request<Item>) -> Result<Response<Self::ListStream>, Status> {
            let store = Arc::clone(&self.store);
            let loads = tokio_stream::iter(1..=request.into_inner().value).map(move |value| {
                let store = Arc::clone(&store);
                async move { store.load(value).await.map(item) }
            });
            Ok(Response::new(loads.buffered(2).boxed()))
        }

        async fn sum(&self, request: Request<Streaming<Item>>) -> Result<Response<Item>, Status> {
            let loads = request.into_inner().map(|item| async move { self.store.load(item?.value).await });
            let values: Vec<u64> = loads.buffer_unordered(4).try_collect().await?;
            Ok(Response::new(item(values.iter().sum())))
        }

        type ChatStream = BoxStream<Result<Item, Status>>;

        async fn chat(&self, request: Request<Streaming<Item>>) -> Result<Response<Self::ChatStream>, Status> {
            let store = Arc::clone(&self.store);
            let loads = request.into_inner().and_then(move |item| {
                let store = Arc::clone(&store);
                async move { Ok(Item { value: store.load(item.value).await? }) }
            });
            Ok(Response::new(Box::pin(loads)))
        }
    }
}

#[tokio::test]
async fn buffered_in_handlers_of_a_generic_service() {
    let service = Buffered { store: Arc::new(Plus(10)), known: vec![1, 2] };
    let mut client = UsageClient::new(serve(UsageServer::new(service)).await);
    assert_eq!(client.get(item(2)).await.unwrap().into_inner().value, 46);
    assert_eq!(values(client.list(item(2)).await.unwrap()).await, [11, 12]);
    assert_eq!(client.sum(tokio_stream::iter([1, 2].map(item))).await.unwrap().into_inner().value, 23);
    assert_eq!(values(client.chat(tokio_stream::iter([1].map(item))).await.unwrap()).await, [11]);
}

/// A proxy.
#[derive(Clone)]
struct Proxy {
    client: UsageClient<Channel>,
}

handlers! {
    impl Usage for Proxy {
        async fn get(&self, request: Request<Item>) -> Result<Response<Item>, Status> {
            let mut client = self.client.clone();
            client.get(request).await
        }

        type ListStream = Streaming<Item>;

        async fn list(&self, request: Request<Item>) -> Result<Response<Self::ListStream>, Status> {
            self.client.clone().list(request).await
        }

        async fn sum(&self, request: Request<Streaming<Item>>) -> Result<Response<Item>, Status> {
            let items = tokio_stream::StreamExt::filter_map(request.into_inner(), Result::ok);
            self.client.clone().sum(items).await
        }

        type ChatStream = BoxStream<Result<Item, Status>>;

        async fn chat(&self, request: Request<Streaming<Item>>) -> Result<Response<Self::ChatStream>, Status> {
            let proxy = self.clone();
            let each = request.into_inner().map(move |item| {
                let mut client = proxy.client.clone();
                async move { client.get(item?).await.map(Response::into_inner) }
            });
            Ok(Response::new(each.buffered(4).boxed()))
        }
    }
}

#[tokio::test]
async fn calls_in_handlers() {
    let proxy = Proxy { client: client().await };
    let mut client = UsageClient::new(serve(UsageServer::new(proxy)).await);
    assert_eq!(client.get(item(2)).await.unwrap().into_inner().value, 2);
    assert_eq!(values(client.list(item(2)).await.unwrap()).await, [1, 2]);
    assert_eq!(client.sum(tokio_stream::iter([1, 2].map(item))).await.unwrap().into_inner().value, 3);
    assert_eq!(values(client.chat(tokio_stream::iter([1, 2].map(item))).await.unwrap()).await, [1, 2]);
}

/// State shared by handlers, and tasks that outlive them.
struct Shared {
    totals: Arc<Mutex<Vec<u64>>>,
    stores: Vec<Arc<dyn Fn(u64) -> u64 + Send + Sync>>,
}

handlers! {
    impl Usage for Shared {
        async fn get(&self, request: Request<Item>) -> Result<Response<Item>, Status> {
            let value = self.stores.iter().fold(request.into_inner().value, |value, store| store(value));
            self.totals.lock().await.push(value);
            Ok(Response::new(item(value)))
        }

        type ListStream = ReceiverStream<Result<Item, Status>>;

        async fn list(&self, request: Request<Item>) -> Result<Response<Self::ListStream>, Status> {
            let (responses, receiver) = mpsc::channel(1);
            let totals = Arc::clone(&self.totals);
            tokio::spawn(async move {
                for total in totals.lock().await.iter().take(request.get_ref().value as usize) {
                    if responses.send(Ok(item(*total))).await.is_err() {
                        return;
                    }
                }
            });
            Ok(Response::new(ReceiverStream::new(receiver)))
        }

        async fn sum(&self, request: Request<Streaming<Item>>) -> Result<Response<Item>, Status> {
            let mut totals = self.totals.lock().await;
            let mut items = request.into_inner();
            while let Some(item) = items.try_next().await? {
                totals.push(item.value);
            }
            Ok(Response::new(item(totals.iter().sum())))
        }

        type ChatStream = BoxStream<Result<Item, Status>>;

        async fn chat(&self, request: Request<Streaming<Item>>) -> Result<Response<Self::ChatStream>, Status> {
            let totals = Arc::clone(&self.totals);
            let mut items = request.into_inner();
            Ok(Response::new(Box::pin(async_stream::try_stream! {
                while let Some(received) = items.message().await? {
                    totals.lock().await.push(received.value);
                    yield item(totals.lock().await.iter().sum());
                }
            })))
        }
    }
}

#[tokio::test]
async fn shared_state_tasks_and_macros() {
    let service = Shared { totals: Arc::default(), stores: vec![Arc::new(|value| value + 1)] };
    let mut client = UsageClient::new(serve(UsageServer::from_arc(Arc::new(service))).await);
    assert_eq!(client.get(item(1)).await.unwrap().into_inner().value, 2);
    assert_eq!(values(client.list(item(5)).await.unwrap()).await, [2]);
    assert_eq!(client.sum(tokio_stream::iter([3].map(item))).await.unwrap().into_inner().value, 5);
    assert_eq!(values(client.chat(tokio_stream::iter([5].map(item))).await.unwrap()).await, [10]);
}

#[tokio::test]
async fn service_with_options_and_its_client_in_one_task() {
    let server = UsageServer::new(Plain).max_decoding_message_size(1 << 20);
    let task = tokio::spawn(async move {
        let mut client = UsageClient::new(serve(server).await).max_encoding_message_size(1 << 20);
        client.get(item(1)).await.unwrap().into_inner().value
    });
    assert_eq!(task.await.unwrap(), 1);
}
