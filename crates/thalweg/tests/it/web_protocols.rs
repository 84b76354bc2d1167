//! Common behaviour of all protocols on one port: gRPC, Connect, gRPC-Web and transcoded JSON, with messages of each
//! codec, over HTTP/1.1 and HTTP/2.

use std::future::pending;
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::Version;
use thalweg::bytes::Bytes;
use thalweg::interceptor::head;
use thalweg::server::{Methods, Service};
use thalweg::web::Web;
use thalweg::web::body::Body;
use thalweg::{CallOptions, Channel, Code, Encoding, Raw, Request, Response, Server, ServiceOptions, Status};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::support::http::{HttpResponse, http1_by, send};
use crate::support::peer::{compressed_envelope, envelope};
use crate::support::{connect, soon, start};

const SOURCE: &str = r#"
syntax = "proto3"; package test;
import "google/api/annotations.proto";
message Text { string text = 1; }
service Alike {
    rpc Echo(Text) returns (Text) { option (google.api.http) = { post: "/v1/echo" body: "*" }; }
}
"#;
const METHOD: &str = "/test.Alike/Echo";
/// Maximum request size in bytes.
const SIZE_MAX: usize = 120;

/// One way to call the method.
#[derive(Clone, Copy, Debug)]
struct CallFormat {
    protocol: Protocol,
    codec: Codec,
    content_type: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Protocol {
    Grpc,
    Connect,
    GrpcWeb,
    Transcoded,
}

#[derive(Clone, Copy, Debug)]
enum Codec {
    Proto,
    Json,
    MessagePack,
}

const fn call_format(protocol: Protocol, codec: Codec, content_type: &'static str) -> CallFormat {
    CallFormat { protocol, codec, content_type }
}

const FORMATS: &[CallFormat] = &[
    call_format(Protocol::Grpc, Codec::Proto, "application/grpc"),
    call_format(Protocol::Grpc, Codec::Json, "application/grpc+json"),
    call_format(Protocol::Grpc, Codec::MessagePack, "application/grpc+msgpack"),
    call_format(Protocol::Connect, Codec::Proto, "application/proto"),
    call_format(Protocol::Connect, Codec::Json, "application/json"),
    call_format(Protocol::Connect, Codec::MessagePack, "application/msgpack"),
    call_format(Protocol::GrpcWeb, Codec::Proto, "application/grpc-web+proto"),
    call_format(Protocol::GrpcWeb, Codec::Json, "application/grpc-web+json"),
    call_format(Protocol::Transcoded, Codec::Json, "application/json"),
];

type Fields = Vec<(&'static str, &'static str)>;

impl CallFormat {
    fn versions(self) -> &'static [Version] {
        match self.protocol {
            Protocol::Grpc => &[Version::HTTP_2],
            _ => &[Version::HTTP_11, Version::HTTP_2],
        }
    }

