//! Tests that text of servers, captures and files cannot control the terminal or reverse text direction in anything the
//! command prints.

use std::fs;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use prost::Message as _;
use serde_json::Value;
use thalweg::bytes::Bytes;
use thalweg::metadata::MetadataMap;
use thalweg::server::{Methods, Service};
use thalweg::{Code, ListenAddress, Request, Response, Server, ServiceOptions, Status, Stream, Streaming};
use thalweg_protobuf::{printable, sources};
use thalweg_services::reflection::pb::server_reflection_request::MessageRequest;
use thalweg_services::reflection::pb::server_reflection_response::MessageResponse;
use thalweg_services::reflection::pb::{
    ErrorResponse, FileDescriptorResponse, ListServiceResponse, ServerReflectionRequest,
    ServerReflectionResponse, ServiceResponse,
};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;

use crate::inspect_capture::capture;
use crate::recorded::Piece;
use crate::support::{outcome, thalweg};

/// A colour, a C1 CSI, an override, a line break and a mark. As long as [`PLACE`].
const HOSTILE: &str = "\x1b[31m\u{9b}\u{202e}\r\n\u{61c}";
/// Placeholder for it in identifiers.
const PLACE: &str = "HOSTILEHOSTILE";
/// Part that remains visible wherever it is printed.
const SHOWN: &str = "[31m";

/// Runs the command and asserts that its output is safe and, with `is_shown`, includes the hostile text.
#[track_caller]
fn check(arguments: &[&str], is_shown: bool) -> (Option<i32>, String, String) {
    let (code, stdout, stderr) = outcome(thalweg(arguments).output().unwrap());
    // The record separator between messages in text format is expected.
    let records = stdout.replace(if arguments.contains(&"text") { "\u{1e}" } else { "" }, "");
    for text in [&records, &stderr] {
        assert_safe(text, &format!("{arguments:?}"));
    }
    assert_ne!(code, Some(101), "{arguments:?}: {stderr}");
    let all = format!("{stdout}{stderr}");
    assert!(!is_shown || all.contains(SHOWN), "{arguments:?} has none of it:\n{all}");
    // No line of the text imitates the command's own.
    assert!(!all.lines().any(|line| line.starts_with("FORGED")), "{arguments:?}:\n{all}");
    (code, stdout, stderr)
}

#[track_caller]
fn assert_safe(text: &str, of: &str) {
    let unsafe_at = text.find(|c| printable::is_unprintable(c) && c != '\n');
    let near = unsafe_at.map(|at| {
        text[..at].chars().rev().take(60).collect::<Vec<char>>().into_iter().rev().collect::<String>()
    });
    assert!(
        unsafe_at.is_none(),
        "{of}: {:?} behind {near:?}",
        unsafe_at.and_then(|at| text[at..].chars().next())
    );
}

fn hostile() -> String {
    format!("{HOSTILE}FORGED: all is well")
}

