//! Ways to read messages of a stream: taken, lent, at hand.

use std::future::poll_fn;

use bytes::Bytes;
use thalweg_engine::http2::frame::Kind;
use thalweg_engine::{CallOptions, Code, Incoming, Prefix, Status};

use crate::support::peer::{OK, OK_HEADERS, compressed_envelope, envelope};
use crate::support::{CHAT, Messages, connected, in_flight, items, raw, settled, soon, stream};

/// Returns the responses of a call after `wire` arrived in one read.
async fn responses(wire: &[u8]) -> Incoming {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let options = CallOptions::default();
    let call = tokio::spawn(async move {
        let Messages(incoming) =
            stream(&channel, &CHAT, items(vec![raw("x")]), &options).await.expect("headers");
        incoming
    });
    settled(&mut peer).await;
    let headers = [OK_HEADERS, &[("grpc-encoding", "gzip")]].concat();
    peer.headers(1, false, &headers).data(1, false, wire).headers(1, true, OK).send().await;
    let incoming = soon(call).await.expect("no panic");
    tokio::spawn(async move { peer.rest().await });
    incoming
}

async fn prefix(incoming: &mut Incoming) -> Option<Result<Prefix, Status>> {
    soon(poll_fn(|cx| incoming.poll_prefix(cx))).await
}

async fn found(incoming: &mut Incoming) -> Prefix {
    prefix(incoming).await.expect("a message").expect("no error")
}

#[track_caller]
fn none_at_hand(incoming: &mut Incoming) {
    assert_eq!(incoming.prefix_at_hand(), None);
    assert_eq!(incoming.next_at_hand(), None);
}

#[tokio::test(start_paused = true)]
async fn small_messages_of_one_read_are_at_hand() {
    let wire = [&b"one"[..], b"", b"three", b"4"].map(envelope).concat();
    let mut incoming = responses(&wire).await;
    none_at_hand(&mut incoming);
    let first = found(&mut incoming).await;
    assert_eq!(incoming.prefix_at_hand(), Some(first));
    assert_eq!(incoming.take(first).expect("bytes").as_bytes(), b"one");
    assert_eq!(incoming.next_at_hand(), Some(&b""[..]));
    let third = incoming.prefix_at_hand().expect("a complete set");
    assert_eq!((third.len, third.compressed), (5, false));
    assert_eq!(incoming.lend(third).expect("bytes").bytes, b"three");
    assert_eq!(incoming.next_at_hand(), Some(&b"4"[..]));
    none_at_hand(&mut incoming);
    assert!(prefix(&mut incoming).await.is_none() && incoming.is_finished());
    assert_eq!(incoming.take_trailers().map(|trailers| trailers.len()), Some(0));
}

#[tokio::test(start_paused = true)]
async fn large_and_compressed_messages_are_not_at_hand() {
    let (least, large) = (vec![1; 4095], vec![2; 4096]);
    let packed = vec![3; 1000];
    let wire = [envelope(b"x"), envelope(&least), envelope(&large), compressed_envelope(&packed)].concat();
    let mut incoming = responses(&wire).await;
    let first = found(&mut incoming).await;
    assert_eq!(incoming.lend(first).expect("bytes").bytes, b"x");
    assert_eq!(incoming.prefix_at_hand().map(|prefix| prefix.len), Some(4095));
    assert_eq!(incoming.next_at_hand(), Some(&least[..]));
    for (expected, is_compressed) in [(&large, false), (&packed, true)] {
        none_at_hand(&mut incoming);
        let prefix = found(&mut incoming).await;
        assert_eq!(prefix.compressed, is_compressed);
        assert_eq!(incoming.lend(prefix).expect("bytes").bytes, expected);
    }
    assert!(prefix(&mut incoming).await.is_none());
}

/// The rest of a started message arrives with a later read.
#[tokio::test(start_paused = true)]
async fn incomplete_message_is_not_at_hand() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let options = CallOptions::default();
    let call = tokio::spawn(async move { stream(&channel, &CHAT, items(vec![]), &options).await });
    settled(&mut peer).await;
    let wire = [envelope(b"first"), envelope(b"second")].concat();
    let (front, rest) = wire.split_at(wire.len() - 2);
    peer.headers(1, false, OK_HEADERS).data(1, false, front).send().await;
    let Messages(mut incoming) = soon(call).await.expect("no panic").expect("headers");
    let first = found(&mut incoming).await;
    assert_eq!(incoming.take(first).expect("bytes").as_bytes(), b"first");
    none_at_hand(&mut incoming);
    peer.data(1, false, rest).headers(1, true, OK).send().await;
    let second = found(&mut incoming).await;
    assert_eq!(incoming.take(second).expect("bytes").as_bytes(), b"second");
    assert!(prefix(&mut incoming).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn lent_message_can_fail_the_call() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let (options, caller) = (CallOptions::default(), channel.clone());
    let call = tokio::spawn(async move { stream(&caller, &CHAT, items(vec![]), &options).await });
    settled(&mut peer).await;
    peer.headers(1, false, OK_HEADERS).message(1, false, b"odd").message(1, false, b"even").send().await;
    let Messages(mut incoming) = soon(call).await.expect("no panic").expect("headers");
    let first = found(&mut incoming).await;
    let status =
        incoming.lend(first).expect("bytes").fail(Status::new(Code::DataLoss, "not what was expected"));
    assert_eq!(status.code(), Code::DataLoss);
    assert!(incoming.is_finished() && prefix(&mut incoming).await.is_none());
    none_at_hand(&mut incoming);
    assert_eq!(in_flight(&channel), 0);
    let frames = settled(&mut peer).await;
    assert!(frames.iter().any(|frame| frame.kind == Kind::RstStream), "{frames:?}");
}

#[tokio::test]
async fn detached_stream_has_ended() {
    let mut incoming = Incoming::detached();
    assert!(incoming.is_finished() && prefix(&mut incoming).await.is_none());
    none_at_hand(&mut incoming);
    assert_eq!(incoming.lend_owned(Bytes::from_static(b"kept")).bytes, b"kept");
    assert!(incoming.take_trailers().is_none());
}
