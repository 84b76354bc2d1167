//! Tests `grpc.reflection` with the generated client, and `v1alpha` by its path.

use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll};

use prost_types::{FileDescriptorProto, FileDescriptorSet};
use thalweg::prost::Message;
use thalweg::{CallOptions, Code, Method, Request, Stream, Streaming};
use thalweg_services::health::HealthReporter;
use thalweg_services::reflection::pb::server_reflection_request::MessageRequest;
use thalweg_services::reflection::pb::server_reflection_response::MessageResponse;
use thalweg_services::reflection::pb::{ExtensionRequest, ServerReflectionRequest, ServerReflectionResponse};
use thalweg_services::reflection::{Reflection, ReflectionBuilder};
use tokio::sync::mpsc;

use crate::support::{Running, soon};

static V1: Method = Method::new("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo");
static V1ALPHA: Method = Method::new("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");

/// Returns the shop's descriptors, written by `thalweg-build`.
fn shop() -> &'static [u8] {
    static SET: OnceLock<Vec<u8>> = OnceLock::new();
    SET.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("shop.bin");
        let build = thalweg_build::configure()
            .emit_rerun_if_changed(false)
            .out_dir(folder.path())
            .file_descriptor_set_path(&path);
        let protos = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/proto");
        build.compile_protos(&["shop/orders.proto"], &[protos]).expect("the files are right");
        std::fs::read(path).expect("it was written")
    })
}

/// A stream of requests with responses in order.
struct ReflectionStream {
    requests: mpsc::UnboundedSender<ServerReflectionRequest>,
    responses: Streaming<ServerReflectionResponse>,
}

struct Requests(mpsc::UnboundedReceiver<ServerReflectionRequest>);

impl Stream for Requests {
    type Item = ServerReflectionRequest;
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx)
    }
}

impl ReflectionStream {
    async fn open(server: &Running, method: &Method) -> Self {
        let (requests, sent) = mpsc::unbounded_channel();
        let options = CallOptions::default();
        let call = server.channel.bidi_streaming(method, Request::new(Requests(sent)), &options);
        Self { requests, responses: soon(call).await.expect("a stream").into_inner() }
    }

    /// Sends a request. Returns the response as file names, numbers, service names or an error.
    async fn send(&mut self, request: Option<MessageRequest>) -> Response {
        let request = ServerReflectionRequest { host: "a host".to_owned(), message_request: request };
        self.requests.send(request.clone()).expect("the stream is open");
        let response = soon(self.responses.message()).await.expect("no error").expect("a response");
        assert_eq!((response.valid_host, response.original_request), ("a host".to_owned(), Some(request)));
        match response.message_response.expect("a message") {
            MessageResponse::FileDescriptorResponse(files) => Response::Files(
                files
                    .file_descriptor_proto
                    .iter()
                    .map(|file| FileDescriptorProto::decode(&**file).expect("a file").name().to_owned())
                    .collect(),
            ),
            MessageResponse::AllExtensionNumbersResponse(numbers) => {
                Response::Numbers(numbers.base_type_name, numbers.extension_number)
            }
            MessageResponse::ListServicesResponse(list) => {
                Response::Services(list.service.into_iter().map(|service| service.name).collect())
            }
            MessageResponse::ErrorResponse(error) => {
                Response::Error(error.error_code.into(), error.error_message)
            }
        }
    }
}

#[derive(Debug, PartialEq)]
enum Response {
    Files(Vec<String>),
    Numbers(String, Vec<i32>),
    Services(Vec<String>),
    Error(Code, String),
}

const ORDERS: &str = "shop/orders.proto";
const MONEY: &str = "shop/money.proto";
const DESCRIPTOR: &str = "google/protobuf/descriptor.proto";
const TIMESTAMP: &str = "google/protobuf/timestamp.proto";

fn files(names: &[&str]) -> Response {
    Response::Files(names.iter().map(|&name| name.to_owned()).collect())
}

fn symbol(name: &str) -> MessageRequest {
    MessageRequest::FileContainingSymbol(name.to_owned())
}

fn extension(message: &str, number: i32) -> MessageRequest {
    let containing_type = message.to_owned();
    MessageRequest::FileContainingExtension(ExtensionRequest { containing_type, extension_number: number })
}

fn numbers_of(message: &str) -> MessageRequest {
    MessageRequest::AllExtensionNumbersOfType(message.to_owned())
}

fn error(code: Code, message: &str) -> Response {
    Response::Error(code, message.to_owned())
}

