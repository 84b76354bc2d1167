//! Size limits of messages, header lists, frames and tables.

use thalweg_tonic_tests::pb::Order;
use thalweg_tonic_tests::pb::shop_client::ShopClient;
use thalweg_tonic_tests::pb::shop_server::ShopServer;
use thalweg_tonic_tests::{ShopService, in_memory, note, order};
use tonic::metadata::MetadataValue;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Request, Response, Status};

const MIB: usize = 1 << 20;
/// Bytes of tag and length of a note of some KiB or MiB.
const FIELD: usize = 5;

/// Maximum message sizes of one side, in bytes.
#[derive(Clone, Copy, Default)]
struct SizeLimits {
    decoding: Option<usize>,
    encoding: Option<usize>,
}

fn client(server: SizeLimits, client: SizeLimits, shop: ShopService) -> ShopClient<Channel> {
    let mut service = ShopServer::new(shop);
    if let Some(max) = server.decoding {
        service = service.max_decoding_message_size(max);
    }
    if let Some(max) = server.encoding {
        service = service.max_encoding_message_size(max);
    }
    let router = Server::builder().add_service(service);
    let mut stub = ShopClient::new(in_memory(router, &Endpoint::from_static("http://shop.test")));
    if let Some(max) = client.decoding {
        stub = stub.max_decoding_message_size(max);
    }
    if let Some(max) = client.encoding {
        stub = stub.max_encoding_message_size(max);
    }
    stub
}

/// Checks how calls with a request or a response of `len` bytes end, both unary and streaming.
async fn check(
    (server_max, client_max): (SizeLimits, SizeLimits),
    (request_len, response_len): (usize, usize),
    expected: (Code, Code),
) {
    let responses = move || note(response_len);
    let shop = ShopService::on_buy(move |_| async move { Ok(Response::new(responses())) });
    let mut stub = client(server_max, client_max, shop);
    let code = |outcome: Result<(), Status>| outcome.map_or_else(|status| status.code(), |()| Code::Ok);
    let unary = code(stub.buy(note(request_len)).await.map(drop));
    let mut stub = client(server_max, client_max, ShopService::on_list(move |_| vec![Ok(responses())]));
    let streamed = match stub.list(note(request_len)).await {
        Ok(responses) => code(responses.into_inner().message().await.map(drop)),
        Err(status) => status.code(),
    };
    assert_eq!((unary, streamed), expected, "{request_len} bytes out, {response_len} in");
}

const OK: (Code, Code) = (Code::Ok, Code::Ok);
const TOO_LARGE: (Code, Code) = (Code::OutOfRange, Code::OutOfRange);

#[tokio::test]
async fn decoding_limits_apply() {
    let none = SizeLimits::default();
    let decoding_limit = |max: usize| SizeLimits { decoding: Some(max), ..none };
    for (len, expected) in [(128, OK), (4 * MIB - FIELD, OK), (4 * MIB, TOO_LARGE), (8 * MIB, TOO_LARGE)] {
        check((none, none), (len, 0), expected).await;
        check((none, none), (0, len), expected).await;
    }
    for (len, expected) in [(1024 - FIELD, OK), (1024, TOO_LARGE)] {
        check((decoding_limit(1024), none), (len, 0), expected).await;
        check((none, decoding_limit(1024)), (0, len), expected).await;
    }
    check((decoding_limit(usize::MAX), none), (5 * MIB, 0), OK).await;
    check((none, decoding_limit(usize::MAX)), (0, 5 * MIB), OK).await;
}

#[tokio::test]
async fn encoding_limits_apply() {
    let none = SizeLimits::default();
    let encoding_limit = |max: usize| SizeLimits { encoding: Some(max), ..none };
    for (len, expected) in [(1024 - FIELD, OK), (1024, TOO_LARGE)] {
        check((encoding_limit(1024), none), (0, len), expected).await;
    }
    // A client of tonic's returns INTERNAL, which tonic calls a mistake.
    for (len, expected) in [(1024 - FIELD, OK), (1024, TOO_LARGE)] {
        check((none, encoding_limit(1024)), (len, 0), expected).await;
    }
}

