use std::task::Waker;

use http::HeaderValue;
use http_body::Body as _;
use tokio_stream::StreamExt;

use super::*;
use crate::Code;
use crate::body::Body;
use crate::codec::testing::BytesCodec;

type Messages = Vec<Result<&'static str, Status>>;

/// A frame of a body: the messages in it, trailers, or an error.
#[derive(Debug, PartialEq)]
enum Sent {
    Bytes(Bytes),
    Trailers(Code, usize),
    Failed(Code),
}

fn sent<U: Stream<Item = Result<Bytes, Status>>>(body: EncodeBody<BytesCodec, U>) -> Vec<Sent> {
    let mut body = Box::pin(body);
    let mut cx = Context::from_waker(Waker::noop());
    let mut all = Vec::new();
    loop {
        match body.as_mut().poll_frame(&mut cx) {
            Poll::Ready(None) => {
                assert!(body.is_end_stream());
                return all;
            }
            Poll::Ready(Some(Ok(frame))) => all.push(match frame.into_data() {
                Ok(bytes) => Sent::Bytes(bytes),
                Err(frame) => {
                    let trailers = frame.into_trailers().unwrap();
                    Sent::Trailers(Status::from_header_map(&trailers).unwrap().code(), trailers.len())
                }
            }),
            Poll::Ready(Some(Err(status))) => all.push(Sent::Failed(status.code())),
            Poll::Pending => panic!("pending"),
        }
    }
}

fn messages(messages: Messages) -> impl Stream<Item = Result<Bytes, Status>> {
    tokio_stream::iter(messages).map(|message| message.map(Bytes::from))
}

fn client(list: Messages, size_max: Option<usize>) -> Vec<Sent> {
    sent(EncodeBody::new_client(BytesCodec, messages(list), None, size_max))
}

fn server(list: Messages, size_max: Option<usize>) -> Vec<Sent> {
    let inherit = SingleMessageCompressionOverride::Inherit;
    sent(EncodeBody::new_server(BytesCodec, messages(list), None, inherit, size_max))
}

fn bytes(bytes: &'static [u8]) -> Sent {
    Sent::Bytes(Bytes::from_static(bytes))
}

#[test]
fn messages_that_are_ready_are_sent_together() {
    let both = || bytes(b"\0\0\0\0\x01a\0\0\0\0\x02bc");
    assert_eq!(client(vec![Ok("a"), Ok("bc")], None), [both()]);
    assert_eq!(server(vec![Ok("a"), Ok("bc")], None), [both(), Sent::Trailers(Code::Ok, 1)]);
    assert_eq!(client(vec![], None), []);
    assert_eq!(server(vec![], None), [Sent::Trailers(Code::Ok, 1)]);
    assert_eq!(client(vec![Ok("")], None), [bytes(b"\0\0\0\0\0")]);
}

#[test]
fn failure_follows_messages_before_it() {
    let one = || bytes(b"\0\0\0\0\x01a");
    let failed = || vec![Ok("a"), Err(Status::aborted("no")), Ok("b")];
    assert_eq!(client(failed(), None), [one(), Sent::Failed(Code::Aborted)]);
    assert_eq!(server(failed(), None), [one(), Sent::Trailers(Code::Aborted, 2)]);
    assert_eq!(client(vec![Ok("a"), Ok("invalid")], None), [one(), Sent::Failed(Code::Internal)]);
    assert_eq!(server(vec![Ok("a"), Ok("bc")], Some(1)), [one(), Sent::Trailers(Code::OutOfRange, 2)]);
    assert_eq!(client(vec![Ok("bc")], Some(2)), [bytes(b"\0\0\0\0\x02bc")]);
}

#[test]
fn threshold_ends_a_piece() {
    let message: &'static str = "x".repeat(2_000).leak();
    let pieces = client(vec![Ok(message); 20], None);
    let lens: Vec<_> =
        pieces.iter().map(|piece| if let Sent::Bytes(bytes) = piece { bytes.len() } else { 0 }).collect();
    assert_eq!(lens, [17 * 2_005, 3 * 2_005]);
}

#[test]
fn pending_stream_sends_what_there_is() {
    let (sender, mut receiver) = tokio::sync::mpsc::channel::<Result<Bytes, Status>>(4);
    let stream = tokio_stream::StreamExt::map(ReceiverStream(&mut receiver), |item| item);
    let mut body = Box::pin(EncodeBody::new_client(BytesCodec, stream, None, None));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(body.as_mut().poll_frame(&mut cx).is_pending());
    sender.try_send(Ok("a".into())).unwrap();
    let Poll::Ready(Some(Ok(frame))) = body.as_mut().poll_frame(&mut cx) else { panic!("no frame") };
    assert_eq!(frame.into_data().unwrap(), &b"\0\0\0\0\x01a"[..]);
    assert!(body.as_mut().poll_frame(&mut cx).is_pending() && !body.is_end_stream());
}

struct ReceiverStream<'a>(&'a mut tokio::sync::mpsc::Receiver<Result<Bytes, Status>>);

impl Stream for ReceiverStream<'_> {
    type Item = Result<Bytes, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx)
    }
}

