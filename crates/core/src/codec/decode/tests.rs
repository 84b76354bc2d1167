use std::task::Waker;

use http_body_util::StreamBody;

use super::*;
use crate::codec::testing::BytesCodec;
use crate::testing::Seeded;

type Frames = Vec<Result<Frame<Bytes>, Status>>;

#[expect(clippy::unnecessary_wraps, reason = "an item of a body")]
fn data(bytes: impl Into<Bytes>) -> Result<Frame<Bytes>, Status> {
    Ok(Frame::data(bytes.into()))
}

#[expect(clippy::unnecessary_wraps, reason = "an item of a body")]
fn trailers(code: &'static str) -> Result<Frame<Bytes>, Status> {
    Ok(Frame::trailers(HeaderMap::from_iter([(Status::GRPC_STATUS, http::HeaderValue::from_static(code))])))
}

fn body(frames: Frames) -> StreamBody<impl Stream<Item = Result<Frame<Bytes>, Status>>> {
    StreamBody::new(tokio_stream::iter(frames))
}

fn response(frames: Frames, size_max: Option<usize>) -> Streaming<Bytes> {
    Streaming::new_response(BytesCodec, body(frames), StatusCode::OK, None, size_max)
}

/// All messages, and the status at the end.
fn received(mut stream: Streaming<Bytes>) -> (Vec<Bytes>, Option<Status>) {
    let mut cx = Context::from_waker(Waker::noop());
    let mut messages = Vec::new();
    loop {
        match Pin::new(&mut stream).poll_next(&mut cx) {
            Poll::Ready(Some(Ok(message))) => messages.push(message),
            Poll::Ready(Some(Err(status))) => {
                assert!(
                    matches!(Pin::new(&mut stream).poll_next(&mut cx), Poll::Ready(None)),
                    "a failure is reported once"
                );
                return (messages, Some(status));
            }
            Poll::Ready(None) => return (messages, None),
            Poll::Pending => panic!("pending"),
        }
    }
}

fn check(frames: Frames, messages: &[&str], code: Option<Code>) {
    let (received, status) = received(response(frames, Some(5)));
    assert_eq!(received, messages);
    assert_eq!(status.as_ref().map(Status::code), code, "{status:?}");
}

#[test]
fn messages_and_their_end() {
    check(vec![data("\0\0\0\0\x01a\0\0\0\0\x02bc"), trailers("0")], &["a", "bc"], None);
    check(vec![data("\0\0\0\0\0"), data(""), trailers("0")], &[""], None);
    check(vec![trailers("0")], &[], None);
    check(vec![data("\0\0\0\0\x01a"), trailers("5")], &["a"], Some(Code::NotFound));
    check(vec![data("\0\0\0\0\x01a"), Err(Status::aborted("reset"))], &["a"], Some(Code::Aborted));
    check(vec![data("\0\0\0\0\x01a")], &["a"], Some(Code::Unknown));
}

#[test]
fn malformed_bodies_fail() {
    check(vec![data("\x02\0\0\0\0"), trailers("0")], &[], Some(Code::Internal));
    check(vec![data("\x01\0\0\0\0"), trailers("0")], &[], Some(Code::Internal));
    check(vec![data("\0\0\0\0\x06abcdef"), trailers("0")], &[], Some(Code::OutOfRange));
    check(vec![data("\0\0\0\0\x02a"), trailers("0")], &[], Some(Code::Internal));
    check(vec![data("\0\0\0"), trailers("0")], &[], Some(Code::Internal));
    check(vec![data("\0\0\0\0\x01")], &[], Some(Code::Internal));
    let invalid = vec![data("\0\0\0\0\x07invalid\0\0\0\0\x01a"), trailers("0")];
    let (messages, status) = received(response(invalid, None));
    assert_eq!((messages.len(), status.unwrap().message()), (0, "not a message"));
}