/// Response of a service with hostile responses and descriptors.
#[derive(Clone, PartialEq, prost::Message)]
struct Answer {
    #[prost(string, tag = "1")]
    text: String,
    #[prost(message, optional, tag = "2")]
    any: Option<Any>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Any {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

const SOURCE: &str = "
    syntax = 'proto3';
    package evil;
    import 'google/protobuf/any.proto';
    message Answer { string text = 1; google.protobuf.Any any = 2; }
    message HOSTILEHOSTILE { string HOSTILEHOSTILE = 1; }
    enum Sizes { ZERO = 0; HOSTILEHOSTILE_VALUE = 1; }
    service Evil {
      rpc Fail(Answer) returns (Answer);
      rpc Say(Answer) returns (Answer);
      rpc SayAll(Answer) returns (stream Answer);
    }
    service Worse { rpc HOSTILEHOSTILE(.evil.HOSTILEHOSTILE) returns (.evil.HOSTILEHOSTILE); }";

struct Evil;

impl Service for Evil {
    const NAME: &'static str = "evil.Evil";

    fn register(self, methods: &mut Methods<'_>) {
        let (this, options) = (Arc::new(()), ServiceOptions::default());
        methods.unary("Fail", &this, &options, |_: Arc<()>, _: Request<Answer>| async {
            // A known type, an unknown one, and one with a hostile name.
            let known = b"\x0a\x02\xc2\x9b".to_vec();
            let details = ["google.rpc.ErrorInfo", "evil.Nothing", &hostile()]
                .map(|name| Any { type_url: format!("type.googleapis.com/{name}"), value: known.clone() });
            let details = RpcStatus { code: 9, message: hostile(), details: details.into() };
            let mut metadata = MetadataMap::new();
            metadata.insert("x-seen", "yes".parse().unwrap());
            let details = details.encode_to_vec().into();
            Err::<Response<Answer>, _>(Status::with_details_and_metadata(
                Code::FailedPrecondition,
                hostile(),
                details,
                metadata,
            ))
        });
        methods.unary("Say", &this, &options, |_: Arc<()>, _: Request<Answer>| async {
            Ok(Response::new(response()))
        });
        methods.server_streaming("SayAll", &this, &options, |_: Arc<()>, _: Request<Answer>| async {
            let (responses, stream) = stream();
            tokio::spawn(async move {
                for _ in 0..2 {
                    let _ = responses.send(Ok(response())).await;
                }
            });
            Ok(Response::new(stream))
        });
    }
}

fn response() -> Answer {
    let any = Any { type_url: format!("{}/evil.Answer", hostile()), value: Vec::new() };
    Answer { text: hostile(), any: Some(any) }
}

/// Reflection service with hostile names and errors.
struct Reflects;

impl Service for Reflects {
    const NAME: &'static str = "grpc.reflection.v1.ServerReflection";

    fn register(self, methods: &mut Methods<'_>) {
        methods.bidi_streaming(
            "ServerReflectionInfo",
            &Arc::new(()),
            &ServiceOptions::default(),
            |_: Arc<()>, request: Request<Streaming<ServerReflectionRequest>>| async move {
                let (responses, stream) = stream();
                tokio::spawn(async move {
                    let mut questions = request.into_inner();
                    while let Ok(Some(question)) = questions.message().await {
                        let message_response = question.message_request.map(reflected);
                        let response = ServerReflectionResponse { message_response, ..Default::default() };
                        if responses.send(Ok(response)).await.is_err() {
                            break;
                        }
                    }
                });
                Ok(Response::new(stream))
            },
        );
    }
}

fn reflected(question: MessageRequest) -> MessageResponse {
    let services = ["evil.Evil".to_owned(), "evil.Worse".to_owned(), hostile()];
    match question {
        MessageRequest::ListServices(_) => MessageResponse::ListServicesResponse(ListServiceResponse {
            service: services.map(|name| ServiceResponse { name }).into(),
        }),
        MessageRequest::FileContainingSymbol(symbol) if symbol.starts_with("evil.") => {
            MessageResponse::FileDescriptorResponse(FileDescriptorResponse {
                file_descriptor_proto: descriptors(),
            })
        }
        _ => MessageResponse::ErrorResponse(ErrorResponse { error_code: 13, error_message: hostile() }),
    }
}

/// Returns the files of `SOURCE` with hostile names.
fn descriptors() -> Vec<Bytes> {
    #[derive(Clone, PartialEq, prost::Message)]
    struct Set {
        #[prost(bytes = "vec", repeated, tag = "1")]
        files: Vec<Vec<u8>>,
    }
    let name = format!("{PLACE}.proto");
    let read = |file: &str| file.starts_with(PLACE).then(|| SOURCE.to_owned());
    let set = sources::compile(&[&name], read).unwrap();
    Set::decode(&*set).unwrap().files.into_iter().map(|file| replaced(file).into()).collect()
}

/// Replaces each [`PLACE`] by hostile text.
fn replaced(mut bytes: Vec<u8>) -> Vec<u8> {
    assert_eq!(HOSTILE.len(), PLACE.len());
    while let Some(at) = bytes.windows(PLACE.len()).position(|window| window == PLACE.as_bytes()) {
        bytes[at..at + PLACE.len()].copy_from_slice(HOSTILE.as_bytes());
    }
    bytes
}

type Item<T> = Result<T, Status>;

/// Stream of items from a channel.
struct Received<T>(mpsc::Receiver<Item<T>>);

impl<T> Stream for Received<T> {
    type Item = Item<T>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Item<T>>> {
        self.0.poll_recv(cx)
    }
}

fn stream<T>() -> (mpsc::Sender<Item<T>>, Received<T>) {
    let (sender, receiver) = mpsc::channel(4);
    (sender, Received(receiver))
}

/// Serves until the runtime is dropped.
fn serve() -> (Runtime, String) {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let server = runtime.block_on(async {
        let server = Server::builder().add_service(Evil).add_service(Reflects);
        server.bind(&["127.0.0.1:0".parse::<ListenAddress>().unwrap()]).await.unwrap()
    });
    let address = server.local_addresses()[0].to_string();
    runtime.spawn(server.serve());
    (runtime, address)
}

/// Writes the server's schema with regular names.
fn proto(folder: &Path) -> String {
    let file = folder.join("evil.proto");
    fs::write(&file, SOURCE).unwrap();
    file.display().to_string()
}

#[test]
fn call_output_has_no_control_characters() {
    let (_runtime, address) = serve();
    let folder = tempfile::tempdir().unwrap();
    let proto = proto(folder.path());
    let call = |words: &[&str], is_shown| {
        check(&[&["call", &address], words, &["--proto", &proto]].concat(), is_shown)
    };
    for flags in [&[][..], &["--compact"], &["-v"], &["-O", "text"], &["-O", "text", "--compact"]] {
        for method in ["evil.Evil/Say", "evil.Evil/SayAll"] {
            let (code, ..) = call(&[&[method], flags].concat(), true);
            assert_eq!(code, Some(0), "{method} {flags:?}");
        }
        call(&[&["evil.Evil/Fail"], flags].concat(), true);
    }
    // The JSON value is unchanged.
    let (_, stdout, _) = call(&["evil.Evil/Say"], true);
    assert_eq!(serde_json::from_str::<Value>(&stdout).unwrap()["text"], hostile());
    let (_, _, stderr) = call(&["evil.Evil/Fail", "--format-error"], true);
    assert_eq!(serde_json::from_str::<Value>(&stderr).unwrap()["message"], hostile());
}

#[test]
fn reflection_output_has_no_control_characters() {
    let (_runtime, address) = serve();
    check(&["call", &address, "list"], true);
    check(&["call", &address, "list", "evil.Evil"], false);
    check(&["call", &address, "list", "evil.Worse"], true);
    check(&["call", &address, "list", "evil.None"], false);
    check(&["call", &address, "list", "other.Service"], true);
    check(&["call", &address, "describe"], true);
    for symbol in ["evil.Evil", "evil.Worse", "evil.Answer", "evil.Sizes", "evil.Evil.Say"] {
        check(&["call", &address, "describe", symbol], true);
    }
    check(&["call", &address, "other.Service/Method"], true);
    check(&["call", &address, "evil.Worse/Method"], false);
    check(&["call", &address, "evil.Evil/Says"], false);
    check(&["load", &address, "--call", "other.Service/Method", "-n", "1"], true);
    check(&["complete", "--shell", "zsh", "--", "thalweg", "call", &address, "evil"], false);
    check(&["complete", "--shell", "zsh", "--", "thalweg", "call", &address, "list", ""], true);
}

/// Replaces strings under these keys by hostile text.
fn made_hostile(value: &mut Value, keys: &[&str]) {
    match value {
        Value::Object(object) => {
            for (key, value) in object.iter_mut() {
                if let (Value::String(text), true) = (&mut *value, keys.contains(&key.as_str())) {
                    *text = hostile();
                } else {
                    made_hostile(value, keys);
                }
            }
        }
        Value::Array(values) => {
            for value in values {
                made_hostile(value, keys);
            }
        }
        _ => {}
    }
}

#[test]
fn load_output_has_no_control_characters() {
    let (_runtime, address) = serve();
    let folder = tempfile::tempdir().unwrap();
    let proto = proto(folder.path());
    let load = |words: &[&str], is_shown| {
        let all = ["load", &address, "--proto", &proto, "--call", "evil.Evil/Fail", "-n", "3", "-c", "1"];
        check(&[&all[..], words].concat(), is_shown)
    };
    load(&[], true);
    load(&["--max-errors", "1", "--interval", "100ms"], true);
    load(&["--max-errors", "1", "--expect", "errors<1%"], true);
    load(&["--max-errors", "1", "-O", "csv"], false);
    load(&["--max-errors", "1", "-O", "html"], false);
    load(&["--check", "text == \"\""], true);
    let (_, json, _) = load(&["--max-errors", "1", "-O", "json", "--name", "one", "--tags", "a=b"], true);

    // The file has the server's text verbatim.
    let mut run: Value = serde_json::from_str(&json).unwrap();
    made_hostile(&mut run, &["text", "method", "name", "a", "target", "processor", "kernel", "system"]);
    run["targets"][0] = hostile().into();
    run["errors"] = serde_json::json!({ hostile(): 3 });
    let files = ["one.json", "two.json"].map(|name| folder.path().join(name).display().to_string());
    for (file, id) in files.iter().zip(["1", "2"]) {
        run["ids"] = serde_json::json!([format!("{id}{}", hostile())]);
        fs::write(file, run.to_string()).unwrap();
    }
    for format in ["text", "json", "csv", "html"] {
        let (code, ..) =
            check(&["merge", &files[0], &files[1], "-O", format], format != "csv" && format != "html");
        assert_eq!(code, Some(0), "{format}");
    }
    for format in ["text", "markdown", "json", "html"] {
        check(&["compare", &files[0], &files[1], "-O", format], false);
        let names = format!("{},{}", hostile(), "b");
        check(&["compare", &files[0], &files[1], "--names", &names, "-O", format], true);
    }
    // Errors about a file quote its content.
    fs::write(&files[0], serde_json::json!({ "schema": hostile() }).to_string()).unwrap();
    check(&["merge", &files[0]], false);
    check(&["compare", &files[0], &files[1]], false);
    check(&["load", &address, "--baseline", &files[0], "--call", "evil.Evil/Say", "-n", "1"], false);
}

#[test]
fn study_output_has_no_control_characters() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out").display().to_string();
    for study in ["comparison-tcp", "codec", "connections", "json", "lanes"] {
        let path = format!("{}/../../docs/results/{study}.json", env!("CARGO_MANIFEST_DIR"));
        let mut results: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        made_hostile(
            &mut results,
            &["reason", "version", "processor", "kernel", "system", "text", "why", "value"],
        );
        let file = folder.path().join("results.json").display().to_string();
        fs::write(&file, results.to_string()).unwrap();
        check(&["lab", "--from", &file, "--out", &out], false);
        for name in ["results.json", "results.csv", "report.html"] {
            if let Ok(text) = fs::read_to_string(format!("{out}/{name}")) {
                assert_safe(&text, &format!("{study}, {name}"));
            }
        }
    }
}

#[test]
fn inspect_output_has_no_control_characters() {
    let (_runtime, address) = serve();
    let folder = tempfile::tempdir().unwrap();
    let proto = proto(folder.path());
    let formats = [&[][..], &["--full"], &["-O", "text"], &["-O", "json"]];

    let message = folder.path().join("message.bin").display().to_string();
    let bytes = response().encode_to_vec();
    fs::write(&message, &bytes).unwrap();
    for format in formats {
        // Without a schema, `-O text` shows such a string as bytes, so that it can be assembled again.
        check(&[&["inspect", &message], format].concat(), !format.contains(&"text"));
        check(&[&["inspect", &message, "--proto", &proto, "--type", "Answer"], format].concat(), true);
    }
    // The text can be assembled to the same bytes.
    let text = folder.path().join("message.txt").display().to_string();
    check(&["inspect", &message, "-O", "text", "-o", &text], false);
    assert_safe(&fs::read_to_string(&text).unwrap(), "-o");
    let again = thalweg(&["inspect", "--assemble", &text]).output().unwrap();
    assert_eq!(again.stdout, bytes);
    // A hostile file name.
    let named = folder.path().join(format!("{HOSTILE}.bin")).display().to_string();
    fs::write(&named, b"\xff\xff").unwrap();
    check(&["inspect", &named], true);
    check(&["inspect", &format!("/nonexistent/{HOSTILE}")], true);

    let saved = folder.path().join("saved.json").display().to_string();
    check(&["call", &address, "evil.Evil/Fail", "--proto", &proto, "--save", &saved], true);
    assert_safe(&fs::read_to_string(&saved).unwrap(), "--save");
    let mut exchange: Value = serde_json::from_str(&fs::read_to_string(&saved).unwrap()).unwrap();
    made_hostile(&mut exchange, &["method", "target", "started", "message", "note", "name"]);
    exchange["trailers"] = serde_json::json!([["name", hostile()], [hostile(), "value"]]);
    exchange["request_metadata"] = exchange["trailers"].clone();
    fs::write(&saved, exchange.to_string()).unwrap();
    for format in formats {
        check(&[&["inspect", &saved], format].concat(), true);
    }
}

#[test]
fn capture_output_has_no_control_characters() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hostile.pcap").display().to_string();
    fs::write(&file, capture(&Arc::new(Mutex::new(hostile_connection())), None)).unwrap();
    for flags in [&[][..], &["-v"], &["-v", "--full"], &["-O", "json"], &["-v", "-O", "text"]] {
        let (code, stdout, stderr) = check(&[&["inspect", &file], flags].concat(), false);
        assert_eq!(code, Some(0), "{flags:?}: {stdout}{stderr}");
        let is_listed = flags.is_empty();
        assert!(is_listed || stdout.contains(SHOWN), "{flags:?}: {stdout}");
    }
}

