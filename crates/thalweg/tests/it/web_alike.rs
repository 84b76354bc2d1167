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

use crate::support::http::{Answer, ask, http1_by};
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
struct Way {
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

const fn way(protocol: Protocol, codec: Codec, content_type: &'static str) -> Way {
    Way { protocol, codec, content_type }
}

const WAYS: &[Way] = &[
    way(Protocol::Grpc, Codec::Proto, "application/grpc"),
    way(Protocol::Grpc, Codec::Json, "application/grpc+json"),
    way(Protocol::Grpc, Codec::MessagePack, "application/grpc+msgpack"),
    way(Protocol::Connect, Codec::Proto, "application/proto"),
    way(Protocol::Connect, Codec::Json, "application/json"),
    way(Protocol::Connect, Codec::MessagePack, "application/msgpack"),
    way(Protocol::GrpcWeb, Codec::Proto, "application/grpc-web+proto"),
    way(Protocol::GrpcWeb, Codec::Json, "application/grpc-web+json"),
    way(Protocol::Transcoded, Codec::Json, "application/json"),
];

type Fields = Vec<(&'static str, &'static str)>;

impl Way {
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
    fn answered(self, answer: &Answer) -> (Vec<u8>, bool) {
        let (is_flagged, mut message) = (answer.body.first() == Some(&1), &answer.body[..]);
        if self.has_envelopes() {
            assert!(message.len() > 5, "{self:?} {answer:?}");
            let len = u32::from_be_bytes(message[1..5].try_into().expect("four bytes")) as usize;
            message = &message[5..5 + len];
        }
        let named = format!("{}: gzip\n", self.encoding_fields().0);
        let is_compressed = answer.fields.contains(&named);
        if self.has_envelopes() {
            assert_eq!(is_flagged, is_compressed, "{self:?} {answer:?}");
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
    fn has_failed(self, answer: &Answer, failure: Failure) -> bool {
        let Failure { code, name, status } = failure;
        let body = String::from_utf8_lossy(&answer.body);
        let number = code as u8;
        match self.protocol {
            Protocol::Grpc => {
                answer.status == 200 && answer.fields.contains(&format!("grpc-status: {number}\n"))
            }
            Protocol::GrpcWeb => {
                let said = [&answer.fields, &*body].concat().replace('\r', "");
                answer.status == 200 && said.contains(&format!("grpc-status: {number}\n"))
            }
            Protocol::Connect => {
                answer.status == status && body.starts_with(&format!("{{\"code\":\"{name}\","))
            }
            Protocol::Transcoded => {
                // The body of the request is the message.
                let status = if code == Code::ResourceExhausted { 413 } else { status };
                answer.status == status && body.starts_with(&format!("{{\"code\":{number},"))
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
const REFUSED: Failure = Failure { code: Code::PermissionDenied, name: "permission_denied", status: 403 };
const TOO_LARGE: Failure = Failure { code: Code::ResourceExhausted, name: "resource_exhausted", status: 429 };

/// Events of the handlers.
#[derive(Default)]
struct Told {
    begun: Notify,
    dropped: Notify,
    /// Number of calls that the interceptor saw.
    seen: AtomicUsize,
}

struct Dropped(Arc<Told>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.dropped.notify_one();
    }
}

/// Echoes the message, and `x-asked` as `x-echo`; `sleep` never ends.
struct Alike(Arc<Told>);

impl Alike {
    async fn echo(self: Arc<Self>, request: Request<Raw>) -> Result<Response<Raw>, Status> {
        if request.get_ref().0.ends_with(b"sleep") {
            let _dropped = Dropped(Arc::clone(&self.0));
            self.0.begun.notify_one();
            pending::<()>().await;
        }
        let mut response = Response::new(request.get_ref().clone());
        if let Some(value) = request.metadata().get("x-asked") {
            response.metadata_mut().insert("x-echo", value.clone());
        }
        Ok(response)
    }
}

impl Service for Alike {
    const NAME: &'static str = "test.Alike";

    fn register(self, methods: &mut Methods<'_>) {
        let mut options = ServiceOptions::default();
        options.max_decoding_message_size = SIZE_MAX;
        options.send_compressed = Some(Encoding::Gzip);
        options.compression_threshold = 0;
        methods.unary("Echo", &Arc::new(self), &options, Alike::echo);
    }
}

/// A server for all protocols.
struct Site {
    target: String,
    told: Arc<Told>,
}

impl Site {
    async fn start() -> Site {
        let told = Arc::<Told>::default();
        let counted = Arc::clone(&told);
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
        let server = Server::builder().add_service(Alike(Arc::clone(&told))).interceptor(interceptor);
        Site { target: start(server.web(Web::new().descriptors(descriptors))).await, told }
    }

    async fn ask(&self, version: Version, way: Way, fields: &Fields, body: &[u8]) -> Answer {
        if version == Version::HTTP_2 {
            return ask(connect(&self.target).await.engine(), request(way, fields, body)).await;
        }
        let io = TcpStream::connect(&self.target).await.expect("a server");
        Answer::read(&http1_by(io, &http1_head(way, fields), body).await)
    }

    async fn handler_begins(&self) {
        soon(self.told.begun.notified()).await;
    }

    async fn handler_is_dropped(&self) {
        soon(self.told.dropped.notified()).await;
    }
}

const ANNOTATIONS: &str = include_str!("../../../openapi/tests/proto/google/api/annotations.proto");

fn request(way: Way, fields: &Fields, body: &[u8]) -> http::Request<Body> {
    let mut request = http::Request::builder().method("POST").uri(way.path());
    for (name, value) in [("content-type", way.content_type), ("te", "trailers")].iter().chain(fields) {
        request = request.header(*name, *value);
    }
    request.body(Body::full(Bytes::copy_from_slice(body))).expect("a request")
}

fn http1_head(way: Way, fields: &Fields) -> String {
    let fields: String = fields.iter().flat_map(|(name, value)| ["\r\n", name, ": ", value]).collect();
    format!("POST {} HTTP/1.1\r\ncontent-type: {}{fields}", way.path(), way.content_type)
}

/// Calls by all protocols and versions, with these fields and this body, and checks the responses.
async fn check(
    fields: impl Fn(Way) -> Fields,
    body: impl Fn(Way) -> Vec<u8>,
    look: impl Fn(&Site, Way, &Answer, &str),
) {
    for way in WAYS {
        for version in way.versions() {
            let site = Site::start().await;
            let answer = site.ask(*version, *way, &fields(*way), &body(*way)).await;
            look(&site, *way, &answer, &format!("{way:?} {version:?} {answer:?}"));
        }
    }
}

fn plain(text: &str) -> impl Fn(Way) -> Vec<u8> {
    move |way| way.body(text, Encoding::Identity)
}

#[tokio::test]
async fn metadata_reaches_the_handler_and_comes_back() {
    check(
        |_| vec![("x-asked", "a b")],
        plain("abc"),
        |_, way, answer, told| {
            assert_eq!((answer.status, way.answered(answer)), (200, (way.message("abc"), false)), "{told}");
            assert!(answer.fields.contains("x-echo: a b\n"), "{told}");
        },
    )
    .await;
}

#[tokio::test]
async fn deadlines_fire() {
    check(
        |way| vec![way.deadline()],
        plain("sleep"),
        |_, way, answer, told| assert!(way.has_failed(answer, LATE), "{told}"),
    )
    .await;
}

#[tokio::test]
async fn interceptors_see_calls_and_refuse_them() {
    let seen = |site: &Site| site.told.seen.load(Ordering::SeqCst);
    check(
        |_| Vec::new(),
        plain("abc"),
        |site, _, answer, told| assert_eq!((answer.status, seen(site)), (200, 1), "{told}"),
    )
    .await;
    check(
        |_| vec![("x-refused", "1")],
        plain("abc"),
        |site, way, answer, told| assert!(way.has_failed(answer, REFUSED) && seen(site) == 1, "{told}"),
    )
    .await;
}

#[tokio::test]
async fn requests_and_answers_are_compressed() {
    let text = "a".repeat(100);
    check(
        |way| vec![(way.encoding_fields().0, "gzip"), (way.encoding_fields().1, "gzip")],
        |way| way.body(&text, Encoding::Gzip),
        |_, way, answer, told| {
            assert_eq!((answer.status, way.answered(answer)), (200, (way.message(&text), true)), "{told}");
        },
    )
    .await;
    check(
        |way| vec![(way.encoding_fields().0, "gzip"), (way.encoding_fields().1, "identity")],
        |way| way.body(&text, Encoding::Gzip),
        |_, way, answer, told| assert_eq!(way.answered(answer), (way.message(&text), false), "{told}"),
    )
    .await;
}

#[tokio::test]
async fn messages_that_are_too_large_are_refused() {
    let text = "ab".repeat(60) + "c";
    check(
        |_| Vec::new(),
        plain(&text),
        |_, way, answer, told| assert!(way.has_failed(answer, TOO_LARGE), "{told}"),
    )
    .await;
    // The limit applies to the decompressed size.
    check(
        |way| vec![(way.encoding_fields().0, "gzip")],
        |way| way.body(&text, Encoding::Gzip),
        |_, way, answer, told| assert!(way.has_failed(answer, TOO_LARGE), "{told}"),
    )
    .await;
}

#[tokio::test]
async fn who_goes_away_drops_the_handler() {
    for way in WAYS {
        let site = Site::start().await;
        let body = way.body("sleep", Encoding::Identity);
        if way.versions().contains(&Version::HTTP_11) {
            let mut io = TcpStream::connect(&site.target).await.expect("a server");
            let head = http1_head(*way, &Vec::new());
            let head = format!("{head}\r\nhost: a\r\ncontent-length: {}\r\n\r\n", body.len());
            io.write_all(&[head.as_bytes(), &body].concat()).await.expect("the stream is open");
            site.handler_begins().await;
            drop(io);
            site.handler_is_dropped().await;
        }
        // RST_STREAM; the connection stays open.
        let (channel, socket) = closable(&site.target).await;
        let options = CallOptions::default();
        let call = tokio::spawn(channel.engine().raw(request(*way, &Vec::new(), &body), &options));
        site.handler_begins().await;
        call.abort();
        site.handler_is_dropped().await;
        let answer = ask(channel.engine(), request(*way, &Vec::new(), &plain("abc")(*way))).await;
        assert_eq!(answer.status, 200, "{way:?} {answer:?}");
        // The connection closes.
        let call = tokio::spawn(channel.engine().raw(request(*way, &Vec::new(), &body), &options));
        site.handler_begins().await;
        socket.shutdown(Shutdown::Both).expect("the stream is open");
        site.handler_is_dropped().await;
        assert!(soon(call).await.expect("no panic").is_err(), "{way:?}");
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
