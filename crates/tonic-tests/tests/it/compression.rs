//! Compressed messages: from either side, both, or neither, in calls of all types.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Request;
use http_body::Frame;
use thalweg_tonic_tests::pb::Order;
use thalweg_tonic_tests::pb::shop_client::ShopClient;
use thalweg_tonic_tests::pb::shop_server::ShopServer;
use thalweg_tonic_tests::{ShopService, in_memory, note};
use tonic::body::Body;
use tonic::codec::CompressionEncoding::{self, Deflate, Gzip, Zstd};
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Status};
use tower::ServiceBuilder;

const ALL: [CompressionEncoding; 3] = [Gzip, Deflate, Zstd];
/// Length in bytes of a note that is worth compressing.
const LEN: usize = 10_000;

/// The server's view: bytes of bodies, and encoding headers of requests.
#[derive(Clone, Default)]
struct Seen {
    requests: Arc<AtomicUsize>,
    responses: Arc<AtomicUsize>,
    heads: Arc<std::sync::Mutex<Vec<[Option<String>; 2]>>>,
}

impl Seen {
    /// Returns whether requests and responses since the last call were compressed, and encoding and accepted encodings
    /// of the last request.
    fn take(&self) -> (bool, bool, [Option<String>; 2]) {
        let is_compressed = |count: &AtomicUsize| (1..LEN).contains(&count.swap(0, Ordering::Relaxed));
        let head = self.heads.lock().unwrap().pop().unwrap();
        (is_compressed(&self.requests), is_compressed(&self.responses), head)
    }
}

struct Counted(Body, Arc<AtomicUsize>);

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let polled = Pin::new(&mut self.0).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            self.1.fetch_add(frame.data_ref().map_or(0, Bytes::len), Ordering::Relaxed);
        }
        polled
    }
}

fn client(shop: ShopServer<ShopService>) -> (ShopClient<Channel>, Seen) {
    let seen = Seen::default();
    let (of_requests, of_responses) = (seen.clone(), seen.clone());
    let layers = ServiceBuilder::new()
        .map_request(move |request: Request<Body>| {
            let header = |name| request.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
            let head = ["grpc-encoding", "grpc-accept-encoding"].map(header);
            of_requests.heads.lock().unwrap().push(head);
            request.map(|body| Body::new(Counted(body, Arc::clone(&of_requests.requests))))
        })
        .map_response(move |response: http::Response<Body>| {
            response.map(|body| Body::new(Counted(body, Arc::clone(&of_responses.responses))))
        })
        .into_inner();
    let router = Server::builder().layer(layers).add_service(shop);
    (ShopClient::new(in_memory(router, &Endpoint::from_static("http://shop.test"))), seen)
}

fn shop() -> ShopServer<ShopService> {
    ShopServer::new(ShopService::default())
}

/// Makes a call of each type. Returns the `grpc-encoding` of each response and the server's view.
async fn call_all(
    client: &mut ShopClient<Channel>,
    seen: &Seen,
) -> Vec<(Option<String>, (bool, bool, [Option<String>; 2]))> {
    let orders = || tokio_stream::iter([note(LEN), note(LEN)]);
    let encoding = |metadata: &tonic::metadata::MetadataMap| {
        metadata.get("grpc-encoding").map(|value| value.to_str().unwrap().to_owned())
    };
    let mut outcomes = Vec::new();
    let reply = client.buy(note(LEN)).await.unwrap();
    assert_eq!(reply.get_ref(), &note(LEN));
    outcomes.push((encoding(reply.metadata()), seen.take()));
    let reply = client.collect(orders()).await.unwrap();
    outcomes.push((encoding(reply.metadata()), seen.take()));
    let replies = client.list(note(LEN)).await.unwrap();
    let answered = encoding(replies.metadata());
    read_two(replies).await;
    outcomes.push((answered, seen.take()));
    let replies = client.haggle(orders()).await.unwrap();
    let answered = encoding(replies.metadata());
    read_two(replies).await;
    outcomes.push((answered, seen.take()));
    outcomes
}

async fn read_two(replies: tonic::Response<tonic::Streaming<Order>>) {
    let mut replies = replies.into_inner();
    for _ in 0..2 {
        assert_eq!(replies.message().await.unwrap(), Some(note(LEN)));
    }
    assert_eq!(replies.message().await.unwrap(), None);
}

fn name(encoding: CompressionEncoding) -> &'static str {
    match encoding {
        Gzip => "gzip",
        Deflate => "deflate",
        _ => "zstd",
    }
}

#[tokio::test]
async fn requests() {
    for encoding in ALL {
        for accepted in [&[encoding][..], &ALL] {
            let service =
                accepted.iter().fold(shop(), |service, encoding| service.accept_compressed(*encoding));
            let (client, seen) = client(service);
            let mut client = client.send_compressed(encoding);
            for (answered, (out, back, [sent, accepts])) in &call_all(&mut client, &seen).await {
                assert_eq!((answered.as_deref(), *out, *back), (None, true, false));
                assert_eq!((sent.as_deref(), accepts.as_deref()), (Some(name(encoding)), None));
            }
        }
    }
}

