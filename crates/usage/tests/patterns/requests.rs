//! Streams of requests from various sources.

use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;

use super::{client, item};
use crate::api::{Channel, Item, Status, UsageClient};

static NAMES: [&str; 3] = ["a", "bb", "ccc"];

#[tokio::test]
async fn owned_iterator_with_captures() {
    let mut client = client().await;
    let (factor, factors) = (3, vec![1, 2]);
    let sum = tokio::spawn(async move {
        let items = factors.into_iter().map(move |value| item(value * factor));
        client.sum(tokio_stream::iter(items)).await
    });
    assert_eq!(sum.await.unwrap().unwrap().into_inner().value, 9);
}

#[tokio::test]
async fn channel_of_requests() {
    let mut client = client().await;
    let (requests, receiver) = mpsc::channel(1);
    let sum = tokio::spawn(async move { client.sum(ReceiverStream::new(receiver)).await });
    for value in 1..=3 {
        requests.send(item(value)).await.unwrap();
    }
    drop(requests);
    assert_eq!(sum.await.unwrap().unwrap().into_inner().value, 6);
}

#[tokio::test]
async fn async_stream_macro() {
    let mut client = client().await;
    let sum = tokio::spawn(async move {
        let requests = async_stream::stream! {
            for name in &NAMES {
                tokio::task::yield_now().await;
                yield item(name.len() as u64);
            }
        };
        client.sum(requests).await
    });
    assert_eq!(sum.await.unwrap().unwrap().into_inner().value, 6);
}

#[tokio::test]
async fn unfolded_state() {
    let mut client = client().await;
    let sum = tokio::spawn(async move {
        let countdown = futures_util::stream::unfold(3, |value| async move {
            tokio::task::yield_now().await;
            (value > 0).then(|| (item(value), value - 1))
        });
        client.sum(countdown).await
    });
    assert_eq!(sum.await.unwrap().unwrap().into_inner().value, 6);
}

#[tokio::test]
async fn stream_of_a_generic_function() {
    async fn total<S>(mut client: UsageClient<Channel>, requests: S) -> Result<u64, Status>
    where
        S: Stream<Item = Item> + Send + 'static,
    {
        Ok(client.sum(requests).await?.into_inner().value)
    }
    let client = client().await;
    let sum = tokio::spawn(total(client, tokio_stream::iter([item(1), item(2)])));
    assert_eq!(sum.await.unwrap().unwrap(), 3);
}
