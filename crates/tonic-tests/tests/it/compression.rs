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
use thalweg_tonic_tests::{ShopService, by_package, in_memory, note};
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
struct ObservedTraffic {
    request_bytes: Arc<AtomicUsize>,
    response_bytes: Arc<AtomicUsize>,
    encoding_headers: Arc<std::sync::Mutex<Vec<[Option<String>; 2]>>>,
}

impl ObservedTraffic {
    /// Returns whether requests and responses since the last call were compressed, and encoding and accepted encodings
    /// of the last request.
    fn take(&self) -> (bool, bool, [Option<String>; 2]) {
        let is_compressed = |count: &AtomicUsize| (1..LEN).contains(&count.swap(0, Ordering::Relaxed));
        let headers = self.encoding_headers.lock().unwrap().pop().unwrap();
        (is_compressed(&self.request_bytes), is_compressed(&self.response_bytes), headers)
    }
}

struct CountingBody(Body, Arc<AtomicUsize>);

impl http_body::Body for CountingBody {
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

fn client(shop: ShopServer<ShopService>) -> (ShopClient<Channel>, ObservedTraffic) {
    let observed = ObservedTraffic::default();
    let (request_observer, response_observer) = (observed.clone(), observed.clone());
    let layers = ServiceBuilder::new()
        .map_request(move |request: Request<Body>| {
            let header = |name| request.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
            let headers = ["grpc-encoding", "grpc-accept-encoding"].map(header);
            request_observer.encoding_headers.lock().unwrap().push(headers);
            request.map(|body| Body::new(CountingBody(body, Arc::clone(&request_observer.request_bytes))))
        })
        .map_response(move |response: http::Response<Body>| {
            response.map(|body| Body::new(CountingBody(body, Arc::clone(&response_observer.response_bytes))))
        })
        .into_inner();
    let router = Server::builder().layer(layers).add_service(shop);
    (ShopClient::new(in_memory(router, &Endpoint::from_static("http://shop.test"))), observed)
}

fn shop() -> ShopServer<ShopService> {
    ShopServer::new(ShopService::default())
}

/// Makes a call of each type. Returns the `grpc-encoding` of each response and the server's view.
async fn call_all(
    client: &mut ShopClient<Channel>,
    observed: &ObservedTraffic,
) -> Vec<(Option<String>, (bool, bool, [Option<String>; 2]))> {
    let orders = || tokio_stream::iter([note(LEN), note(LEN)]);
    let encoding = |metadata: &tonic::metadata::MetadataMap| {
        metadata.get("grpc-encoding").map(|value| value.to_str().unwrap().to_owned())
    };
    let mut outcomes = Vec::new();
    let response = client.buy(note(LEN)).await.unwrap();
    assert_eq!(response.get_ref(), &note(LEN));
    outcomes.push((encoding(response.metadata()), observed.take()));
    let response = client.collect(orders()).await.unwrap();
    outcomes.push((encoding(response.metadata()), observed.take()));
    let responses = client.list(note(LEN)).await.unwrap();
    let response_encoding = encoding(responses.metadata());
    read_two(responses).await;
    outcomes.push((response_encoding, observed.take()));
    let responses = client.haggle(orders()).await.unwrap();
    let response_encoding = encoding(responses.metadata());
    read_two(responses).await;
    outcomes.push((response_encoding, observed.take()));
    outcomes
}

async fn read_two(responses: tonic::Response<tonic::Streaming<Order>>) {
    let mut responses = responses.into_inner();
    for _ in 0..2 {
        assert_eq!(responses.message().await.unwrap(), Some(note(LEN)));
    }
    assert_eq!(responses.message().await.unwrap(), None);
}

fn name(encoding: CompressionEncoding) -> &'static str {
    match encoding {
        Gzip => "gzip",
        Deflate => "deflate",
        _ => "zstd",
    }
}