#[tokio::test]
async fn large_streamed_messages_arrive_intact() {
    const LENS: [usize; 9] = [0, 3 * MIB, 10, 2 * MIB, 5 * MIB, 1, 20 * MIB, 2 * MIB + 1, 7];
    let any = SizeLimits { decoding: Some(usize::MAX), encoding: None };
    // Bytes that depend on their position.
    let patterned =
        |len: usize| Order { item: len.to_string(), note: (0..len).map(|at| (at / 7) as u8).collect() };
    let shop = ShopService::on_list(move |_| LENS.map(|len| Ok(patterned(len))).into());
    let mut responses = client(any, any, shop).list(order("")).await.unwrap().into_inner();
    for len in LENS {
        assert!(responses.message().await.unwrap() == Some(patterned(len)), "{len} bytes in a response");
    }
    assert_eq!(responses.message().await.unwrap(), None);
    let requests = tokio_stream::iter(LENS.map(patterned));
    let mut responses = client(any, any, ShopService::default()).haggle(requests).await.unwrap().into_inner();
    for len in LENS {
        assert!(responses.message().await.unwrap() == Some(patterned(len)), "{len} bytes there and back");
    }
}

#[tokio::test]
async fn stream_fails_at_a_message_that_is_too_large() {
    let shop = ShopService::on_list(|_| [10, 20, 2000, 10].map(|len| Ok(note(len))).into());
    let mut stub =
        client(SizeLimits::default(), SizeLimits { decoding: Some(1000), ..SizeLimits::default() }, shop);
    let mut responses = stub.list(order("")).await.unwrap().into_inner();
    for len in [10, 20] {
        assert_eq!(responses.message().await.unwrap(), Some(note(len)));
    }
    assert_eq!(responses.message().await.unwrap_err().code(), Code::OutOfRange);
}

/// Creates a service that fails with a message of `len` bytes.
fn failing_service(len: usize) -> ShopService {
    ShopService::on_buy(move |_| async move { Err(Status::internal("a".repeat(len))) })
}

#[tokio::test]
async fn response_header_list_limit_truncates_the_message() {
    let endpoint = Endpoint::from_static("http://shop.test");
    let failure = async |endpoint: Endpoint| {
        let router = Server::builder().add_service(ShopServer::new(failing_service(20_000)));
        ShopClient::new(in_memory(router, &endpoint)).buy(order("")).await.unwrap_err()
    };
    let status = failure(endpoint.clone().http2_max_header_list_size(40_000)).await;
    assert_eq!((status.code(), status.message().len()), (Code::Internal, 20_000));
    // The code always arrives; the message is truncated to the available space.
    let status = failure(endpoint).await;
    assert_eq!(status.code(), Code::Internal);
    assert!((1000..16_384).contains(&status.message().len()), "{}", status.message().len());
}

#[tokio::test]
async fn request_header_list_limit_applies() {
    let call = async |server: Server| {
        let shop = ShopService::on_buy(|request| async move {
            let len = request.metadata().get("x-long").unwrap().len();
            Ok(Response::new(order(&len.to_string())))
        });
        let router = { server }.add_service(ShopServer::new(shop));
        let mut stub = ShopClient::new(in_memory(router, &Endpoint::from_static("http://shop.test")));
        stub.buy(order("")).await.unwrap_err();
        let mut request = Request::new(order(""));
        let long = MetadataValue::try_from("a".repeat(20_000)).unwrap();
        request.metadata_mut().insert("x-long", long);
        stub.buy(request).await.map(|response| response.into_inner().item)
    };
    assert_eq!(call(Server::builder().http2_max_header_list_size(40_000)).await.unwrap(), "20000");
    assert_eq!(call(Server::builder()).await.unwrap_err().code(), Code::ResourceExhausted);
}

#[tokio::test]
async fn any_frame_and_table_size_works() {
    for (server, endpoint) in [
        (
            Server::builder().max_frame_size(1 << 20),
            Endpoint::from_static("http://shop.test").max_frame_size(1 << 20),
        ),
        (Server::builder(), Endpoint::from_static("http://shop.test").http2_header_table_size(0)),
        (
            Server::builder().initial_stream_window_size(1024).initial_connection_window_size(70_000),
            Endpoint::from_static("http://shop.test").initial_stream_window_size(1024),
        ),
    ] {
        let router = { server }.add_service(ShopServer::new(ShopService::default()));
        let mut stub = ShopClient::new(in_memory(router, &endpoint));
        for len in [0, 100_000, 2 * MIB] {
            assert_eq!(stub.buy(note(len)).await.unwrap().into_inner(), note(len));
        }
    }
}