#[test]
fn any_cut_gives_the_same_messages() {
    let mut seeded = Seeded(7);
    for _ in 0..500 {
        let messages: Vec<Vec<u8>> = (0..seeded.below(5)).map(|_| seeded.bytes(0..40)).collect();
        let mut whole = Vec::new();
        for message in &messages {
            whole.push(0);
            whole.extend((message.len() as u32).to_be_bytes());
            whole.extend(message);
        }
        let mut frames = Frames::new();
        while !whole.is_empty() {
            let rest = whole.split_off((1 + seeded.below(20)).min(whole.len()));
            let piece = Bytes::from(std::mem::replace(&mut whole, rest));
            // Some pieces share their memory.
            frames.push(data(if seeded.below(2) == 0 { piece } else { Bytes::from_owner(piece) }));
        }
        frames.push(trailers("0"));
        let (received, status) = received(response(frames, None));
        assert!(status.is_none());
        assert_eq!(received, messages);
    }
}

#[test]
fn http_status_decides_without_grpc_status() {
    let stream = Streaming::new_response(BytesCodec, body(vec![]), StatusCode::BAD_GATEWAY, None, None);
    assert_eq!(received(stream).1.unwrap().code(), Code::Unavailable);
    let stream = Streaming::new_empty(BytesCodec, body(vec![]));
    assert!(received(stream).1.is_none());
}

#[test]
fn requests_end_when_the_caller_goes() {
    let request = |last: Status| {
        let frames = vec![data("\0\0\0\0\x01a"), Err(last)];
        let (messages, status) = received(Streaming::new_request(BytesCodec, body(frames), None, None));
        (messages.len(), status.map(|status| status.code()))
    };
    assert_eq!(request(Status::cancelled("gone")), (1, None));
    assert_eq!(request(Status::internal("broken")), (1, Some(Code::Internal)));
}

#[test]
fn default_limit_is_4_mib() {
    let message = |len: u32| {
        let mut bytes = vec![0];
        bytes.extend(len.to_be_bytes());
        bytes.resize(5 + len as usize, 7);
        received(response(vec![data(bytes), trailers("0")], None)).1.map(|status| status.code())
    };
    assert_eq!((message(4 * 1024 * 1024), message(4 * 1024 * 1024 + 1)), (None, Some(Code::OutOfRange)));
}

#[tokio::test]
async fn trailers_are_read_after_the_last_message() {
    let frames = || vec![data("\0\0\0\0\x01a"), trailers("0")];
    let mut stream = response(frames(), None);
    assert_eq!(stream.message().await.unwrap().unwrap(), "a");
    assert!(stream.message().await.unwrap().is_none());
    assert_eq!(stream.trailers().await.unwrap().unwrap().len(), 1);
    assert!(stream.trailers().await.unwrap().is_none());
    let mut stream = response(frames(), None);
    assert!(stream.trailers().await.unwrap().is_some(), "messages left are dropped");
    let mut stream = response(vec![trailers("14")], None);
    assert_eq!(stream.trailers().await.unwrap_err().code(), Code::Unavailable);
}

#[test]
fn streams_can_be_shared() {
    fn is<T: Send + Sync + Unpin>() {}
    is::<Streaming<Bytes>>();
}

#[cfg(feature = "gzip")]
#[test]
fn compressed_messages_have_limits_too() {
    let gzip = CompressionEncoding::Gzip;
    let mut bytes = b"\x01\0\0\0\0".to_vec();
    crate::compression::Encoding::Gzip.compress(&[7; 1_000], &mut bytes);
    let len = (bytes.len() - HEADER_SIZE) as u32;
    bytes[1..5].copy_from_slice(&len.to_be_bytes());
    bytes.extend_from_slice(b"\0\0\0\0\x01a");
    let receive = |size_max| {
        let frames = vec![data(bytes.clone()), trailers("0")];
        let stream =
            Streaming::new_response(BytesCodec, body(frames), StatusCode::OK, Some(gzip), Some(size_max));
        let (messages, status) = received(stream);
        (messages.iter().map(Bytes::len).collect::<Vec<_>>(), status.map(|status| status.code()))
    };
    assert_eq!(receive(1_000), (vec![1_000, 1], None));
    assert_eq!(receive(999), (vec![], Some(Code::ResourceExhausted)));
}
