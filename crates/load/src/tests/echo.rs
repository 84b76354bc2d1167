//! Runs of the echo workload: gRPC to our own server, and JSON over HTTP/1.1 to a hyper server.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use thalweg::web::Web;
use thalweg::{Channel, Encoding, Server};
use thalweg_messages::own::descriptors;
use thalweg_messages::{Kind, OwnMessages};
use tokio::net::TcpListener;

use crate::echo::{ClientWork, EchoWork, OwnEcho, OwnEchoError, Protocol, Shape};
use crate::peer::{DriveError, Patience, drive};
use crate::record::{CallType, LaneRule, LoadResult, LoadSettings, MessageOwnership};
use crate::services::echo_proto::echo_client::EchoClient;
use crate::services::echo_proto::echo_server::EchoServer;
use crate::services::echo_proto::echo_shapes_server::EchoShapesServer;
use crate::services::echo_proto::{Address, Person, Strings};
use crate::services::{EchoOwnServer, EchoViewsServer, EchoWorker, echo_proto, monotonic_ns};

const CALLS: u64 = 20;
const SMALL: Shape = Shape::Strings { count: 50, letters: 20 };

fn settings(target: &str, work: EchoWork, in_flight: u32) -> LoadSettings {
    LoadSettings {
        target: target.to_owned(),
        call: CallType::Unary,
        size_bytes: 0,
        in_flight,
        connections: if work.protocol.is_http1() { in_flight } else { 1 },
        lanes: LaneRule::Fixed,
        method: None,
        echo: Some(work),
        message_ownership: MessageOwnership::default(),
        warmup_ns: 0,
        duration_ns: None,
        total: Some(CALLS),
        bare: None,
        busy_poll_ns: Some(0),
        cpus: None,
    }
}

async fn driven(settings: &LoadSettings, own: Option<&OwnEcho>) -> Result<LoadResult, DriveError> {
    let never = std::future::pending();
    drive(settings, own, |builder| builder, Patience::default(), never, |_| ()).await
}

/// Checks that all calls succeed, with the stages that this server reports.
async fn check(settings: &LoadSettings, stages: &[&str]) -> LoadResult {
    checked(driven(settings, None).await.unwrap(), stages)
}

fn checked(result: LoadResult, stages: &[&str]) -> LoadResult {
    assert_eq!((result.messages, result.error_count()), (CALLS, 0), "{:?}", result.notes);
    let names: Vec<&str> = result.stages.iter().map(|stage| stage.name.as_str()).collect();
    assert_eq!(names, stages);
    if !stages.is_empty() {
        // Workers read their clocks slightly outside the call.
        let whole = result.latency_ns.unwrap().mean;
        let sum: f64 = result.stages.iter().map(|stage| stage.latency_ns.mean).sum();
        assert!(sum > 0.0 && sum <= whole, "stages of {sum} ns in calls of {whole} ns");
    }
    result
}

async fn ours() -> String {
    let server = Server::builder().add_service(EchoServer::new(EchoWorker));
    let server = server.bind(&["127.0.0.1:0".parse().unwrap()]).await.unwrap();
    let target = server.local_addresses()[0].to_string();
    tokio::spawn(server.serve());
    target
}

/// Starts an HTTP/1.1 server that computes the response from the request's body.
async fn http1(respond: fn(Bytes) -> (u16, Bytes)) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = listener.local_addr().unwrap().to_string();
    let service = move |request: Request<Incoming>| async move {
        let is_timed = request.headers().contains_key("lab-times");
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let (received, (status, body)) = (monotonic_ns(), respond(body));
        let mut response = Response::new(Full::new(body));
        *response.status_mut() = status.try_into().unwrap();
        if is_timed {
            let now = monotonic_ns();
            let times = format!("received={received} decoded={now} handled={now} encoded={now}");
            response.headers_mut().insert("lab-times", times.parse().unwrap());
        }
        Ok::<_, Infallible>(response)
    };
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(service)));
        }
    });
    target
}

#[tokio::test]
async fn grpc_calls_are_divided_into_stages() {
    let target = ours().await;
    for shape in [SMALL, Shape::Person] {
        let work = |client_work| EchoWork { shape, protocol: Protocol::Grpc, client_work, gzip: false };
        check(&settings(&target, work(ClientWork::Objects), 4), &[]).await;
        let stages = ["client-encode", "request", "handler", "response", "client-decode"];
        check(&settings(&target, work(ClientWork::Times), 1), &stages).await;
    }
}