#[test]
fn cancelled_token_fails_a_waiting_body() {
    let token = CancellationToken::new();
    let pending = tokio_stream::pending::<Result<Bytes, Status>>();
    let body = EncodeBody::new_client_with_cancellation(BytesCodec, pending, None, None, Some(token.clone()));
    let mut body = Box::pin(body);
    let mut cx = Context::from_waker(Waker::noop());
    assert!(body.as_mut().poll_frame(&mut cx).is_pending());
    token.cancel();
    let Poll::Ready(Some(Err(status))) = body.as_mut().poll_frame(&mut cx) else { panic!("no error") };
    assert_eq!(status.code(), Code::Cancelled);
}

#[test]
fn trailers_have_the_metadata_of_the_status() {
    let mut status = Status::not_found("no");
    status.metadata_mut().insert("a", "b".parse().unwrap());
    let trailers = trailers(&Err(status));
    assert_eq!(trailers["a"], HeaderValue::from_static("b"));
    assert_eq!(trailers["grpc-message"], "no");
}

#[cfg(feature = "gzip")]
#[test]
fn compressed_messages_are_flagged() {
    let body = |compression| {
        let gzip = Some(CompressionEncoding::Gzip);
        let text: &'static str = "x".repeat(10_000).leak();
        EncodeBody::new_server(BytesCodec, messages(vec![Ok(text), Ok("")]), gzip, compression, Some(9_999))
    };
    let compressed = sent(body(SingleMessageCompressionOverride::Inherit));
    let [Sent::Bytes(bytes), Sent::Trailers(Code::Ok, 1)] = &compressed[..] else { panic!("{compressed:?}") };
    assert!(bytes[0] == 1 && bytes.len() < 1_000, "the limit is for the compressed size");
    let plain = sent(body(SingleMessageCompressionOverride::Disable));
    assert_eq!(plain, [Sent::Trailers(Code::OutOfRange, 2)]);
}

#[test]
fn messages_are_appended_until_the_buffer_is_full() {
    let list = vec![Ok("a"), Ok("bc"), Ok("d"), Err(Status::aborted("over"))];
    let inherit = SingleMessageCompressionOverride::Inherit;
    let body = EncodeBody::new_server(BytesCodec, messages(list), None, inherit, None);
    let mut body = Body::messages(body);
    let mut cx = Context::from_waker(Waker::noop());
    let mut lens = Vec::new();
    let mut encode = |body: &mut Body, before: &[u8], len_max| {
        let mut out = Chain::default();
        out.put_slice(before);
        let polled = body.poll_encode(&mut cx, &mut out, len_max, &mut |len| lens.push(len));
        (polled, out.make_contiguous().to_vec())
    };
    assert_eq!(encode(&mut body, b"before", 7), (Some(Poll::Pending), b"before\0\0\0\0\x01a".to_vec()));
    let rest = b"\0\0\0\0\x02bc\0\0\0\0\x01d".to_vec();
    assert_eq!(encode(&mut body, b"", 1_000), (Some(Poll::Ready(())), rest));
    assert_eq!(encode(&mut body, b"", 1_000), (Some(Poll::Ready(())), Vec::new()));
    assert_eq!(encode(&mut Body::new(http_body_util::Full::from("text")), b"", 1), (None, Vec::new()));
    assert_eq!(lens, [1, 2, 1]);
    let mut cx = Context::from_waker(Waker::noop());
    let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut body).poll_frame(&mut cx) else { panic!("{body:?}") };
    assert_eq!(frame.trailers_ref().unwrap()["grpc-status"], "10");
    assert!(body.is_end_stream());
}

#[test]
fn large_bytes_are_frames_of_their_own() {
    let large = Bytes::from(vec![7; 10_000]);
    let list = tokio_stream::iter([Ok(Bytes::from("a")), Ok(large.clone()), Ok(Bytes::from("b"))]);
    let all = sent(EncodeBody::new_client(BytesCodec, list, None, None));
    let [Sent::Bytes(front), Sent::Bytes(kept), Sent::Bytes(back)] = &all[..] else { panic!("{all:?}") };
    assert_eq!((&front[..], &back[..]), (&b"\0\0\0\0\x01a\0\0\0\x27\x10"[..], &b"\0\0\0\0\x01b"[..]));
    assert_eq!(kept.as_ptr(), large.as_ptr(), "it was copied");
}

/// A sender may ask for frames first, and then let the rest be encoded.
#[test]
fn encoded_frames_come_before_further_messages() {
    let list = [Bytes::from("a"), Bytes::from(vec![7; 10_000]), Bytes::from("b"), Bytes::from("c")];
    let expected: Vec<u8> = list
        .iter()
        .flat_map(|message| [&[0][..], &(message.len() as u32).to_be_bytes(), message].concat())
        .collect();
    for frames in 0..=3 {
        let body = EncodeBody::new_client(BytesCodec, tokio_stream::iter(list.clone().map(Ok)), None, None);
        let mut body = Body::messages(body);
        let mut cx = Context::from_waker(Waker::noop());
        let mut out = Chain::default();
        for _ in 0..frames {
            let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut body).poll_frame(&mut cx) else {
                panic!("{body:?}")
            };
            out.push(frame.into_data().unwrap());
        }
        loop {
            let len_max = out.len() + 1;
            if body.poll_encode(&mut cx, &mut out, len_max, &mut |_| ()) == Some(Poll::Ready(())) {
                break;
            }
            assert!(expected.starts_with(out.make_contiguous()) && out.len() >= len_max, "{frames} frames");
        }
        assert_eq!(out.make_contiguous(), expected, "{frames} frames");
        assert!(matches!(Pin::new(&mut body).poll_frame(&mut cx), Poll::Ready(None)));
    }
}
