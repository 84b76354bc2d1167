//! Protocol selection.

use bytes::Bytes;
use http::{HeaderValue, Request, Response};
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};
use thalweg_engine::ServiceOptions;
use thalweg_web::body::Body;
use thalweg_web::cors::{Cors, Origins};
use thalweg_web::{Web, WebError, WebService};

use crate::declared::service;
use crate::echo::{descriptors, envelope, request, send, serve};
use crate::library::echo_with;

/// Echoes the request line.
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
        ready(Ok(Response::new(Body::full(format!("fallback: {} {}", request.method(), request.uri())))))
    }
}

fn web() -> Web {
    Web::new().descriptors(descriptors())
}

fn service_of(web: Web) -> WebService {
    serve(web, &ServiceOptions::default()).0
}

/// Checks status and body of the response.
async fn check(service: &WebService, head: &str, body: &'static [u8], expected: &str) {
    let response = send(service, request(head, Bytes::from_static(body))).await;
    let text = format!("{} {}", response.status, String::from_utf8_lossy(&response.body).trim_end());
    assert_eq!(text, expected, "{head}");
}

#[tokio::test]
async fn front_page_lists_services_protocols_and_pages() {
    const METHODS: &str = "  echo.Echo
    Chat (bidirectional streaming)
    Fold (client streaming)
    Look (unary)
    Many (server streaming)
    One (unary)";
    let service = service_of(web());
    let first = format!("200 Services of this server (Thalweg {}):", env!("CARGO_PKG_VERSION"));
    let text = format!("{first}\n{METHODS}\nProtocols: gRPC, gRPC-Web, Connect, JSON over HTTP");
    check(&service, "GET / HTTP/1.1", b"", &text).await;
    let response =
        send(&service, request("GET /\naccept: text/html, application/json;q=0.9", Body::empty())).await;
    let json: serde_json::Value = serde_json::from_slice(&response.body).unwrap();
    assert_eq!(json["services"]["echo.Echo"]["Many"], "server streaming");
    assert_eq!(
        (json["protocols"][1].as_str(), json["pages"].as_array().unwrap().len()),
        (Some("gRPC-Web"), 0)
    );
    let other = service_of(web().connect(false).transcoding(false).docs(true).openapi(true));
    let text = format!("{first}\n{METHODS}\nProtocols: gRPC, gRPC-Web\nPages: /docs, /openapi.json");
    check(&other, "GET /", b"", &text).await;
    let undescribed = echo_with(Web::new(), Vec::new(), &["a.B/C"]).unwrap();
    assert!(
        send(&undescribed, request("GET /", Body::empty())).await.text().contains("  a.B\n    C (unary)\n")
    );
    check(&service, "HEAD /", b"", "200 ").await;
    check(&service, "POST /", b"", "405 this path accepts only GET, HEAD").await;
}

#[tokio::test]
async fn unknown_path_gets_404() {
    let service = service_of(web());
    check(&service, "GET /nothing", b"", "404 nothing found at /nothing").await;
    let json = r#"404 {"code":5,"details":[],"message":"nothing found at /a.B/C"}"#;
    check(&service, "POST /a.B/C\ncontent-type: application/json", b"{}", json).await;
    // The service has descriptors, but no handlers.
    check(
        &service,
        "POST /echo.Absent/One\ncontent-type: application/proto",
        b"",
        "404 nothing found at /echo.Absent/One",
    )
    .await;
}