/// Sends requests to a server with health, reflection and these descriptors, in a stream for each version.
async fn check(builder: ReflectionBuilder, cases: &[(MessageRequest, Response)]) {
    let reflection = builder.build().expect("the descriptors are right");
    let health = HealthReporter::new();
    let add = |server: thalweg::server::ServerBuilder| {
        // The list is complete although reflection is added first.
        server.add_service(reflection).add_service(health.service())
    };
    let server = Running::start(add).await;
    for method in [&V1, &V1ALPHA] {
        let mut stream = ReflectionStream::open(&server, method).await;
        for (request, expected) in cases {
            assert_eq!(
                stream.send(Some(request.clone())).await,
                *expected,
                "{request:?} of {}",
                method.path()
            );
        }
    }
}

#[tokio::test]
async fn symbol_returns_the_declaring_file() {
    let mut cases: Vec<_> = [
        "shop.v1.Orders",
        "shop.v1.Orders.Place",
        "shop.v1.Order",
        "shop.v1.Order.price",
        "shop.v1.Order.payment",
        "shop.v1.Order.card",
        "shop.v1.Order.Line",
        "shop.v1.Order.Line.article",
        "shop.v1.Order.State",
        // Values are siblings of their enum.
        "shop.v1.Order.PLACED",
        "shop.v1.SMALL",
        "shop.v1.Order.gift_note",
        "shop.v1.coupon",
        "shop.v1.owner",
    ]
    .map(|name| (symbol(name), files(&[ORDERS])))
    .into();
    // Imports come only with the first file that needs them.
    cases[0].1 = files(&[ORDERS, DESCRIPTOR, TIMESTAMP, MONEY]);
    cases.extend([
        (symbol("shop.Money"), files(&[MONEY])),
        (symbol("google.protobuf.Timestamp"), files(&[TIMESTAMP])),
        (symbol("grpc.health.v1.Health"), files(&["grpc/health/v1/health.proto"])),
    ]);
    cases.extend(
        ["shop.v1", "shop.v1.Order.State.PLACED", "shop.v1.Size.SMALL", ".shop.v1.Order", ""]
            .map(|name| (symbol(name), error(Code::NotFound, &format!("unknown symbol {name}")))),
    );
    check(Reflection::builder().descriptors(shop()), &cases).await;
}

#[tokio::test]
async fn file_by_filename_returns_the_file_and_unsent_imports() {
    let named = |name: &str| MessageRequest::FileByFilename(name.to_owned());
    check(
        Reflection::builder().descriptors(shop()),
        &[
            (named(MONEY), files(&[MONEY])),
            (named(ORDERS), files(&[ORDERS, DESCRIPTOR, TIMESTAMP])),
            (named(ORDERS), files(&[ORDERS])),
            (named("orders.proto"), error(Code::NotFound, "unknown file orders.proto")),
            // The stream continues after errors.
            (named(TIMESTAMP), files(&[TIMESTAMP])),
        ],
    )
    .await;
}

#[tokio::test]
async fn extensions_are_found_by_the_extended_message() {
    let expected = |message: &str, numbers: &[i32]| Response::Numbers(message.to_owned(), numbers.to_vec());
    check(
        Reflection::builder().descriptors(shop()),
        &[
            (numbers_of("shop.v1.Order"), expected("shop.v1.Order", &[100, 101])),
            (
                numbers_of("google.protobuf.MessageOptions"),
                expected("google.protobuf.MessageOptions", &[50001]),
            ),
            (numbers_of("shop.v1.Receipt"), expected("shop.v1.Receipt", &[])),
            (numbers_of("shop.v1.Bill"), error(Code::NotFound, "unknown message shop.v1.Bill")),
            (numbers_of("shop.v1.Orders"), error(Code::NotFound, "unknown message shop.v1.Orders")),
            (extension("shop.v1.Order", 101), files(&[ORDERS, DESCRIPTOR, TIMESTAMP, MONEY])),
            (
                extension("shop.v1.Order", 102),
                error(Code::NotFound, "unknown extension 102 of shop.v1.Order"),
            ),
            (extension("a.B", 1), error(Code::NotFound, "unknown extension 1 of a.B")),
        ],
    )
    .await;
}

