//! One port for all protocols over TLS, with and without ALPN.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use thalweg::Server;
use thalweg::channel::ConnectError;
use thalweg::tls::rustls::crypto::aws_lc_rs;
use thalweg::tls::rustls::{ClientConfig, RootCertStore};
use thalweg::web::Web;
use thalweg::web::body::Body;
use thalweg::{Channel, tls::ServerTlsConfig};
use thalweg_engine::http2::frame::{FrameHeader, Kind};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::support::certificates::Authority;
use crate::support::http::{HttpResponse, http1_by, http2_by};
use crate::support::{chat, echo, items, raw, soon, start};

const SOURCE: &str = r#"
syntax = "proto3"; package test;
message Text { string text = 1; }
service Echo {
    rpc Echo(Text) returns (Text);
    rpc Chat(stream Text) returns (stream Text);
}
"#;

/// Descriptors of a part of the service in `support`.
pub(crate) fn descriptors() -> Vec<u8> {
    thalweg_protobuf::sources::compile(&["a.proto"], |_| Some(SOURCE.to_owned())).expect("a file")
}

/// A fallback for requests that are not calls.
#[derive(Clone)]
struct Pages;

impl tower_service::Service<Request<Body>> for Pages {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let description = format!("{} by {:?}", request.uri().path(), request.version());
        ready(Ok(Response::new(Body::from(description))))
    }
}

/// A server with a certificate authority, and how clients connect to it.
struct TestServer {
    target: String,
    roots: RootCertStore,
}

impl TestServer {
    async fn start() -> TestServer {
        let authority = Authority::new();
        let web = Web::new().descriptors(descriptors()).fallback(Pages);
        let tls = ServerTlsConfig::new().identity(authority.identity("localhost"));
        let server = Server::builder().add_service(crate::support::Echo::default()).web(web);
        let target = start(server.tls(tls)).await;
        let mut roots = RootCertStore::empty();
        roots.add(authority.certificate_der()).expect("an authority");
        TestServer { target, roots }
    }

    fn connector(&self, alpn: &[&str]) -> TlsConnector {
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions");
        let mut config = config.with_root_certificates(self.roots.clone()).with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        TlsConnector::from(Arc::new(config))
    }

    /// Connects a client that offers these protocols, and checks the agreed one.
    async fn connect(&self, alpn: &[&str], agreed: Option<&str>) -> TlsStream<TcpStream> {
        let stream = connect(&self.connector(alpn), &self.target).await.expect("a connection");
        assert_eq!(stream.get_ref().1.alpn_protocol(), agreed.map(str::as_bytes), "{alpn:?}");
        stream
    }

    /// Connects a channel that offers these protocols.
    async fn channel(&self, alpn: &[&str]) -> Result<Channel, ConnectError> {
        let (connector, target) = (self.connector(alpn), self.target.clone());
        let connect = move || {
            let (connector, target) = (connector.clone(), target.clone());
            async move { connect(&connector, &target).await }
        };
        soon(Channel::builder("tls:1").connector(connect).connect()).await
    }
}

async fn connect(connector: &TlsConnector, target: &str) -> std::io::Result<TlsStream<TcpStream>> {
    let name = "localhost".try_into().expect("a name");
    connector.connect(name, TcpStream::connect(target).await?).await
}

const JSON: &str = r#"{"text":"Größe"}"#;
/// The same message in wire format.
const WIRE: &[u8] = b"\x0a\x07Gr\xc3\xb6\xc3\x9fe";
const LINES: &str = "{\"text\":\"a\"}\n{\"text\":\"b\"}\n";
/// Two messages in envelopes.
const ENVELOPES: &[u8] = b"\0\0\0\0\x03\x0a\x01a\0\0\0\0\x03\x0a\x01b";