#[tokio::test]
async fn unsupported_body_at_method_path_gets_415() {
    let service = service_of(web());
    let response = send(&service, request("PUT /echo.Echo/One", Body::empty())).await;
    assert_eq!((response.status, response.headers["allow"].to_str().unwrap()), (405, "POST"));
    let check = async |path: &str, content_type: &str, expected: &str| {
        let head = format!("POST {path} HTTP/1.1\ncontent-type: {content_type}");
        let response = send(&service, request(&head, Bytes::from_static(b"{}"))).await;
        assert_eq!((response.status, response.headers["accept-post"].to_str().unwrap()), (415, expected));
    };
    let unary = "application/proto, application/json, application/msgpack, application/grpc-web, \
                 application/grpc-web-text";
    check("/echo.Echo/One", "text/plain", unary).await;
    check("/echo.Echo/One", "application/connect+json", unary).await;
    check("/echo.Echo/One", "application/json; charset=latin1", unary).await;
    let stream = "application/connect+proto, application/connect+json, application/connect+msgpack, \
                  application/grpc-web, application/grpc-web-text";
    check("/echo.Echo/Many", "application/proto", stream).await;
}

#[tokio::test]
async fn grpc_over_http_1_1_gets_505() {
    let service = service_of(web());
    let response = send(
        &service,
        request("POST /echo.Echo/One HTTP/1.1\ncontent-type: application/grpc", Body::empty()),
    )
    .await;
    assert_eq!(response.status, 505);
    let response =
        send(&service, request("POST /echo.Echo/One\ncontent-type: application/grpc+yaml", Body::empty()))
            .await;
    assert_eq!(response.status, 415);
}

#[tokio::test]
async fn fallback_gets_requests_that_are_not_calls() {
    let service = service_of(web().fallback(Pages));
    check(&service, "GET /", b"", "200 fallback: GET /").await;
    check(&service, "POST /a?b=c", b"", "200 fallback: POST /a?b=c").await;
    check(
        &service,
        "OPTIONS /a\norigin: https://a\naccess-control-request-method: GET",
        b"",
        "200 fallback: OPTIONS /a",
    )
    .await;
    check(&service, "POST /echo.Echo/One\ncontent-type: application/json", b"{}", "200 {}").await;
    check(&service, "GET /echo.Echo/One", b"", "405 this path accepts only POST").await;
    let service = service_of(web().fallback(Pages).front_page(true));
    let response = send(&service, request("GET /", Body::empty())).await;
    assert!(response.text().starts_with("Services"));
}

#[tokio::test]
async fn fallback_gets_other_methods_of_annotated_paths() {
    let methods = service("message M { string a = 1; }", "M", "M", &["get: \"/a\""]);
    let served = |web| echo_with(web, crate::declared::descriptors(&methods), &["t.S/M0"]).unwrap();
    let cors = || Cors::default().origins(Origins::Any);
    let with = served(Web::new().fallback(Pages).cors(cors()));
    check(&with, "GET /a?a=b", b"", "200 {\"a\":\"b\"}").await;
    check(&with, "DELETE /a", b"", "200 fallback: DELETE /a").await;
    let requested =
        |method: &str| format!("OPTIONS /a\norigin: https://a\naccess-control-request-method: {method}");
    check(&with, &requested("GET"), b"", "204 ").await;
    check(&with, &requested("DELETE"), b"", "200 fallback: OPTIONS /a").await;
    let without = served(Web::new().cors(cors()));
    check(&without, "DELETE /a", b"", "405 this path accepts only GET, HEAD").await;
    check(&without, &requested("DELETE"), b"", "204 ").await;
}

#[tokio::test]
async fn disabled_protocol_is_not_served() {
    let service = service_of(web().connect(false).transcoding(false));
    let head = "POST /echo.Echo/One HTTP/1.1\ncontent-type: application/json";
    let response = send(&service, request(head, Bytes::from_static(b"{}"))).await;
    assert_eq!(response.headers["accept-post"], "application/grpc-web, application/grpc-web-text");
    let service = service_of(web().grpc_web(false).grpc_codecs(false));
    let check = async |content_type: &str| {
        let head = format!("POST /echo.Echo/One\ncontent-type: {content_type}");
        assert_eq!(send(&service, request(&head, envelope(0, b"{}"))).await.status, 415);
    };
    check("application/grpc-web+json").await;
    check("application/grpc+json").await;
}

