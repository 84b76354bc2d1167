//! The patterns with the crate `thalweg`.

use futures_util::StreamExt as _;
use thalweg::{CallOptions, Method, Request, Response, Status};

use api::Item;
use patterns::BoxStream;

#[path = "apis/native.rs"]
mod api;
mod patterns;

#[path = "patterns/beyond_tonic.rs"]
mod beyond_tonic;

/// With `thalweg-tonic` and tonic, the stream is part of the call's future, which rustc cannot prove to be `Send`.
#[tokio::test]
async fn buffered_requests_of_references() {
    let client = patterns::client().await;
    let sum = tokio::spawn(async move {
        let read = tokio_stream::iter(["a", "bb", "ccc"].iter()).map(|name| async move {
            tokio::task::yield_now().await;
            patterns::item(name.len() as u64)
        });
        client.sum(read.buffered(2)).await
    });
    assert_eq!(sum.await.unwrap().unwrap().into_inner().value, 6);
}

#[tokio::test]
async fn boxed_streams_on_the_channel_itself() {
    static SUM: Method = Method::new("/usage.Usage/Sum");
    static CHAT: Method = Method::new("/usage.Usage/Chat");
    let channel = patterns::channel().await;
    let boxed =
        || -> BoxStream<Item> { Box::pin(tokio_stream::iter([patterns::item(1), patterns::item(2)])) };
    let task = tokio::spawn(async move {
        let options = CallOptions::default();
        let sum: Response<Item> = channel.client_streaming(&SUM, Request::new(boxed()), &options).await?;
        let doubled = channel.bidi_streaming(&CHAT, Request::new(boxed()), &options).await?;
        Ok::<_, Status>((sum.into_inner().value, patterns::values(doubled).await))
    });
    assert_eq!(task.await.unwrap().unwrap(), (3, vec![2, 4]));
}
