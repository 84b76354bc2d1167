//! Requests for the service, and validation of their heads.

use http::header::{CONNECTION, CONTENT_TYPE, HOST};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, Version};
use hyper::body::Incoming;

use super::framing::HIDDEN_UPGRADE;
use super::progress::Progress;
use super::received_body::ReceivedBody;
use crate::body::Body;

/// Returns a request read by hyper, or the response to one that violates RFC 9112. `number` is its index on the
/// connection.
#[expect(clippy::result_large_err, reason = "the `Err` is a finished response")]
pub(super) fn check(
    request: Request<Incoming>,
    number: u64,
    progress: &Progress,
) -> Result<Request<Body>, Response<Body>> {
    let (mut head, body) = request.into_parts();
    check_target(&head.method, &head.uri).map_err(refusal)?;
    check_host(&head.headers, head.version).map_err(refusal)?;
    head.headers.remove(HIDDEN_UPGRADE);
    // RFC 9112 §3.2.2: the target's authority overrides Host.
    if let Some(authority) = head.uri.authority()
        && let Ok(host) = HeaderValue::from_str(authority.as_str())
    {
        head.headers.insert(HOST, host);
    }
    let body = if http_body::Body::is_end_stream(&body) {
        progress.body_read(number);
        Body::empty()
    } else {
        Body::received(ReceivedBody::new(body, number, progress.clone()))
    };
    Ok(Request::from_parts(head, body))
}

type Refusal = (StatusCode, &'static str);

fn check_target(method: &Method, uri: &Uri) -> Result<(), Refusal> {
    if *method == Method::CONNECT {
        return Err((StatusCode::NOT_IMPLEMENTED, "CONNECT is not supported"));
    }
    let is_authority = uri.scheme().is_none() && uri.authority().is_some();
    // RFC 9112 §3.2.3 and §3.2.4.
    if is_authority || (uri.path() == "*" && *method != Method::OPTIONS) {
        return Err((StatusCode::BAD_REQUEST, "invalid form of the request target for its method"));
    }
    Ok(())
}

/// RFC 9112 §3.2.
fn check_host(headers: &HeaderMap, version: Version) -> Result<(), Refusal> {
    let mut hosts = headers.get_all(HOST).iter();
    let is_valid = match (hosts.next(), hosts.next()) {
        (None, _) => version == Version::HTTP_10,
        (Some(host), None) => host.is_empty() || is_authority(host.as_bytes()),
        (Some(_), Some(_)) => false,
    };
    if is_valid { Ok(()) } else { Err((StatusCode::BAD_REQUEST, "expected exactly one valid Host header")) }
}

/// Returns whether `host` is an authority without user information.
fn is_authority(host: &[u8]) -> bool {
    !host.contains(&b'@') && Authority::try_from(host).is_ok()
}

/// Returns an error response that closes the connection.
#[cold]
fn refusal((status, why): Refusal) -> Response<Body> {
    let mut response = Response::new(Body::full(format!("{why}\n")));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
