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
enum Answer {
    Say(MessageResponse),
    End(Status),
    Nothing,
}

type Answers = Box<dyn Fn(&MessageRequest) -> Answer + Send + Sync>;

/// The service, under either name.
struct V1(Arc<Answers>);
struct Alpha(Arc<Answers>);

impl Service for V1 {
    const NAME: &'static str = "grpc.reflection.v1.ServerReflection";

    fn register(self, methods: &mut Methods<'_>) {
        register(&self.0, methods);
    }
}

impl Service for Alpha {
    const NAME: &'static str = "grpc.reflection.v1alpha.ServerReflection";

    fn register(self, methods: &mut Methods<'_>) {
        register(&self.0, methods);
    }
}

fn register(answers: &Arc<Answers>, methods: &mut Methods<'_>) {
    methods.bidi_streaming(
        "ServerReflectionInfo",
        answers,
        &ServiceOptions::default(),
        |answers: Arc<Answers>, request: Request<Streaming<ServerReflectionRequest>>| async move {
            let (told, said) = mpsc::channel(1);
            tokio::spawn(async move {
                let mut questions = request.into_inner();
                while let Ok(Some(question)) = questions.message().await {
                    let Some(question) = question.message_request else { continue };
                    let answer = match answers(&question) {
                        Answer::Say(message) => Ok(ServerReflectionResponse {
                            message_response: Some(message),
                            ..Default::default()
                        }),
                        Answer::End(status) => Err(status),
                        Answer::Nothing => continue,
                    };
                    if told.send(answer).await.is_err() {
                        break;
                    }
                }
            });
            Ok(Response::new(ReceiverStream::new(said)))
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

const PATIENCE: Duration = Duration::from_secs(10);

/// Returns the files of the shop by name.
fn shop_files() -> BTreeMap<String, Bytes> {
    #[derive(Clone, PartialEq, prost::Message)]
    struct Set {
        #[prost(bytes = "bytes", repeated, tag = "1")]
        file: Vec<Bytes>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    struct Head {
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
    let name = |file: &Bytes| <Head as prost::Message>::decode(file.clone()).unwrap().name;
    set.file.into_iter().map(|file| (name(&file), file)).collect()
}

fn files(files: impl IntoIterator<Item = Bytes>) -> Answer {
    let file_descriptor_proto = files.into_iter().collect();
    Answer::Say(MessageResponse::FileDescriptorResponse(FileDescriptorResponse { file_descriptor_proto }))
}

fn error(code: Code) -> Answer {
    Answer::Say(MessageResponse::ErrorResponse(ErrorResponse {
        error_code: code as i32,
        error_message: "not here".to_owned(),
    }))
}

/// Returns a server that sends each file alone and lacks those of Google.
fn one_by_one() -> Arc<Answers> {
    let shop = shop_files();
    Arc::new(Box::new(move |question| match question {
        MessageRequest::ListServices(_) => {
            let service = |name: &str| ServiceResponse { name: name.to_owned() };
            Answer::Say(MessageResponse::ListServicesResponse(ListServiceResponse {
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
async fn what_is_imported_is_fetched_too() {
    let mut catalogue = Catalogue::Server(Box::new(client(V1(one_by_one()), PATIENCE)));
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
async fn the_older_version_is_asked_where_the_newer_is_not_there() {
    let mut reflection = client(Alpha(one_by_one()), PATIENCE);
    assert_eq!(reflection.services().await.unwrap(), ["shop.Orders", "a.First"]);
    assert!(reflection.fetch("shop.Order").await.unwrap());
}

#[tokio::test]
async fn a_server_without_reflection_is_told_from_one_that_fails() {
    struct Other;
    impl Service for Other {
        const NAME: &'static str = "a.Other";
        fn register(self, _: &mut Methods<'_>) {}
    }
    let error = client(Other, PATIENCE).services().await.unwrap_err();
    assert!(matches!(error, ReflectionError::None), "{error}");
    let denied = || Answer::End(Status::permission_denied("no"));
    let error = client(V1(Arc::new(Box::new(move |_| denied()))), PATIENCE).services().await.unwrap_err();
    assert!(error.to_string().contains("no"), "{error}");
    assert!(matches!(&error, ReflectionError::Call(status) if status.code() == Code::PermissionDenied));
}

#[tokio::test]
async fn wrong_answers_are_said() {
    let check = async |answers: Arc<Answers>, expected: &str| {
        let error = client(V1(answers), PATIENCE).fetch("shop.Orders").await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    };
    check(
        Arc::new(Box::new(|_| files([Bytes::from_static(b"\xff\xff")]))),
        "sent an invalid file descriptor",
    )
    .await;
    check(
        Arc::new(Box::new(|_| {
            Answer::Say(MessageResponse::ListServicesResponse(ListServiceResponse::default()))
        })),
        "sent an unexpected response when asked for a file",
    )
    .await;
    check(Arc::new(Box::new(|_| error(Code::Internal))), "answered Internal when asked for a file: not here")
        .await;
    // The server lacks item.proto and sends another file instead.
    let shop = shop_files();
    let missing = shop["shop.proto"].clone();
    check(
        Arc::new(Box::new(move |question| match question {
            MessageRequest::FileByFilename(name) if name.starts_with("google") => error(Code::NotFound),
            _ => files([missing.clone()]),
        })),
        "returned other files when asked for item.proto",
    )
    .await;
    let alone = shop["shop.proto"].clone();
    check(
        Arc::new(Box::new(move |question| match question {
            MessageRequest::FileContainingSymbol(_) => files([alone.clone()]),
            _ => error(Code::NotFound),
        })),
        "does not have item.proto, which shop.proto imports: not here",
    )
    .await;
}

#[tokio::test]
async fn a_silent_server_is_given_up() {
    let mut reflection = client(V1(Arc::new(Box::new(|_| Answer::Nothing))), Duration::from_millis(50));
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
    V1(Arc::new(Box::new(move |question| {
        let index = match question {
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
async fn time_is_in_proportion_to_the_files_and_their_imports() {
    let repeated = vec!["0".to_owned(); 1_000_000];
    let mut reflection = client(chain(9_000, repeated), PATIENCE);
    assert!(tokio::time::timeout(PATIENCE * 30, reflection.fetch("a.B")).await.unwrap().unwrap());
    assert_eq!(reflection.schema().unwrap().files().count(), 9_001);
}

#[tokio::test]
async fn an_exchange_has_limits() {
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
async fn an_exchange_without_end_is_given_up() {
    let service = V1(Arc::new(Box::new(|question| {
        std::thread::sleep(Duration::from_millis(20));
        let next = match question {
            MessageRequest::FileByFilename(name) => name.parse::<u64>().unwrap() + 1,
            _ => 1,
        };
        files([file(&(next - 1).to_string(), [next.to_string()])])
    })));
    let mut limits = ReflectionLimits::default();
    limits.total_timeout = Duration::from_millis(200);
    let error = client_within(service, limits).fetch("a.B").await.unwrap_err();
    assert!(error.to_string().contains("aborted: it took longer than 0.2 s, for "), "{error}");
}

#[tokio::test]
async fn lists_of_services_are_bounded() {
    let service = V1(Arc::new(Box::new(|_| {
        let service = ServiceResponse { name: "a.B".to_owned() };
        Answer::Say(MessageResponse::ListServicesResponse(ListServiceResponse { service: vec![service; 5] }))
    })));
    let mut limits = ReflectionLimits::default();
    limits.files_max = 4;
    let error = client_within(service, limits).services().await.unwrap_err();
    assert!(error.to_string().contains("the server lists more than 4 services"), "{error}");
}
