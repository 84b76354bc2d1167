//! Any bytes as a client's or server's side of gRPC calls: headers, prefixes, compression, trailers.

use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use thalweg::server::{Methods, Service};
use thalweg::{
    CallOptions, Channel, Encoding, Method, Raw, Request, Response, Server, ServiceOptions, Status, Streaming,
};
use thalweg_http2::frame::{self, FRAME_HEADER_LEN, Flags, FrameHeader, Kind, PREFACE};
use thalweg_http2::hpack::Encoder;
use thalweg_http2::{Block, FieldList, Indexing, StreamId};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::runtime::{Builder, Runtime};

use super::features::{Features, INPUT_LEN_MAX, feature};
use crate::random::Random;

/// The lowest bit of an input's first byte selects the sender.
const FROM_SERVER: u8 = 1;
const PIPE: usize = 4 * 1024;
/// Small enough that small inputs exceed it.
const MESSAGE_SIZE_MAX: usize = 2_000;
/// In virtual time without waiting: a connection that takes longer hangs.
const HANGS_AFTER: Duration = Duration::from_secs(7200);

static UNARY: Method = Method::new("/fuzz.Echo/Unary");
static CHAT: Method = Method::new("/fuzz.Echo/Chat");

struct Echo;

impl Service for Echo {
    const NAME: &'static str = "fuzz.Echo";

    fn register(self, methods: &mut Methods<'_>) {
        let mut options = ServiceOptions::default();
        options.send_compressed = Some(Encoding::Gzip);
        options.max_decoding_message_size = MESSAGE_SIZE_MAX;
        let service = Arc::new(self);
        methods.unary("Unary", &service, &options, Echo::unary);
        methods.bidi_streaming("Chat", &service, &options, Echo::chat);
    }
}

#[expect(clippy::unused_async, reason = "handlers are async")]
impl Echo {
    async fn unary(self: Arc<Self>, request: Request<Raw>) -> Result<Response<Raw>, Status> {
        Ok(Response::new(request.into_inner()))
    }

    async fn chat(
        self: Arc<Self>,
        request: Request<Streaming<Raw>>,
    ) -> Result<Response<Streaming<Raw>>, Status> {
        Ok(Response::new(request.into_inner()))
    }
}

/// Checks, for any bytes in any pieces, that nothing panics, that both ends finish, and that the responses are frames.
pub(super) fn target(data: &[u8]) -> Features {
    let Some((&first, input)) = data.split_first() else { return Features::new() };
    let input = &input[..input.len().min(INPUT_LEN_MAX)];
    let random = Random::new(feature(data));
    let outcome = runtime().block_on(async {
        let run = async {
            if first & FROM_SERVER == 0 {
                run_server(input, random).await
            } else {
                run_client(input, random).await
            }
        };
        tokio::time::timeout(HANGS_AFTER, run).await
    });
    outcome.expect("a connection hangs")
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime without I/O")
}

/// A client sends `input` to a server.
async fn run_server(input: &[u8], random: Random) -> Features {
    let (near, far) = duplex(PIPE);
    let serving = Server::builder().add_service(Echo).serve_connection(far);
    let (served, received) = tokio::join!(serving, send_and_read(near, input, random));
    served.expect("a configuration");
    check_responses(&received)
}

/// A server sends `input` to a client that makes two calls.
async fn run_client(input: &[u8], random: Random) -> Features {
    let (near, far) = duplex(PIPE);
    let end = Mutex::new(Some(near));
    let builder = Channel::builder("memory:1").lanes(1).connector(move || {
        let end = end.lock().expect("the lock is not poisoned").take();
        let end = end.ok_or_else(|| std::io::ErrorKind::ConnectionRefused.into());
        async move { end }
    });
    let calling = async {
        let channel = match builder.connect().await {
            Ok(channel) => channel,
            Err(error) => return vec![feature(error.to_string().len())],
        };
        let mut options = CallOptions::default();
        options.max_decoding_message_size = MESSAGE_SIZE_MAX;
        let chat = async {
            let request = Request::new(Once(Some(Raw::from(Bytes::from(vec![1; 100])))));
            let mut responses =
                channel.bidi_streaming::<_, Raw>(&CHAT, request, &options).await?.into_inner();
            let mut count = 0;
            while responses.message().await?.is_some() {
                count += 1;
            }
            Ok::<usize, Status>(count)
        };
        let request = Request::new(Raw::from(Bytes::from(vec![1; 100])));
        let (one, many) = tokio::join!(channel.unary::<Raw, Raw>(&UNARY, request, &options), chat);
        let summary = |status: Status| (status.code(), status.message().chars().take(30).collect::<String>());
        vec![
            feature(one.map(drop).map_err(summary)),
            feature(many.map(|count| count.min(3)).map_err(summary)),
        ]
    };
    let (features, _) = tokio::join!(calling, send_and_read(far, input, random));
    features.into_iter().collect()
}

/// Sends `input` in pieces, and reads the response until the other end closes.
async fn send_and_read(io: DuplexStream, mut input: &[u8], mut random: Random) -> Vec<u8> {
    let (mut read, mut write) = tokio::io::split(io);
    let sending = async {
        while !input.is_empty() {
            let (piece, rest) = input.split_at(1 + random.size(input.len() - 1));
            // The other end may close the connection early.
            if write.write_all(piece).await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
            input = rest;
        }
        let _ = write.shutdown().await;
    };
    let mut received = Vec::new();
    let ((), outcome) = tokio::join!(sending, read.read_to_end(&mut received));
    outcome.expect("pipes don't fail");
    received
}