    fn path(self) -> &'static str {
        if self.protocol == Protocol::Transcoded { "/v1/echo" } else { METHOD }
    }

    fn has_envelopes(self) -> bool {
        matches!(self.protocol, Protocol::Grpc | Protocol::GrpcWeb)
    }

    /// Encodes a message with this text, of at most 127 bytes.
    fn message(self, text: &str) -> Vec<u8> {
        let len = u8::try_from(text.len()).expect("a short text");
        let head = match self.codec {
            Codec::Proto => vec![0x0a, len],
            Codec::Json => return format!("{{\"text\":\"{text}\"}}").into_bytes(),
            Codec::MessagePack if len < 32 => vec![0x81, 0xa4, b't', b'e', b'x', b't', 0xa0 | len],
            Codec::MessagePack => vec![0x81, 0xa4, b't', b'e', b'x', b't', 0xd9, len],
        };
        [&head, text.as_bytes()].concat()
    }

    /// Encodes the body of a request.
    fn body(self, text: &str, encoding: Encoding) -> Vec<u8> {
        let message = self.message(text);
        match (self.has_envelopes(), encoding) {
            (true, Encoding::Identity) => envelope(&message),
            (true, _) => compressed_envelope(&message),
            (false, _) => {
                let mut body = Vec::new();
                encoding.compress(&message, &mut body);
                body
            }
        }
    }

    /// Returns the message of a response, and whether it was compressed.
    fn decode_response(self, response: &HttpResponse) -> (Vec<u8>, bool) {
        let (is_flagged, mut message) = (response.body.first() == Some(&1), &response.body[..]);
        if self.has_envelopes() {
            assert!(message.len() > 5, "{self:?} {response:?}");
            let len = u32::from_be_bytes(message[1..5].try_into().expect("four bytes")) as usize;
            message = &message[5..5 + len];
        }
        let named = format!("{}: gzip\n", self.encoding_fields().0);
        let is_compressed = response.fields.contains(&named);
        if self.has_envelopes() {
            assert_eq!(is_flagged, is_compressed, "{self:?} {response:?}");
        }
        let encoding = if is_compressed { Encoding::Gzip } else { Encoding::Identity };
        (encoding.decompress(message, 1 << 10).expect("a message"), is_compressed)
    }

    /// Names of the headers for the encoding and for accepted encodings.
    fn encoding_fields(self) -> (&'static str, &'static str) {
        match self.protocol {
            Protocol::Grpc | Protocol::GrpcWeb => ("grpc-encoding", "grpc-accept-encoding"),
            Protocol::Connect | Protocol::Transcoded => ("content-encoding", "accept-encoding"),
        }
    }

    fn deadline(self) -> (&'static str, &'static str) {
        match self.protocol {
            Protocol::Connect => ("connect-timeout-ms", "50"),
            _ => ("grpc-timeout", "50m"),
        }
    }

    /// Returns true if the response reports this failure in the form of its protocol.
    fn is_failure(self, response: &HttpResponse, failure: Failure) -> bool {
        let Failure { code, name, status } = failure;
        let body = String::from_utf8_lossy(&response.body);
        let number = code as u8;
        match self.protocol {
            Protocol::Grpc => {
                response.status == 200 && response.fields.contains(&format!("grpc-status: {number}\n"))
            }
            Protocol::GrpcWeb => {
                let fields_and_body = [&response.fields, &*body].concat().replace('\r', "");
                response.status == 200 && fields_and_body.contains(&format!("grpc-status: {number}\n"))
            }
            Protocol::Connect => {
                response.status == status && body.starts_with(&format!("{{\"code\":\"{name}\","))
            }
            Protocol::Transcoded => {
                // The body of the request is the message.
                let status = if code == Code::ResourceExhausted { 413 } else { status };
                response.status == status && body.starts_with(&format!("{{\"code\":{number},"))
            }
        }
    }
}

/// A failure as a code, by Connect's name, and as an HTTP status.
#[derive(Clone, Copy)]
struct Failure {
    code: Code,
    name: &'static str,
    status: u16,
}

const LATE: Failure = Failure { code: Code::DeadlineExceeded, name: "deadline_exceeded", status: 504 };
const REJECTED: Failure = Failure { code: Code::PermissionDenied, name: "permission_denied", status: 403 };
const TOO_LARGE: Failure = Failure { code: Code::ResourceExhausted, name: "resource_exhausted", status: 429 };

/// Events of the handlers.
#[derive(Default)]
struct HandlerEvents {
    started: Notify,
    dropped: Notify,
    /// Number of calls that the interceptor saw.
    seen: AtomicUsize,
}

struct Dropped(Arc<HandlerEvents>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.dropped.notify_one();
    }
}

/// Echoes the message, and `x-asked` as `x-echo`; `sleep` never ends.
struct EchoService(Arc<HandlerEvents>);

impl EchoService {
    async fn echo(self: Arc<Self>, request: Request<Raw>) -> Result<Response<Raw>, Status> {
        if request.get_ref().0.ends_with(b"sleep") {
            let _dropped = Dropped(Arc::clone(&self.0));
            self.0.started.notify_one();
            pending::<()>().await;
        }
        let mut response = Response::new(request.get_ref().clone());
        if let Some(value) = request.metadata().get("x-asked") {
            response.metadata_mut().insert("x-echo", value.clone());
        }
        Ok(response)
    }
}

impl Service for EchoService {
    const NAME: &'static str = "test.Alike";

    fn register(self, methods: &mut Methods<'_>) {
        let mut options = ServiceOptions::default();
        options.max_decoding_message_size = SIZE_MAX;
        options.send_compressed = Some(Encoding::Gzip);
        options.compression_threshold = 0;
        methods.unary("Echo", &Arc::new(self), &options, EchoService::echo);
    }
}

