//! HTTP endpoint for Prometheus.

use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ALLOW, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::Semaphore;

use super::accept::TextFormat;
use super::families::families;
use super::snapshot::Latest;
use super::text::text;

/// Maximum connections. A scraper has one, rarely two.
const CONNECTIONS_MAX: usize = 16;
/// Timeout for the headers of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after a failed accept, by when file descriptors may be free again.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Serves requests until dropped. The listener must be non-blocking.
pub(super) async fn serve(listener: TcpListener, latest: Latest) {
    // On failure there are no metrics, but the load goes on.
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = room.clone().acquire_owned().await else { return };
        let Ok((socket, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_AGAIN).await;
            continue;
        };
        let latest = latest.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let response = respond(&request, &latest);
                async { Ok::<_, Infallible>(response) }
            });
            let mut server = http1::Builder::new();
            server.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
            // A scraper that disconnects early is not an error.
            let _ = server.serve_connection(TokioIo::new(socket), service).await;
            drop(place);
        });
    }
}

fn respond(request: &Request<Incoming>, latest: &Latest) -> Response<Full<Bytes>> {
    if request.uri().path() != "/metrics" {
        return text_response(StatusCode::NOT_FOUND, "metrics are at /metrics\n");
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = text_response(StatusCode::METHOD_NOT_ALLOWED, "use GET to read metrics\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    let accept = request.headers().get_all(ACCEPT).iter().filter_map(|accept| accept.to_str().ok());
    let format = TextFormat::of(&accept.collect::<Vec<_>>().join(","));
    let families = latest.snapshot().map_or_else(Vec::new, |snapshot| families(&snapshot));
    let mut response = Response::new(Full::new(Bytes::from(text(&families, format))));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
    response
}

fn text_response(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