/// Builds a call with hostile fields and message. Fields are literals without indexing (RFC 7541 §6.2.2).
fn hostile_connection() -> Vec<Piece> {
    let frame = |kind: u8, flags: u8, stream: u32, payload: &[u8]| {
        let length = (payload.len() as u32).to_be_bytes();
        [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
    };
    let fields = |fields: &[(&str, &str)]| {
        let field = |(name, value): &(&str, &str)| {
            [&[0, name.len() as u8], name.as_bytes(), &[value.len() as u8], value.as_bytes()].concat()
        };
        fields.iter().flat_map(field).collect::<Vec<u8>>()
    };
    let data = |message: &Answer| {
        let message = message.encode_to_vec();
        [&[0][..], &(message.len() as u32).to_be_bytes(), &message].concat()
    };
    let percent = hostile().bytes().map(|byte| format!("%{byte:02X}")).collect::<Vec<_>>().concat();
    let request = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/evil.Evil/\u{9b}31m\u{202e}Say"),
        (":authority", "evil"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
        ("x-note", "\u{9b}31m\u{202e}"),
    ];
    let head = [(":status", "200"), ("content-type", "application/grpc")];
    let trailers =
        [("grpc-status", "9"), ("grpc-message", percent.as_str()), ("x-note", "\u{9b}31m\u{202e}")];
    let client = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        frame(4, 0, 0, &[]),
        frame(1, 4, 1, &fields(&request)),
        frame(0, 1, 1, &data(&response())),
    ];
    let server = [
        frame(4, 0, 0, &[]),
        frame(1, 4, 1, &fields(&head)),
        frame(0, 0, 1, &data(&response())),
        frame(1, 5, 1, &fields(&trailers)),
    ];
    vec![
        Piece { connection: 0, is_client: true, bytes: client.concat() },
        Piece { connection: 0, is_client: false, bytes: server.concat() },
    ]
}