/// Returns path, content type, request body and complete response body for all protocols but gRPC.
fn protocols() -> Vec<(&'static str, &'static str, &'static [u8], Vec<u8>)> {
    let connect_end = &b"\x02\0\0\0\x02{}"[..];
    let web_end = &b"\x80\0\0\0\x10grpc-status: 0\r\n"[..];
    vec![
        ("/test.Echo/Echo", "application/json", JSON.as_bytes(), JSON.into()),
        ("/test.Echo/Echo", "application/proto", WIRE, WIRE.into()),
        ("/test.Echo/Chat", "application/x-ndjson", LINES.as_bytes(), LINES.into()),
        ("/test.Echo/Chat", "application/connect+proto", ENVELOPES, [ENVELOPES, connect_end].concat()),
        ("/test.Echo/Chat", "application/grpc-web", ENVELOPES, [ENVELOPES, web_end].concat()),
    ]
}

#[tokio::test]
async fn all_protocols_work_over_http2_with_tls() {
    let server = TestServer::start().await;
    // Clients that offer both get HTTP/2; without ALPN, the first bytes decide.
    for (alpn, agreed) in [(&["h2"][..], Some("h2")), (&["http/1.1", "h2"], Some("h2")), (&[], None)] {
        drop(server.connect(alpn, agreed).await);
        let channel = server.channel(alpn).await.expect("a connection");
        for (path, content_type, sent, expected) in protocols() {
            let response = http2_by(channel.engine(), "POST", path, content_type, sent).await;
            assert_eq!(response, (200, expected), "{alpn:?} {content_type}");
        }
        let page = http2_by(channel.engine(), "GET", "/nothing", "", b"").await;
        assert_eq!(page, (200, b"/nothing by HTTP/2.0".to_vec()), "{alpn:?}");
        // gRPC on the same connection.
        assert_eq!(soon(echo(&channel, raw("by gRPC"))).await.expect("a response").0, "by gRPC", "{alpn:?}");
        let mut chat = soon(chat(&channel, items(vec![raw("a"), raw("b")]))).await.expect("a stream");
        for expected in ["a", "b"] {
            assert_eq!(soon(chat.message()).await.expect("no error"), Some(raw(expected)), "{alpn:?}");
        }
        assert_eq!(soon(chat.message()).await.expect("no error"), None);
    }
}

#[tokio::test]
async fn all_protocols_work_over_http1_with_tls() {
    let server = TestServer::start().await;
    for (alpn, agreed) in [(&["http/1.1"][..], Some("http/1.1")), (&[], None)] {
        let send = async |head: &str, body: &[u8]| {
            HttpResponse::read(&http1_by(server.connect(alpn, agreed).await, head, body).await)
                .status_and_body()
        };
        for (path, content_type, sent, expected) in protocols() {
            let response = send(&format!("POST {path} HTTP/1.1\r\ncontent-type: {content_type}"), sent).await;
            assert_eq!(response, (200, expected), "{alpn:?} {content_type}");
        }
        let page = send("GET /nothing HTTP/1.1", b"").await;
        assert_eq!(page, (200, b"/nothing by HTTP/1.1".to_vec()), "{alpn:?}");
        // gRPC requires HTTP/2.
        let head = "POST /test.Echo/Echo HTTP/1.1\r\ncontent-type: application/grpc";
        assert_eq!(send(head, b"\0\0\0\0\0").await.0, 505, "{alpn:?}");
    }
}

/// ALPN decides; the first bytes are then ignored.
#[tokio::test]
async fn negotiated_protocol_is_enforced() {
    let server = TestServer::start().await;
    assert!(server.channel(&["http/1.1"]).await.is_err(), "HTTP/2 where HTTP/1.1 was agreed on");
    let response = http1_by(server.connect(&["h2"], Some("h2")).await, "GET / HTTP/1.1", b"").await;
    // Only frames; the last one rejects the preface.
    assert_eq!(kinds(&response), [Kind::Settings, Kind::WindowUpdate, Kind::GoAway], "{response:?}");
    let rejected = connect(&server.connector(&["spdy/3"]), &server.target).await;
    assert!(rejected.is_err(), "no protocol that both speak");
}

/// Returns the types of HTTP/2 frames.
fn kinds(mut bytes: &[u8]) -> Vec<Kind> {
    let mut kinds = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk() {
        let head = FrameHeader::parse(head);
        kinds.push(head.kind);
        bytes = &rest[head.len as usize..];
    }
    kinds
}