/// One server for all protocols, in each mode, plain and compressed.
#[tokio::test]
async fn every_protocol_echoes_on_one_port() {
    let server = Server::builder().add_service(EchoServer::new(EchoWorker).send_compressed(Encoding::Gzip));
    let server = server.web(Web::new()).bind(&["127.0.0.1:0".parse().unwrap()]).await.unwrap();
    let target = server.local_addresses()[0].to_string();
    tokio::spawn(server.serve());
    for protocol in Protocol::ALL {
        for gzip in [false, true] {
            for (client_work, stages) in [
                (ClientWork::Objects, &[][..]),
                (ClientWork::Bytes, &[]),
                (ClientWork::Times, &["client-encode", "request", "handler", "response", "client-decode"]),
            ] {
                let work = EchoWork { shape: SMALL, protocol, client_work, gzip };
                let result = check(&settings(&target, work, 1), stages).await;
                assert!(result.first_call_ns > Some(0));
                // 50 strings of 20 letters, compressed to less than 900 bytes.
                let [sent, received] = [result.bytes_sent, result.bytes_received].map(|bytes| bytes / CALLS);
                assert_eq!(
                    (gzip, gzip),
                    (sent < 900, received < 900),
                    "{protocol}: {sent} and {received} bytes"
                );
            }
        }
    }
}

/// Views are encoded to what was received, over gRPC and JSON.
#[tokio::test]
async fn views_are_echoed() {
    let server = Server::builder().add_service(EchoViewsServer::default()).web(Web::new());
    let server = server.bind(&["127.0.0.1:0".parse().unwrap()]).await.unwrap();
    let target = server.local_addresses()[0].to_string();
    tokio::spawn(server.serve());
    let client = EchoClient::new(Channel::builder(&target).connect().await.unwrap());
    let strings = ["", "plain", "é\"\\\n", &"long".repeat(100)].map(str::to_owned).to_vec();
    let strings = Strings { strings };
    assert_eq!(client.echo_strings(strings.clone()).await.unwrap().into_inner(), strings);
    let address = Some(Address { city: "Cork".to_owned(), zip_code: "T12".to_owned() });
    let hobbies = vec!["skis".to_owned(), "go".to_owned()];
    let person = Person { name: "Ahmed".to_owned(), age: -20, hobbies, address };
    assert_eq!(client.echo_person(person.clone()).await.unwrap().into_inner(), person);
    for shape in [SMALL, Shape::Person] {
        for protocol in [Protocol::Grpc, Protocol::JsonHttp1, Protocol::JsonH2] {
            let work = EchoWork { shape, protocol, client_work: ClientWork::Times, gzip: false };
            let stages = ["client-encode", "request", "handler", "response", "client-decode"];
            check(&settings(&target, work, 1), &stages).await;
        }
    }
}

/// Each kind of document, in each format and over both forms of JSON.
#[tokio::test]
async fn messages_of_the_codec_study_are_driven_in_turn() {
    let server = Server::builder().add_service(EchoServer::new(EchoWorker));
    let server = server.add_service(EchoShapesServer::new(EchoWorker));
    let server = server.web(Web::new()).bind(&["127.0.0.1:0".parse().unwrap()]).await.unwrap();
    let target = server.local_addresses()[0].to_string();
    tokio::spawn(server.serve());
    for kind in Kind::ALL {
        let mut bytes = Vec::new();
        for protocol in [Protocol::Grpc, Protocol::ConnectH2, Protocol::JsonHttp1, Protocol::MsgpackH2] {
            for client_work in [ClientWork::Objects, ClientWork::Bytes] {
                let work = EchoWork { shape: Shape::Study(kind), protocol, client_work, gzip: false };
                let result = check(&settings(&target, work, 1), &[]).await;
                bytes.push(result.bytes_sent / CALLS);
            }
        }
        // Mean over all 64 messages, whichever were sent. JSON is larger than Protobuf.
        assert_eq!((bytes[0], bytes[2]), (bytes[1], bytes[4]), "{kind:?}");
        assert!(bytes[2] > bytes[0], "{kind:?}: {bytes:?}");
        if kind == Kind::Order {
            assert!((220..260).contains(&bytes[0]), "{bytes:?}");
        }
    }
}