#[tokio::test]
async fn cors_allows_configured_origins() {
    let page = HeaderValue::from_static("https://a");
    let cors = Cors::default().origins(Origins::These(vec![page]));
    let service = service_of(web().cors(cors).fallback(Pages));
    let check = async |head: &str, expected: (u16, Option<&str>)| {
        let response = send(&service, request(head, Bytes::from_static(b"{}"))).await;
        let allowed =
            response.headers.get("access-control-allow-origin").map(|value| value.to_str().unwrap());
        assert_eq!((response.status, allowed), expected, "{head}");
    };
    let requested = "access-control-request-method: POST";
    check(&format!("OPTIONS /echo.Echo/One\norigin: https://a\n{requested}"), (204, Some("https://a"))).await;
    check(&format!("OPTIONS /echo.Echo/One\norigin: https://b\n{requested}"), (403, None)).await;
    let call = "POST /echo.Echo/One\ncontent-type: application/json";
    check(&format!("{call}\norigin: https://a"), (200, Some("https://a"))).await;
    check(&format!("{call}\norigin: https://b"), (200, None)).await;
    check("GET /a\norigin: https://a", (200, None)).await;
}

#[tokio::test]
async fn preflight_is_answered_for_annotations_and_unknown_paths() {
    let methods = service("message M { string a = 1; }", "M", "M", &["patch: \"/a\" body: \"*\""]);
    let cors = Cors::default().origins(Origins::Any);
    let served =
        echo_with(Web::new().cors(cors), crate::declared::descriptors(&methods), &["t.S/M0"]).unwrap();
    let check = async |head: &str, expected: &str| {
        let response = send(&served, request(head, Bytes::from_static(b"{}"))).await;
        let allowed =
            response.headers.get("access-control-allow-origin").map(|value| value.to_str().unwrap());
        assert_eq!(format!("{} {allowed:?}", response.status), expected, "{head}");
    };
    let page = "origin: https://a";
    check(&format!("OPTIONS /a\n{page}\naccess-control-request-method: PATCH"), "204 Some(\"*\")").await;
    check(&format!("PATCH /a\n{page}\ncontent-type: application/json"), "200 Some(\"*\")").await;
    check(&format!("DELETE /a\n{page}"), "405 Some(\"*\")").await;
    check(&format!("POST /t.S/Absent\n{page}\ncontent-type: application/json"), "404 Some(\"*\")").await;
}

#[tokio::test]
async fn credentials_for_all_origins_are_rejected() {
    let cors = |origins| Cors::default().origins(origins).allows_credentials(true);
    let refused = echo_with(web().cors(cors(Origins::Any)), descriptors().to_vec(), &[]);
    assert!(matches!(refused, Err(WebError::Credentials)), "{refused:?}");
    let named = Origins::These(vec![HeaderValue::from_static("https://a")]);
    assert!(echo_with(web().cors(cors(named)), descriptors().to_vec(), &[]).is_ok());
}

#[tokio::test]
async fn invalid_annotations_fail_only_if_needed() {
    let methods = ["t.S/M0", "t.S/M1"];
    for enabled in 0..8 {
        let [transcoding, openapi, docs] = [0, 1, 2].map(|bit| enabled & (1 << bit) != 0);
        let web = || Web::new().transcoding(transcoding).openapi(openapi).docs(docs);
        let good = service("message M {}", "M", "M", &["get: \"/a\"", "get: \"/b\""]);
        let served = echo_with(web(), crate::declared::descriptors(&good), &methods).unwrap();
        for (path, is_there) in [("/a", transcoding), ("/openapi.json", openapi), ("/docs", docs)] {
            let response = send(&served, request(&format!("GET {path}"), Body::empty())).await;
            assert_eq!(response.status, if is_there { 200 } else { 404 }, "{path} of {enabled}");
        }
        let bad = service("message M {}", "M", "M", &["get: \"/a\"", "get: \"/a\""]);
        let refused = echo_with(web(), crate::declared::descriptors(&bad), &methods).is_err();
        assert_eq!(refused, enabled != 0, "{enabled}");
    }
}
