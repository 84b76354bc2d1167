//! Responses to HTTP/2 headers other than gRPC's: HEAD, and malformed ones.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use http::{Request, Response};
use thalweg::Server;
use thalweg::web::Web;
use thalweg::web::body::Body;
use thalweg_engine::http2::frame::Kind;
use tokio::io::duplex;

use crate::support::peer::{PIPE, Peer};
use crate::support::{Echo, soon};

/// Responds to HEAD as to GET, or with the length that GET's response would have.
#[derive(Clone)]
struct Fallback;

impl tower_service::Service<Request<Body>> for Fallback {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let response = match request.uri().path() {
            "/said" => Response::builder().header("content-length", "7").body(Body::empty()),
            _ => Response::builder().body(Body::from("fallback".to_owned())),
        };
        ready(Ok(response.expect("headers")))
    }
}

/// Returns a server's response to a request: the headers that `names` lists, and `+ body` if there is a body.
async fn response_lines(web: Web, fields: &[(&str, &str)], names: &[&str]) -> String {
    let (near, far) = duplex(PIPE);
    let server = Server::builder().add_service(Echo::default()).web(web);
    tokio::spawn(server.serve_connection(far));
    let mut peer = Peer::client(near).await;
    peer.headers(1, true, fields).send().await;
    let (mut received_lines, mut is_over) = (Vec::new(), false);
    while !is_over {
        let frame = soon(peer.next()).await.expect("the connection stays");
        is_over = frame.end_stream;
        match frame.kind {
            Kind::Headers => {
                let text = frame.text();
                let is_wanted = |line: &&str| names.iter().any(|name| line.starts_with(&format!("{name}: ")));
                received_lines.extend(text.lines().filter(is_wanted).map(str::to_owned));
            }
            Kind::Data => received_lines.push(format!("+ {}", frame.text().trim_end())),
            _ => {}
        }
    }
    received_lines.join("\n")
}

#[tokio::test]
async fn response_to_head_has_no_content() {
    let check = async |web: Web, path: &str, expected: &str| {
        let fields = [(":method", "HEAD"), (":scheme", "http"), (":path", path), (":authority", "a")];
        assert_eq!(response_lines(web, &fields, &[":status", "content-length"]).await, expected, "{path}");
    };
    check(Web::new(), "/nothing", ":status: 404\ncontent-length: 26").await;
    check(Web::new(), "/test.Echo/Echo", ":status: 405\ncontent-length: 28").await;
    let page = include_str!("../../../openapi/page/page.html").len();
    check(Web::new().docs(true), "/docs", &format!(":status: 200\ncontent-length: {page}")).await;
    check(Web::new().fallback(Fallback), "/a", ":status: 200\ncontent-length: 8").await;
    check(Web::new().fallback(Fallback), "/said", ":status: 200\ncontent-length: 7").await;
}

#[tokio::test]
async fn malformed_request_headers_are_bad_requests() {
    const MALFORMED: &str = "+ The request is malformed: its path, or one of its headers.";
    let check = async |path: &str, content_type: &str, extra_fields: &str, expected: &str| {
        let fields = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "a")];
        let fields = [&fields[..], &[("content-type", content_type), ("x-a", extra_fields)]].concat();
        let received_lines =
            response_lines(Web::new(), &fields, &[":status", "content-type", "grpc-status"]).await;
        assert_eq!(received_lines, expected, "{path} {content_type} {extra_fields:?}");
    };
    let bad = format!(":status: 400\ncontent-type: text/plain; charset=utf-8\n{MALFORMED}");
    check("/v1/a b", "application/json", "1", &bad).await;
    check("/v1/a", "text/plain", "\u{1}", &bad).await;
    check("/test.Echo/Echo", "application/grpc-web", "\u{1}", &bad).await;
    let grpc = ":status: 200\ncontent-type: application/grpc\ngrpc-status: 13";
    check("/test.Echo/Echo", "application/grpc+json", "\u{1}", grpc).await;
}