#[tokio::test]
async fn requests_are_compressed() {
    for encoding in ALL {
        for accepted in [&[encoding][..], &ALL] {
            let service =
                accepted.iter().fold(shop(), |service, encoding| service.accept_compressed(*encoding));
            let (client, observed) = client(service);
            let mut client = client.send_compressed(encoding);
            for (response_encoding, (request_compressed, response_compressed, [sent, accepts])) in
                &call_all(&mut client, &observed).await
            {
                assert_eq!(
                    (response_encoding.as_deref(), *request_compressed, *response_compressed),
                    (None, true, false)
                );
                assert_eq!((sent.as_deref(), accepts.as_deref()), (Some(name(encoding)), None));
            }
        }
    }
}

#[tokio::test]
async fn responses_are_compressed() {
    for encoding in ALL {
        let (client, observed) = client(shop().send_compressed(encoding));
        // Clients that do not accept the encoding get uncompressed responses.
        let mut plain = client.clone();
        for (response_encoding, (request_compressed, response_compressed, headers)) in
            &call_all(&mut plain, &observed).await
        {
            assert_eq!(
                (response_encoding.as_deref(), *request_compressed, *response_compressed, headers),
                (None, false, false, &[None, None])
            );
        }
        let mut client = client.accept_compressed(encoding);
        let outcomes = call_all(&mut client, &observed).await;
        for (response_encoding, (_, response_compressed, [_, accepts])) in &outcomes {
            assert_eq!((response_encoding.as_deref(), *response_compressed), (Some(name(encoding)), true));
            assert_eq!(accepts.as_deref(), Some(&*format!("{},identity", name(encoding))));
        }
    }
}

#[tokio::test]
async fn encodings_are_negotiated_per_direction() {
    let service = shop().accept_compressed(Gzip).send_compressed(Zstd);
    let (both, observed) = client(service);
    let mut client_of_both = both.send_compressed(Gzip).accept_compressed(Zstd).accept_compressed(Deflate);
    for (response_encoding, (request_compressed, response_compressed, _)) in
        &call_all(&mut client_of_both, &observed).await
    {
        assert_eq!(
            (response_encoding.as_deref(), *request_compressed, *response_compressed),
            (Some("zstd"), true, true)
        );
    }
    // A server without compression.
    let (client, observed) = client(shop());
    let mut client = ALL.iter().fold(client, |client, encoding| client.accept_compressed(*encoding));
    for (response_encoding, (_, response_compressed, _)) in &call_all(&mut client, &observed).await {
        assert_eq!((response_encoding.as_deref(), *response_compressed), (None, false));
    }
}

#[tokio::test]
async fn unsupported_encoding_is_unimplemented() {
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
async fn call_with_relabelled_response(encoding: Option<&'static str>) -> Status {
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
async fn wrong_response_encoding_is_an_error() {
    let status = call_with_relabelled_response(Some("br")).await;
    assert_eq!(status.code(), Code::Unimplemented);
    assert!(status.message().contains("br"), "{status:?}");
    let status = call_with_relabelled_response(None).await;
    assert_eq!(status.code(), Code::Internal);
    assert!(status.message().contains(by_package("compressed-flag", "flagged as compressed")), "{status:?}");
}

#[tokio::test]
async fn compressed_request_without_encoding_is_internal() {
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
    assert!(status.message().contains(by_package("compressed-flag", "flagged as compressed")), "{status:?}");
}

#[tokio::test]
async fn compression_can_be_disabled_per_response() {
    for encoding in ALL {
        let service = ShopServer::new(ShopService::uncompressed()).send_compressed(encoding);
        let (client, observed) = client(service);
        let mut client = client.accept_compressed(encoding);
        let outcomes = call_all(&mut client, &observed).await;
        // Applies to single messages; streams stay compressed. The header still names the encoding.
        for ((response_encoding, (_, response_compressed, _)), is_compressed) in
            outcomes.iter().zip([false, false, true])
        {
            assert_eq!(
                (response_encoding.as_deref(), *response_compressed),
                (Some(name(encoding)), is_compressed)
            );
        }
    }
}

#[tokio::test]
async fn size_limit_applies_after_decompression() {
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
