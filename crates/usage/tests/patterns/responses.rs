//! Streams of responses, read and passed on.

use futures_util::{StreamExt as _, TryStreamExt as _};

use super::{BoxStream, client, item};
use crate::api::{Item, Status, Streaming};

#[tokio::test]
async fn responses_as_requests() {
    let mut client = client().await;
    let task = tokio::spawn(async move {
        let items = client.list(item(3)).await.unwrap().into_inner();
        client.sum(items.filter_map(|item| async move { item.ok() })).await
    });
    assert_eq!(task.await.unwrap().unwrap().into_inner().value, 6);
}

#[tokio::test]
async fn responses_in_a_box() {
    let mut client = client().await;
    let task = tokio::spawn(async move {
        let items: BoxStream<Result<Item, Status>> = client.list(item(3)).await.unwrap().into_inner().boxed();
        items.map_ok(|item| item.value).try_fold(0, |sum, value| async move { Ok(sum + value) }).await
    });
    assert_eq!(task.await.unwrap().unwrap(), 6);
}

#[tokio::test]
async fn calls_for_each_response() {
    let client = client().await;
    let mut listing = client.clone();
    let task = tokio::spawn(async move {
        let items = listing.list(item(3)).await.unwrap().into_inner();
        let calls = items.map(|listed| {
            let mut client = client.clone();
            async move { client.get(listed?).await.map(|response| response.into_inner().value) }
        });
        calls.buffered(2).try_collect::<Vec<_>>().await
    });
    assert_eq!(task.await.unwrap().unwrap(), [1, 2, 3]);
}

/// A struct that holds the stream it reads.
struct Pages {
    items: Streaming<Item>,
}

impl Pages {
    async fn next(&mut self) -> Result<Option<u64>, Status> {
        Ok(self.items.message().await?.map(|item| item.value))
    }
}

#[tokio::test]
async fn responses_in_a_struct() {
    let mut client = client().await;
    let task = tokio::spawn(async move {
        let mut pages = Pages { items: client.list(item(2)).await?.into_inner() };
        let mut read = Vec::new();
        while let Some(value) = pages.next().await? {
            read.push(value);
        }
        Ok::<_, Status>(read)
    });
    assert_eq!(task.await.unwrap().unwrap(), [1, 2]);
}

#[tokio::test]
async fn two_streams_in_a_select() {
    let mut client = client().await;
    let task = tokio::spawn(async move {
        let mut one = client.list(item(2)).await.unwrap().into_inner();
        let mut other = client.chat(tokio_stream::iter([1, 2].map(item))).await.unwrap().into_inner();
        let (mut sum, mut open) = (0, (true, true));
        while open != (false, false) {
            let read = tokio::select! {
                read = one.message(), if open.0 => read.inspect(|item| open.0 = item.is_some()),
                read = other.message(), if open.1 => read.inspect(|item| open.1 = item.is_some()),
            };
            sum += read.unwrap().map_or(0, |item| item.value);
        }
        sum
    });
    assert_eq!(task.await.unwrap(), 9);
}