#[tokio::test]
async fn list_has_all_services_or_only_advertised_ones() {
    let list = || MessageRequest::ListServices(String::new());
    let expected = |names: &[&str]| Response::Services(names.iter().map(|&name| name.to_owned()).collect());
    let all = [
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
    ];
    // Described services need not be served.
    check(Reflection::builder().descriptors(shop()), &[(list(), expected(&all))]).await;
    let named = Reflection::builder().with_service_name("shop.B").with_service_name("shop.A");
    check(named, &[(list(), expected(&["shop.A", "shop.B"]))]).await;
}

#[tokio::test]
async fn empty_request_returns_invalid_argument() {
    let reflection = Reflection::builder().build().expect("no descriptors");
    let server = Running::start(|server| server.add_service(reflection)).await;
    let response = ReflectionStream::open(&server, &V1).await.send(None).await;
    assert_eq!(response, error(Code::InvalidArgument, "the request is empty"));
}

#[tokio::test]
async fn service_without_descriptors_returns_not_found_with_a_hint() {
    struct Bare;
    impl thalweg::server::Service for Bare {
        const NAME: &'static str = "shop.v1.Orders";
        fn register(self, _: &mut thalweg::server::Methods<'_>) {}
    }
    let reflection = Reflection::builder().build().expect("no descriptors");
    let server = Running::start(|server| server.add_service(reflection).add_service(Bare)).await;
    let Response::Error(code, message) =
        ReflectionStream::open(&server, &V1).await.send(Some(symbol("shop.v1.Orders"))).await
    else {
        panic!("there is nothing to describe it with");
    };
    assert_eq!(code, Code::NotFound);
    assert!(message.contains("descriptor set"), "{message}");
}

#[tokio::test]
async fn custom_options_are_preserved() {
    let reflection = Reflection::builder().descriptors(shop()).build().expect("they are right");
    let server = Running::start(|server| server.add_service(reflection)).await;
    let mut stream = ReflectionStream::open(&server, &V1).await;
    let request =
        ServerReflectionRequest { host: String::new(), message_request: Some(symbol("shop.v1.Order")) };
    stream.requests.send(request).expect("the stream is open");
    let response = soon(stream.responses.message()).await.expect("no error").expect("a response");
    let Some(MessageResponse::FileDescriptorResponse(files)) = response.message_response else {
        panic!("{response:?}")
    };
    let option = b"the orders' team";
    assert!(files.file_descriptor_proto[0].windows(option.len()).any(|bytes| bytes == option));
}

#[tokio::test]
async fn idle_stream_does_not_delay_shutdown() {
    let reflection = Reflection::builder().build().expect("no descriptors");
    let server = Running::start(|server| server.add_service(reflection)).await;
    let mut stream = ReflectionStream::open(&server, &V1).await;
    stream.send(Some(symbol("grpc.reflection.v1.ServerReflection"))).await;
    server.stop().await;
    assert_eq!(soon(stream.responses.message()).await.expect_err("it ended").code(), Code::Unavailable);
}

#[test]
fn invalid_descriptors_are_rejected() {
    let check = |sets: &[Vec<u8>], expected: &str| {
        let builder =
            sets.iter().fold(Reflection::builder(), |builder, set| builder.descriptors(set.clone()));
        let error = builder.build().expect_err(expected).to_string();
        assert!(error.starts_with(expected), "{error}");
    };
    let set = |names_and_imports: &[(&str, &[&str])]| {
        let file = |(name, imports): &(&str, &[&str])| FileDescriptorProto {
            name: (!name.is_empty()).then(|| (*name).to_owned()),
            dependency: imports.iter().map(|&import| import.to_owned()).collect(),
            ..FileDescriptorProto::default()
        };
        FileDescriptorSet { file: names_and_imports.iter().map(file).collect() }.encode_to_vec()
    };
    check(&[vec![0xff]], "descriptor set 1 is not a valid google.protobuf.FileDescriptorSet: ");
    let not_a_file = vec![0x0a, 0x01, 0xff];
    check(
        &[set(&[]), not_a_file],
        "file 1 of descriptor set 2 is not a valid google.protobuf.FileDescriptorProto: ",
    );
    check(&[set(&[("a.proto", &[]), ("", &[])])], "file 2 of descriptor set 1 has no name");
    check(&[set(&[("a.proto", &["b.proto"])])], "a.proto imports b.proto, which is in no descriptor set; ");
    // Another set may have the import, in any order.
    let sets = [set(&[("a.proto", &["b.proto"])]), set(&[("b.proto", &[]), ("a.proto", &[])])];
    let builder = sets.into_iter().fold(Reflection::builder(), ReflectionBuilder::descriptors);
    builder.build().expect("both are there");
}