/// Checks a server's output, which must consist of frames, without a status of a panic.
fn check_responses(mut received: &[u8]) -> Features {
    let mut features = Features::new();
    let mut decoder = thalweg_http2::hpack::Decoder::new(thalweg_http2::hpack::DEFAULT_TABLE_SIZE);
    let mut fields = FieldList::new();
    while let Some((header, after_header)) = received.split_first_chunk::<FRAME_HEADER_LEN>() {
        let header = FrameHeader::parse(header);
        let (payload, rest) = after_header.split_at(header.len as usize);
        received = rest;
        features.insert(feature((format!("{:?}", header.kind), header.flags.contains(Flags::END_STREAM))));
        if header.kind == Kind::Headers {
            decoder.decode(payload, usize::MAX, &mut fields).expect("a header block");
            let status = fields.get(b"grpc-status").map(<[u8]>::to_vec);
            let message =
                String::from_utf8_lossy(fields.get(b"grpc-message").unwrap_or_default()).into_owned();
            assert!(!message.contains("panicked"), "a handler panicked: {message}");
            let message_start: String = message.chars().take(30).collect();
            features.insert(feature((fields.get(b":status").map(<[u8]>::to_vec), status, message_start)));
        }
    }
    assert!(received.is_empty(), "the output ends within a frame: {received:?}");
    features
}

/// A stream of one message.
struct Once(Option<Raw>);

impl futures_core::Stream for Once {
    type Item = Raw;

    fn poll_next(mut self: std::pin::Pin<&mut Self>, _: &mut std::task::Context<'_>) -> Poll<Option<Raw>> {
        Poll::Ready(self.0.take())
    }
}

/// Input from clients and servers that follow the rules, or almost.
pub(super) fn corpus() -> Vec<Vec<u8>> {
    let calls: &[(&str, &[(&str, &str)])] = &[
        ("Unary", &[]),
        ("Chat", &[("grpc-timeout", "1S"), ("x-bin", "AAE,Ag"), ("x", "y")]),
        ("Unary", &[("grpc-encoding", "gzip"), ("grpc-accept-encoding", "gzip,deflate")]),
        ("Chat", &[("grpc-encoding", "deflate"), ("grpc-timeout", "99999999H")]),
        ("Unary", &[("grpc-encoding", "brotli"), ("grpc-timeout", "1x"), ("y-bin", "*")]),
        ("None", &[]),
    ];
    let responses: &[&[(&str, &str)]] = &[
        &[("grpc-status", "0")],
        &[("grpc-status", "8"), ("grpc-message", "a%20b%ff%"), ("grpc-status-details-bin", "CAg")],
        &[("grpc-status", "x"), ("grpc-retry-pushback-ms", "10")],
    ];
    let bodies = [Encoding::Identity, Encoding::Gzip, Encoding::Deflate];
    let clients = calls.iter().flat_map(|call| bodies.map(|body| client(*call, body)));
    let servers = responses.iter().flat_map(|trailers| bodies.map(|body| server(trailers, body)));
    clients.chain(servers).collect()
}

fn client((method, extra): (&str, &[(&str, &str)]), body: Encoding) -> Vec<u8> {
    let mut out = [&[0][..], PREFACE].concat();
    frame::settings(&[], &mut out);
    let mut encoder = Encoder::new();
    for stream in [1, 3] {
        let path = format!("/fuzz.Echo/{method}");
        let request_fields = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path.as_str()),
            (":authority", "a"),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
        ];
        headers(&mut encoder, stream, false, &[&request_fields[..], extra].concat(), &mut out);
        data(stream, true, &messages(body), &mut out);
    }
    out
}

fn server(trailers: &[(&str, &str)], body: Encoding) -> Vec<u8> {
    let mut out = vec![FROM_SERVER];
    frame::settings(&[], &mut out);
    frame::emit(Kind::Settings, Flags::ACK, StreamId::new(0), b"", &mut out);
    let mut encoder = Encoder::new();
    for stream in [1, 3] {
        let response_headers =
            [(":status", "200"), ("content-type", "application/grpc"), ("grpc-encoding", body.name())];
        headers(&mut encoder, stream, false, &response_headers, &mut out);
        data(stream, false, &messages(body), &mut out);
        headers(&mut encoder, stream, true, trailers, &mut out);
    }
    out
}

/// Two messages with their prefixes, compressed if there is an encoding.
fn messages(encoding: Encoding) -> Vec<u8> {
    let mut out = Vec::new();
    for len in [300, 0] {
        let mut message = Vec::new();
        encoding.compress(&vec![7; len], &mut message);
        out.push(u8::from(encoding.compresses()));
        out.extend_from_slice(&(message.len() as u32).to_be_bytes());
        out.extend_from_slice(&message);
    }
    out
}

fn headers(encoder: &mut Encoder, stream: u32, end: bool, pairs: &[(&str, &str)], out: &mut Vec<u8>) {
    let mut fields = FieldList::new();
    for (name, value) in pairs {
        fields.push(name.as_bytes(), value.as_bytes(), Indexing::Literal);
    }
    let mut block = Vec::new();
    encoder.encode(Block { fixed: None, extra: &fields }, &mut block);
    let flags = Flags::END_HEADERS.with_if(end, Flags::END_STREAM);
    frame::emit(Kind::Headers, flags, StreamId::new(stream), &block, out);
}

fn data(stream: u32, end: bool, bytes: &[u8], out: &mut Vec<u8>) {
    frame::emit(Kind::Data, Flags::NONE.with_if(end, Flags::END_STREAM), StreamId::new(stream), bytes, out);
}