/// User-provided messages in turn, over every protocol.
#[tokio::test]
async fn user_messages_are_divided_into_stages() {
    const TYPE: &str = "shop.Order";
    const ORDERS: &str = "{\"item\": \"boot\", \"count\": \"2\", \"labels\": {\"size\": \"43\", \"sale\": \"yes\"}}\n\
                          {\"item\": \"hat\", \"prices\": [9.5, \"NaN\"]}\n{}\n";
    let folder = std::env::temp_dir().join(format!("thalweg-load-own-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (proto, data) = (folder.join("shop.proto"), folder.join("orders.jsonl"));
    let source = "syntax = 'proto3'; package shop; message Order { string item = 1; int64 count = 2;
                  repeated double prices = 3; map<string, string> labels = 4; }";
    std::fs::write(&proto, source).unwrap();
    std::fs::write(&data, ORDERS).unwrap();
    let own = OwnMessages::read(&proto, TYPE, &data).unwrap();
    let set = descriptors(&proto, TYPE, |file| EchoOwnServer::sources(file, TYPE)).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();

    let service = EchoOwnServer::new(&set, TYPE).unwrap().send_compressed(Encoding::Gzip);
    let server = Server::builder().add_service(service).web(Web::new().descriptors(set));
    let server = server.bind(&["127.0.0.1:0".parse().unwrap()]).await.unwrap();
    let target = server.local_addresses()[0].to_string();
    tokio::spawn(server.serve());
    let own = OwnEcho::new(&own).unwrap();
    let all = ["client-encode", "request", "handler", "response", "client-decode"];
    for protocol in Protocol::ALL {
        for (client_work, stages, gzip) in [
            (ClientWork::Objects, &[][..], true),
            (ClientWork::Bytes, &[], false),
            (ClientWork::Times, &all, false),
        ] {
            let work = EchoWork { shape: Shape::Own, protocol, client_work, gzip };
            let settings = settings(&target, work, 1);
            let result = checked(driven(&settings, Some(&own)).await.unwrap(), stages);
            if protocol == Protocol::Grpc && !gzip {
                // Mean of the responses, and of all requests; each request was sent.
                assert_eq!(result.bytes_received, result.bytes_sent);
            }
            assert!(matches!(driven(&settings, None).await, Err(DriveError::Settings(_))));
        }
    }
}

#[test]
fn user_messages_without_json_are_rejected() {
    let of = |type_name: &str, wires: &[&[u8]]| {
        let wires = wires.iter().map(|wire| wire.to_vec()).collect();
        let set = echo_proto::FILE_DESCRIPTOR_SET.to_vec();
        OwnEcho::new(&OwnMessages { type_name: type_name.to_owned(), set, wires }).map(drop)
    };
    assert_eq!(of("shapes.Person", &[b"\x0a\x01a"]), Ok(()));
    // A name with invalid UTF-8.
    let error = of("shapes.Person", &[b"", b"\x0a\x01\xff"]).unwrap_err();
    assert!(error.to_string().starts_with("message 2 cannot be echoed as JSON: "), "{error}");
    assert_eq!(of("shapes.Nobody", &[b""]), Err(OwnEchoError::NoType("shapes.Nobody".to_owned())));
    assert_eq!(of("shapes.Person", &[]), Err(OwnEchoError::Empty));
}

#[tokio::test]
async fn json_over_http1_calls_are_divided_into_stages() {
    let target = http1(|body| (200, body)).await;
    let work =
        |client_work| EchoWork { shape: SMALL, protocol: Protocol::JsonHttp1, client_work, gzip: false };
    check(&settings(&target, work(ClientWork::Objects), 4), &[]).await;
    check(&settings(&target, work(ClientWork::Times), 1), &crate::echo::STAGES).await;
}

#[tokio::test]
async fn per_call_connections_are_not_reused() {
    let target = http1(|body| (200, body)).await;
    let work = EchoWork {
        shape: Shape::Person,
        protocol: Protocol::JsonHttp1,
        client_work: ClientWork::Objects,
        gzip: false,
    };
    let settings = LoadSettings { lanes: LaneRule::PerCall, ..settings(&target, work, 1) };
    check(&settings, &[]).await;
}

#[tokio::test]
async fn wrong_echo_is_an_error() {
    let fails = async |respond: fn(Bytes) -> (u16, Bytes), words: &str| {
        let target = http1(respond).await;
        let work = EchoWork {
            shape: SMALL,
            protocol: Protocol::JsonHttp1,
            client_work: ClientWork::Objects,
            gzip: false,
        };
        let error = driven(&settings(&target, work, 1), None).await.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    fails(|_| (200, Bytes::from_static(b"{\"strings\": []}")), "DATA_LOSS").await;
    fails(|_| (200, Bytes::from_static(b"[]")), "DATA_LOSS").await;
    fails(|_| (503, Bytes::from_static(b"no\nroom")), "HTTP status 503 Service Unavailable: no room").await;
}

#[tokio::test]
async fn invalid_settings_are_rejected() {
    let work = EchoWork {
        shape: SMALL,
        protocol: Protocol::JsonHttp1,
        client_work: ClientWork::Objects,
        gzip: false,
    };
    let good = settings("127.0.0.1:1", work, 2);
    for wrong in [
        LoadSettings { connections: 1, ..good.clone() },
        LoadSettings { size_bytes: 1, ..good.clone() },
        LoadSettings { call: CallType::BidiStream, ..good.clone() },
    ] {
        assert!(matches!(driven(&wrong, None).await, Err(DriveError::Settings(_))), "{wrong:?}");
    }
}
