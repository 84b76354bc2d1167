//! Tests reflection with correct and faulty servers: old versions, separate files, missing imports, wrong responses,
//! and silence.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use thalweg::bytes::Bytes;
use thalweg::metadata::MetadataMap;
use thalweg::server::{Methods, Service};
use thalweg::{Channel, Code, Request, Response, Server, ServiceOptions, Status, Streaming};
use thalweg_dynamic::{Catalogue, Reflection, ReflectionError, ReflectionLimits};
use thalweg_protobuf::sources;
use thalweg_services::reflection::pb::server_reflection_request::MessageRequest;
use thalweg_services::reflection::pb::server_reflection_response::MessageResponse;
use thalweg_services::reflection::pb::{
    ErrorResponse, FileDescriptorResponse, ListServiceResponse, ServerReflectionRequest,
    ServerReflectionResponse, ServiceResponse,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

const SHOP: &str = "
    syntax = 'proto3';
    package shop;
    import 'item.proto';
    import 'google/protobuf/timestamp.proto';
    message Order { Item item = 1; google.protobuf.Timestamp at = 2; }
    service Orders { rpc Place(Order) returns (Order); }";
const ITEM: &str = "syntax = 'proto3'; package shop; message Item { string name = 1; }";

/// Reaction of a server to a request.
enum Reaction {
    Respond(MessageResponse),
    Fail(Status),
    Ignore,
}

type Handler = Box<dyn Fn(&MessageRequest) -> Reaction + Send + Sync>;

/// The service, under either name.
struct V1(Arc<Handler>);
struct V1Alpha(Arc<Handler>);

impl Service for V1 {
    const NAME: &'static str = "grpc.reflection.v1.ServerReflection";

    fn register(self, methods: &mut Methods<'_>) {
        register(&self.0, methods);
    }
}

impl Service for V1Alpha {
    const NAME: &'static str = "grpc.reflection.v1alpha.ServerReflection";

    fn register(self, methods: &mut Methods<'_>) {
        register(&self.0, methods);
    }
}

fn register(handler: &Arc<Handler>, methods: &mut Methods<'_>) {
    methods.bidi_streaming(
        "ServerReflectionInfo",
        handler,
        &ServiceOptions::default(),
        |handler: Arc<Handler>, request: Request<Streaming<ServerReflectionRequest>>| async move {
            let (sender, receiver) = mpsc::channel(1);
            tokio::spawn(async move {
                let mut requests = request.into_inner();
                while let Ok(Some(message)) = requests.message().await {
                    let Some(message) = message.message_request else { continue };
                    let response = match handler(&message) {
                        Reaction::Respond(message) => Ok(ServerReflectionResponse {
                            message_response: Some(message),
                            ..Default::default()
                        }),
                        Reaction::Fail(status) => Err(status),
                        Reaction::Ignore => continue,
                    };
                    if sender.send(response).await.is_err() {
                        break;
                    }
                }
            });
            Ok(Response::new(ReceiverStream::new(receiver)))
        },
    );
}

/// Returns a client of a server with this service.
fn client(service: impl Service, response_timeout: Duration) -> Reflection {
    client_within(service, ReflectionLimits::with_response_timeout(response_timeout))
}

fn client_within(service: impl Service, limits: ReflectionLimits) -> Reflection {
    let server = Arc::new(std::sync::Mutex::new(Some(Server::builder().add_service(service))));
    let channel = Channel::builder("memory:1")
        .connector(move || {
            let server = server.lock().unwrap().take().expect("one connection is made");
            async move {
                let (client, end) = tokio::io::duplex(64 * 1024);
                tokio::spawn(server.serve_connection(end));
                Ok(client)
            }
        })
        .connect_lazy()
        .unwrap();
    Reflection::new(channel, MetadataMap::new(), limits)
}

const TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the files of the shop by name.
fn shop_files() -> BTreeMap<String, Bytes> {
    #[derive(Clone, PartialEq, prost::Message)]
    struct Set {
        #[prost(bytes = "bytes", repeated, tag = "1")]
        file: Vec<Bytes>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    struct FileName {
        #[prost(string, tag = "1")]
        name: String,
    }
    let read = |name: &str| match name {
        "shop.proto" => Some(SHOP.to_owned()),
        "item.proto" => Some(ITEM.to_owned()),
        _ => None,
    };
    let set = sources::compile(&["shop.proto"], read).unwrap();
    let set: Set = prost::Message::decode(&*set).unwrap();
    let name = |file: &Bytes| <FileName as prost::Message>::decode(file.clone()).unwrap().name;
    set.file.into_iter().map(|file| (name(&file), file)).collect()
}

fn files(files: impl IntoIterator<Item = Bytes>) -> Reaction {
    let file_descriptor_proto = files.into_iter().collect();
    Reaction::Respond(MessageResponse::FileDescriptorResponse(FileDescriptorResponse {
        file_descriptor_proto,
    }))
}

fn error(code: Code) -> Reaction {
    Reaction::Respond(MessageResponse::ErrorResponse(ErrorResponse {
        error_code: code as i32,
        error_message: "not here".to_owned(),
    }))
}

/// Returns a server that sends each file alone and lacks those of Google.
fn serves_files_one_by_one() -> Arc<Handler> {
    let shop = shop_files();
    Arc::new(Box::new(move |message| match message {
        MessageRequest::ListServices(_) => {
            let service = |name: &str| ServiceResponse { name: name.to_owned() };
            Reaction::Respond(MessageResponse::ListServicesResponse(ListServiceResponse {
                service: vec![service("shop.Orders"), service("a.First")],
            }))
        }
        MessageRequest::FileContainingSymbol(name) => match name.as_str() {
            "shop.Orders" | "shop.Order" => files([shop["shop.proto"].clone()]),
            _ => error(Code::NotFound),
        },
        MessageRequest::FileByFilename(name) if name == "item.proto" => files([shop["item.proto"].clone()]),
        _ => error(Code::NotFound),
    }))
}

#[tokio::test]
async fn missing_imports_are_fetched() {
    let mut catalogue = Catalogue::Server(Box::new(client(V1(serves_files_one_by_one()), TIMEOUT)));
    assert_eq!(catalogue.services().await.unwrap(), ["a.First", "shop.Orders"]);
    let schema = catalogue.schema_of("shop.Orders").await.unwrap().unwrap();
    let place = schema.service("shop.Orders").unwrap().method("Place").unwrap();
    assert_eq!(place.input().full_name(), "shop.Order");
    assert!(schema.message("shop.Item").is_some());
    // Included in the compiler; the server lacks it.
    assert!(schema.message("google.protobuf.Timestamp").is_some());
    assert!(catalogue.schema_of("shop.Nothing").await.unwrap().is_none());
    // Like grpcio, this server finds services but not methods.
    assert!(catalogue.schema_of("shop.Orders.Place").await.unwrap().is_some());
    assert!(catalogue.schema_of("shop.Orders.Nothing").await.unwrap().is_none());
    // Imports precede importing files, as in protoc's output.
    let set = catalogue.descriptor_set();
    let at = |name: &[u8]| set.windows(name.len()).position(|window| window == name).unwrap();
    assert!(at(b"\x0a\x0aitem.proto") < at(b"\x0a\x0ashop.proto"));
}

#[tokio::test]
async fn v1alpha_is_used_without_v1() {
    let mut reflection = client(V1Alpha(serves_files_one_by_one()), TIMEOUT);
    assert_eq!(reflection.services().await.unwrap(), ["shop.Orders", "a.First"]);
    assert!(reflection.fetch("shop.Order").await.unwrap());
}

#[tokio::test]
async fn missing_reflection_and_failure_are_distinct_errors() {
    struct Other;
    impl Service for Other {
        const NAME: &'static str = "a.Other";
        fn register(self, _: &mut Methods<'_>) {}
    }
    let error = client(Other, TIMEOUT).services().await.unwrap_err();
    assert!(matches!(error, ReflectionError::Unsupported), "{error}");
    let denied = || Reaction::Fail(Status::permission_denied("no"));
    let error = client(V1(Arc::new(Box::new(move |_| denied()))), TIMEOUT).services().await.unwrap_err();
    assert!(error.to_string().contains("no"), "{error}");
    assert!(matches!(&error, ReflectionError::Call(status) if status.code() == Code::PermissionDenied));
}

#[tokio::test]
async fn invalid_responses_are_reported() {
    let check = async |handler: Arc<Handler>, expected: &str| {
        let error = client(V1(handler), TIMEOUT).fetch("shop.Orders").await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    };
    check(
        Arc::new(Box::new(|_| files([Bytes::from_static(b"\xff\xff")]))),
        "sent an invalid file descriptor",
    )
    .await;
    check(
        Arc::new(Box::new(|_| {
            Reaction::Respond(MessageResponse::ListServicesResponse(ListServiceResponse::default()))
        })),
        "sent an unexpected response for a file",
    )
    .await;
    check(Arc::new(Box::new(|_| error(Code::Internal))), "returned Internal for a file: not here").await;
    // The server lacks item.proto and sends another file instead.
    let shop = shop_files();
    let missing = shop["shop.proto"].clone();
    check(
        Arc::new(Box::new(move |message| match message {
            MessageRequest::FileByFilename(name) if name.starts_with("google") => error(Code::NotFound),
            _ => files([missing.clone()]),
        })),
        "returned other files for item.proto",
    )
    .await;
    let only_shop = shop["shop.proto"].clone();
    check(
        Arc::new(Box::new(move |message| match message {
            MessageRequest::FileContainingSymbol(_) => files([only_shop.clone()]),
            _ => error(Code::NotFound),
        })),
        "does not have item.proto, which shop.proto imports: not here",
    )
    .await;
}

#[tokio::test]
async fn silent_server_times_out() {
    let mut reflection = client(V1(Arc::new(Box::new(|_| Reaction::Ignore))), Duration::from_millis(50));
    let error = reflection.services().await.unwrap_err();
    assert!(error.to_string().contains("no response within 50ms"), "{error}");
}

/// Returns a `FileDescriptorProto` with this name and these imports.
fn file(name: &str, imports: impl IntoIterator<Item = String>) -> Bytes {
    #[derive(Clone, PartialEq, prost::Message)]
    struct File {
        #[prost(string, tag = "1")]
        name: String,
        #[prost(string, repeated, tag = "3")]
        dependency: Vec<String>,
    }
    let file = File { name: name.to_owned(), dependency: imports.into_iter().collect() };
    prost::Message::encode_to_vec(&file).into()
}

/// Returns a server with a chain of files that import the next. The first also imports `extra`.
fn chain(len: usize, extra: Vec<String>) -> V1 {
    V1(Arc::new(Box::new(move |message| {
        let index = match message {
            MessageRequest::FileByFilename(name) => name.parse().unwrap_or(len),
            _ => 0,
        };
        let next = (index < len).then(|| (index + 1).to_string());
        let extra = if index == 0 { extra.clone() } else { Vec::new() };
        files([file(&index.to_string(), next.into_iter().chain(extra))])
    })))
}

/// Searching all files for missing imports after each file would take hours.
#[tokio::test]
async fn many_files_and_imports_take_linear_time() {
    let repeated = vec!["0".to_owned(); 1_000_000];
    let mut reflection = client(chain(9_000, repeated), TIMEOUT);
    assert!(tokio::time::timeout(TIMEOUT * 30, reflection.fetch("a.B")).await.unwrap().unwrap());
    assert_eq!(reflection.schema().unwrap().files().count(), 9_001);
}

#[tokio::test]
async fn limits_abort_reflection() {
    let check = async |service, change: &dyn Fn(&mut ReflectionLimits), expected: &str| {
        let mut limits = ReflectionLimits::default();
        change(&mut limits);
        let error = client_within(service, limits).fetch("a.B").await.unwrap_err();
        assert!(matches!(error, ReflectionError::Limit(_)), "{error}");
        assert_eq!(error.to_string(), format!("reflection aborted: {expected}; use --proto or --protoset"));
    };
    let imports = |count: usize| (0..count).map(|index| format!("import{index}")).collect::<Vec<_>>();
    let expected = "the server has more than 10 files or 67108864 bytes of descriptors";
    check(chain(20, Vec::new()), &|limits| limits.files_max = 10, expected).await;
    let expected = "the server has more than 10000 files or 60 bytes of descriptors";
    check(chain(20, Vec::new()), &|limits| limits.bytes_max = 60, expected).await;
    let expected = "the server's files have more than 80 imports";
    check(chain(0, imports(90)), &|limits| limits.imports_max = 80, expected).await;
    let expected = "the server sent more than 30 bytes";
    check(chain(20, Vec::new()), &|limits| limits.received_bytes_max = 30, expected).await;
}

#[tokio::test]
async fn endless_imports_hit_the_total_timeout() {
    let service = V1(Arc::new(Box::new(|message| {
        std::thread::sleep(Duration::from_millis(20));
        let next = match message {
            MessageRequest::FileByFilename(name) => name.parse::<u64>().unwrap() + 1,
            _ => 1,
        };
        files([file(&(next - 1).to_string(), [next.to_string()])])
    })));
    let mut limits = ReflectionLimits::default();
    limits.total_timeout = Duration::from_millis(200);
    let error = client_within(service, limits).fetch("a.B").await.unwrap_err();
    let expected = "reflection aborted: it took longer than 0.2 s and returned ";
    assert!(error.to_string().starts_with(expected), "{error}");
}

#[tokio::test]
async fn service_list_length_is_limited() {
    let service = V1(Arc::new(Box::new(|_| {
        let service = ServiceResponse { name: "a.B".to_owned() };
        Reaction::Respond(MessageResponse::ListServicesResponse(ListServiceResponse {
            service: vec![service; 5],
        }))
    })));
    let mut limits = ReflectionLimits::default();
    limits.files_max = 4;
    let error = client_within(service, limits).services().await.unwrap_err();
    assert!(error.to_string().contains("the server lists more than 4 services"), "{error}");
}