#[tokio::test]
async fn responses() {
    for encoding in ALL {
        let (client, seen) = client(shop().send_compressed(encoding));
        // Clients that do not accept the encoding get uncompressed responses.
        let mut plain = client.clone();
        for (answered, (out, back, head)) in &call_all(&mut plain, &seen).await {
            assert_eq!((answered.as_deref(), *out, *back, head), (None, false, false, &[None, None]));
        }
        let mut client = client.accept_compressed(encoding);
        let outcomes = call_all(&mut client, &seen).await;
        for (answered, (_, back, [_, accepts])) in &outcomes {
            assert_eq!((answered.as_deref(), *back), (Some(name(encoding)), true));
            assert_eq!(accepts.as_deref(), Some(&*format!("{},identity", name(encoding))));
        }
    }
}

#[tokio::test]
async fn both_ways_and_neither() {
    let service = shop().accept_compressed(Gzip).send_compressed(Zstd);
    let (both, seen) = client(service);
    let mut client_of_both = both.send_compressed(Gzip).accept_compressed(Zstd).accept_compressed(Deflate);
    for (answered, (out, back, _)) in &call_all(&mut client_of_both, &seen).await {
        assert_eq!((answered.as_deref(), *out, *back), (Some("zstd"), true, true));
    }
    // A server without compression.
    let (client, seen) = client(shop());
    let mut client = ALL.iter().fold(client, |client, encoding| client.accept_compressed(*encoding));
    for (answered, (_, back, _)) in &call_all(&mut client, &seen).await {
        assert_eq!((answered.as_deref(), *back), (None, false));
    }
}

#[tokio::test]
async fn a_server_that_does_not_read_it_says_so() {
    for encoding in ALL {
        let (client, _) = client(shop());
        let mut client = client.send_compressed(encoding);
        let orders = || tokio_stream::iter([note(LEN)]);
        for status in [
            client.buy(note(LEN)).await.unwrap_err(),
            client.list(note(LEN)).await.unwrap_err(),
            client.collect(orders()).await.unwrap_err(),
            client.haggle(orders()).await.unwrap_err(),
        ] {
            assert_eq!(status.code(), Code::Unimplemented);
            assert!(status.message().contains(name(encoding)), "{status:?}");
            assert_eq!(status.metadata().get("grpc-accept-encoding").unwrap(), "identity");
        }
    }
}

/// Calls a service whose responses have a wrong encoding header.
async fn relabelled(encoding: Option<&'static str>) -> Status {
    let relabel = ServiceBuilder::new()
        .map_response(move |mut response: http::Response<Body>| {
            response.headers_mut().remove("grpc-encoding");
            let label = encoding.map(http::HeaderValue::from_static);
            response
                .headers_mut()
                .extend(label.map(|label| (http::HeaderName::from_static("grpc-encoding"), label)));
            response
        })
        .into_inner();
    let router = Server::builder().layer(relabel).add_service(shop().send_compressed(Gzip));
    let channel = in_memory(router, &Endpoint::from_static("http://shop.test"));
    ShopClient::new(channel).accept_compressed(Gzip).buy(note(LEN)).await.unwrap_err()
}

#[tokio::test]
async fn wrong_labels() {
    let status = relabelled(Some("br")).await;
    assert_eq!(status.code(), Code::Unimplemented);
    assert!(status.message().contains("br"), "{status:?}");
    let status = relabelled(None).await;
    assert_eq!(status.code(), Code::Internal);
    assert!(status.message().contains("compressed-flag"), "{status:?}");
}

#[tokio::test]
async fn a_request_without_its_label() {
    let unlabel = ServiceBuilder::new()
        .map_request(|mut request: Request<Body>| {
            request.headers_mut().remove("grpc-encoding");
            request
        })
        .into_inner();
    let router = Server::builder().layer(unlabel).add_service(shop().accept_compressed(Gzip));
    let channel = in_memory(router, &Endpoint::from_static("http://shop.test"));
    let status = ShopClient::new(channel).send_compressed(Gzip).buy(note(LEN)).await.unwrap_err();
    assert_eq!(status.code(), Code::Internal);
    assert!(status.message().contains("compressed-flag"), "{status:?}");
}

#[tokio::test]
async fn a_response_may_be_left_as_it_is() {
    for encoding in ALL {
        let service = ShopServer::new(ShopService::uncompressed()).send_compressed(encoding);
        let (client, seen) = client(service);
        let mut client = client.accept_compressed(encoding);
        let outcomes = call_all(&mut client, &seen).await;
        // Applies to single messages; streams stay compressed. The header still names the encoding.
        for ((answered, (_, back, _)), is_compressed) in outcomes.iter().zip([false, false, true]) {
            assert_eq!((answered.as_deref(), *back), (Some(name(encoding)), is_compressed));
        }
    }
}

#[tokio::test]
async fn what_messages_become_has_its_limit_too() {
    for encoding in ALL {
        let limit = prost::Message::encoded_len(&note(LEN));
        let (limited, _) = client(shop().accept_compressed(encoding).max_decoding_message_size(limit));
        let mut limited = limited.send_compressed(encoding);
        limited.buy(note(LEN)).await.unwrap();
        assert_eq!(limited.buy(note(LEN + 1)).await.unwrap_err().code(), Code::ResourceExhausted);
        let (client, _) = client(shop().send_compressed(encoding));
        let mut client = client.accept_compressed(encoding).max_decoding_message_size(limit);
        client.buy(note(LEN)).await.unwrap();
        assert_eq!(client.buy(note(LEN + 1)).await.unwrap_err().code(), Code::ResourceExhausted);
    }
}