/// A server for all protocols.
struct TestServer {
    target: String,
    events: Arc<HandlerEvents>,
}

impl TestServer {
    async fn start() -> TestServer {
        let events = Arc::<HandlerEvents>::default();
        let counted = Arc::clone(&events);
        let interceptor = head(move |request| {
            counted.seen.fetch_add(1, Ordering::SeqCst);
            if request.metadata().contains_key("x-refused") {
                return Err(Status::permission_denied("not you"));
            }
            Ok(request)
        });
        let read = |name: &str| match name {
            "a.proto" => Some(SOURCE.to_owned()),
            "google/api/annotations.proto" => Some(ANNOTATIONS.to_owned()),
            _ => None,
        };
        let descriptors = thalweg_protobuf::sources::compile(&["a.proto"], read).expect("a file");
        let server = Server::builder().add_service(EchoService(Arc::clone(&events))).interceptor(interceptor);
        TestServer { target: start(server.web(Web::new().descriptors(descriptors))).await, events }
    }

    async fn send(
        &self,
        version: Version,
        call_format: CallFormat,
        fields: &Fields,
        body: &[u8],
    ) -> HttpResponse {
        if version == Version::HTTP_2 {
            return send(connect(&self.target).await.engine(), request(call_format, fields, body)).await;
        }
        let io = TcpStream::connect(&self.target).await.expect("a server");
        HttpResponse::read(&http1_by(io, &http1_request_head(call_format, fields), body).await)
    }

    async fn handler_begins(&self) {
        soon(self.events.started.notified()).await;
    }

    async fn handler_is_dropped(&self) {
        soon(self.events.dropped.notified()).await;
    }
}

const ANNOTATIONS: &str = include_str!("../../../openapi/tests/proto/google/api/annotations.proto");

fn request(call_format: CallFormat, fields: &Fields, body: &[u8]) -> http::Request<Body> {
    let mut request = http::Request::builder().method("POST").uri(call_format.path());
    for (name, value) in [("content-type", call_format.content_type), ("te", "trailers")].iter().chain(fields)
    {
        request = request.header(*name, *value);
    }
    request.body(Body::full(Bytes::copy_from_slice(body))).expect("a request")
}

fn http1_request_head(call_format: CallFormat, fields: &Fields) -> String {
    let fields: String = fields.iter().flat_map(|(name, value)| ["\r\n", name, ": ", value]).collect();
    format!("POST {} HTTP/1.1\r\ncontent-type: {}{fields}", call_format.path(), call_format.content_type)
}

/// Calls by all protocols and versions, with these fields and this body, and checks the responses.
async fn check(
    fields: impl Fn(CallFormat) -> Fields,
    body: impl Fn(CallFormat) -> Vec<u8>,
    check_response: impl Fn(&TestServer, CallFormat, &HttpResponse, &str),
) {
    for call_format in FORMATS {
        for version in call_format.versions() {
            let server = TestServer::start().await;
            let response =
                server.send(*version, *call_format, &fields(*call_format), &body(*call_format)).await;
            check_response(
                &server,
                *call_format,
                &response,
                &format!("{call_format:?} {version:?} {response:?}"),
            );
        }
    }
}

fn plain(text: &str) -> impl Fn(CallFormat) -> Vec<u8> {
    move |call_format| call_format.body(text, Encoding::Identity)
}

#[tokio::test]
async fn metadata_reaches_handler_and_client() {
    check(
        |_| vec![("x-asked", "a b")],
        plain("abc"),
        |_, call_format, response, context| {
            assert_eq!(
                (response.status, call_format.decode_response(response)),
                (200, (call_format.message("abc"), false)),
                "{context}"
            );
            assert!(response.fields.contains("x-echo: a b\n"), "{context}");
        },
    )
    .await;
}

#[tokio::test]
async fn deadline_ends_calls_of_all_protocols() {
    check(
        |call_format| vec![call_format.deadline()],
        plain("sleep"),
        |_, call_format, response, context| assert!(call_format.is_failure(response, LATE), "{context}"),
    )
    .await;
}

