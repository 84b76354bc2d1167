//! Clients: where they are stored, and how their calls are combined.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::{BoxFuture, join_all, try_join_all};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::{channel, client, item, values};
use crate::api::{Channel, Item, Request, Status, Tasks, UsageClient, get_twice};

#[tokio::test]
async fn every_call_type_as_a_task() {
    let client = client().await;
    let (mut get, mut list, mut sum, mut chat) = (client.clone(), client.clone(), client.clone(), client);
    let get = tokio::spawn(async move { get.get(item(7)).await.unwrap().into_inner().value });
    let list = tokio::spawn(async move { values(list.list(item(2)).await.unwrap()).await });
    let sum = tokio::spawn(async move {
        sum.sum(tokio_stream::iter([item(1), item(2)])).await.unwrap().into_inner().value
    });
    let chat =
        tokio::spawn(async move { values(chat.chat(tokio_stream::iter([item(1)])).await.unwrap()).await });
    assert_eq!((get.await.unwrap(), list.await.unwrap()), (7, vec![1, 2]));
    assert_eq!((sum.await.unwrap(), chat.await.unwrap()), (3, vec![2]));
}

#[tokio::test]
async fn join_and_select() {
    let (mut one, mut other) = (client().await, client().await);
    let task = tokio::spawn(async move {
        let (first, second) = tokio::join!(one.get(item(1)), other.sum(tokio_stream::iter([item(2)])));
        let late = tokio::time::sleep(Duration::from_secs(60));
        let third = tokio::select! {
            response = one.get(item(3)) => response.unwrap().into_inner().value,
            () = late => 0,
        };
        first.unwrap().into_inner().value + second.unwrap().into_inner().value + third
    });
    assert_eq!(task.await.unwrap(), 6);
}

#[tokio::test]
async fn clones_in_a_loop() {
    let client = client().await;
    let mut calls = JoinSet::new();
    for value in 1..=3 {
        let mut client = client.clone();
        calls.spawn(async move { client.get(item(value)).await.unwrap().into_inner().value });
    }
    assert_eq!(calls.join_all().await.into_iter().sum::<u64>(), 6);
}

#[tokio::test]
async fn joined_calls_of_borrowed_values() {
    let client = client().await;
    let task = tokio::spawn(async move {
        let asked = [1, 2, 3];
        let calls = asked.iter().map(|value| {
            let mut client = client.clone();
            async move { client.get(item(*value)).await }
        });
        try_join_all(calls).await.map(|all| all.iter().map(|response| response.get_ref().value).sum::<u64>())
    });
    assert_eq!(task.await.unwrap().unwrap(), 6);
}

#[tokio::test]
async fn buffered_calls() {
    let client = client().await;
    let task = tokio::spawn(async move {
        let calls = tokio_stream::iter(1..=3).map(|value| {
            let mut client = client.clone();
            async move { client.get(item(value)).await.unwrap().into_inner().value }
        });
        calls.buffer_unordered(2).fold(0, |sum, value| async move { sum + value }).await
    });
    assert_eq!(task.await.unwrap(), 6);
}

/// A wrapper of a client, with a method per method of the service.
#[derive(Clone)]
struct Store {
    client: UsageClient<Channel>,
}

impl Store {
    async fn sum(
        &self,
        items: impl IntoIterator<Item = u64, IntoIter: Send + 'static>,
    ) -> Result<u64, Status> {
        let mut client = self.client.clone();
        Ok(client.sum(tokio_stream::iter(items.into_iter().map(item))).await?.into_inner().value)
    }
}

#[tokio::test]
async fn client_in_a_struct() {
    let store = Store { client: client().await };
    let shared = Arc::new(store);
    let tasks = (1..=2).map(|last| {
        let store = Arc::clone(&shared);
        tokio::spawn(async move { store.sum(1..=last).await.unwrap() })
    });
    assert_eq!(join_all(tasks).await.into_iter().map(Result::unwrap).collect::<Vec<_>>(), [1, 3]);
}

#[tokio::test]
async fn client_behind_a_lock() {
    let client = Arc::new(Mutex::new(client().await));
    let task = tokio::spawn(async move {
        let mut client = client.lock().await;
        client.sum(tokio_stream::iter([item(1), item(2)])).await
    });
    assert_eq!(task.await.unwrap().unwrap().into_inner().value, 3);
}

#[tokio::test]
async fn async_closure() {
    let client = client().await;
    let task = tokio::spawn(async move {
        let get = async |value: u64| {
            let mut client = client.clone();
            client.get(item(value)).await.map(|response| response.into_inner().value)
        };
        get(1).await.unwrap() + get(2).await.unwrap()
    });
    assert_eq!(task.await.unwrap(), 3);
}

#[tokio::test]
async fn retries_with_a_closure() {
    async fn retry<F, T>(mut attempt: impl FnMut() -> F) -> Result<T, Status>
    where
        F: Future<Output = Result<T, Status>>,
    {
        match attempt().await {
            Err(_) => attempt().await,
            done => done,
        }
    }
    let client = client().await;
    let task = tokio::spawn(async move {
        retry(|| {
            let mut client = client.clone();
            async move { client.sum(tokio_stream::iter([1, 2].map(item))).await }
        })
        .await
    });
    assert_eq!(task.await.unwrap().unwrap().into_inner().value, 3);
}

#[tokio::test]
async fn generic_function() {
    let client = client().await;
    assert_eq!(tokio::spawn(get_twice(client)).await.unwrap().unwrap(), 3);
}

#[tokio::test]
async fn interceptor() {
    let add = |mut request: Request<()>| {
        request.metadata_mut().insert("key", "value".parse().unwrap());
        Ok(request)
    };
    let mut client = UsageClient::with_interceptor(channel().await, add);
    let task = tokio::spawn(async move {
        let list = values(client.list(item(1)).await.unwrap()).await;
        (list, client.get(item(1)).await.unwrap().into_inner().value)
    });
    assert_eq!(task.await.unwrap(), (vec![1], 1));
}

/// An interface to a client that tests can replace.
trait Totals: Send + Sync {
    fn total(&self, items: Vec<Item>) -> BoxFuture<'_, Result<u64, Status>>;
}

impl Totals for Store {
    fn total(&self, items: Vec<Item>) -> BoxFuture<'_, Result<u64, Status>> {
        Box::pin(async move {
            let mut client = self.client.clone();
            Ok(client.sum(tokio_stream::iter(items)).await?.into_inner().value)
        })
    }
}

#[tokio::test]
async fn client_behind_a_trait_object() {
    let totals: Arc<dyn Totals> = Arc::new(Store { client: client().await });
    let task = tokio::spawn(async move { totals.total(vec![item(4)]).await });
    assert_eq!(task.await.unwrap().unwrap(), 4);
}

#[tokio::test]
async fn generic_struct() {
    let tasks = Tasks(client().await);
    let task = tokio::spawn(async move { tasks.sum(vec![item(1), item(2)]).await });
    assert_eq!(task.await.unwrap().unwrap(), 3);
}