#[tokio::test]
async fn interceptors_see_and_reject_calls() {
    let seen = |server: &TestServer| server.events.seen.load(Ordering::SeqCst);
    check(
        |_| Vec::new(),
        plain("abc"),
        |server, _, response, context| assert_eq!((response.status, seen(server)), (200, 1), "{context}"),
    )
    .await;
    check(
        |_| vec![("x-refused", "1")],
        plain("abc"),
        |server, call_format, response, context| {
            assert!(call_format.is_failure(response, REJECTED) && seen(server) == 1, "{context}");
        },
    )
    .await;
}

#[tokio::test]
async fn requests_and_responses_are_compressed() {
    let text = "a".repeat(100);
    check(
        |call_format| {
            vec![(call_format.encoding_fields().0, "gzip"), (call_format.encoding_fields().1, "gzip")]
        },
        |call_format| call_format.body(&text, Encoding::Gzip),
        |_, call_format, response, context| {
            assert_eq!(
                (response.status, call_format.decode_response(response)),
                (200, (call_format.message(&text), true)),
                "{context}"
            );
        },
    )
    .await;
    check(
        |call_format| {
            vec![(call_format.encoding_fields().0, "gzip"), (call_format.encoding_fields().1, "identity")]
        },
        |call_format| call_format.body(&text, Encoding::Gzip),
        |_, call_format, response, context| {
            assert_eq!(
                call_format.decode_response(response),
                (call_format.message(&text), false),
                "{context}"
            );
        },
    )
    .await;
}

#[tokio::test]
async fn too_large_messages_are_rejected() {
    let text = "ab".repeat(60) + "c";
    check(
        |_| Vec::new(),
        plain(&text),
        |_, call_format, response, context| assert!(call_format.is_failure(response, TOO_LARGE), "{context}"),
    )
    .await;
    // The limit applies to the decompressed size.
    check(
        |call_format| vec![(call_format.encoding_fields().0, "gzip")],
        |call_format| call_format.body(&text, Encoding::Gzip),
        |_, call_format, response, context| assert!(call_format.is_failure(response, TOO_LARGE), "{context}"),
    )
    .await;
}

#[tokio::test]
async fn disconnect_drops_handler() {
    for call_format in FORMATS {
        let server = TestServer::start().await;
        let body = call_format.body("sleep", Encoding::Identity);
        if call_format.versions().contains(&Version::HTTP_11) {
            let mut io = TcpStream::connect(&server.target).await.expect("a server");
            let head = http1_request_head(*call_format, &Vec::new());
            let head = format!("{head}\r\nhost: a\r\ncontent-length: {}\r\n\r\n", body.len());
            io.write_all(&[head.as_bytes(), &body].concat()).await.expect("it is open");
            server.handler_begins().await;
            drop(io);
            server.handler_is_dropped().await;
        }
        // RST_STREAM; the connection stays open.
        let (channel, socket) = closable(&server.target).await;
        let options = CallOptions::default();
        let call = tokio::spawn(channel.engine().raw(request(*call_format, &Vec::new(), &body), &options));
        server.handler_begins().await;
        call.abort();
        server.handler_is_dropped().await;
        let response =
            send(channel.engine(), request(*call_format, &Vec::new(), &plain("abc")(*call_format))).await;
        assert_eq!(response.status, 200, "{call_format:?} {response:?}");
        // The connection closes.
        let call = tokio::spawn(channel.engine().raw(request(*call_format, &Vec::new(), &body), &options));
        server.handler_begins().await;
        socket.shutdown(Shutdown::Both).expect("it is open");
        server.handler_is_dropped().await;
        assert!(soon(call).await.expect("no panic").is_err(), "{call_format:?}");
    }
}

/// Connects a channel; returns it and the socket of its only connection.
async fn closable(target: &str) -> (Channel, std::net::TcpStream) {
    let io = std::net::TcpStream::connect(target).expect("a server");
    let socket = io.try_clone().expect("a descriptor");
    io.set_nonblocking(true).expect("an option");
    let io = std::sync::Mutex::new(Some(TcpStream::from_std(io).expect("a socket")));
    let connect = move || {
        let io = io.lock().expect("no panic").take();
        std::future::ready(io.ok_or_else(|| std::io::ErrorKind::ConnectionRefused.into()))
    };
    let channel = Channel::builder("tcp:1").connector(connect).connect().await.expect("a server");
    (channel, socket)
}
