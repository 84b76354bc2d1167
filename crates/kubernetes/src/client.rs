//! Requests to the API server: a list and a watch of EndpointSlices.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::{Body, Frame};
use thalweg_engine::raw::{OutgoingBody, Piece, Trailers};
use thalweg_engine::{CallOptions, Channel, RawBody, Status};
use tokio::time::{Instant, timeout, timeout_at};

use crate::api_server::ApiServer;
use crate::lines::Lines;
use crate::slices::{ApiStatus, SliceList, WatchEvent};

/// Lists and watches the EndpointSlices of a service.
#[derive(Debug)]
pub(crate) struct Client {
    api: ApiServer,
    /// URL of the API server without a path.
    origin: String,
    /// Path and query that select the slices.
    path: String,
    /// Replaced after a failure: a new one has no backoff of its own, and reads certificates again.
    channel: Option<Channel>,
}

/// Reason why a request failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// The token cannot be read or used.
    #[error("failed to read the token: {0}")]
    Token(String),
    /// The channel cannot be created.
    #[error("{0}")]
    Settings(String),
    /// The connection failed.
    #[error("{}", .0.message())]
    Connection(Status),
    /// The watch ended without an event.
    #[error("the API server ended the watch at once")]
    EndedAtOnce,
    /// The API server is silent.
    #[error("no response of the API server within {0:?}")]
    TimedOut(Duration),
    /// An error of the API server.
    #[error("{}", of_status(.status))]
    Status { status: ApiStatus, retry_after: Option<Duration> },
    /// A response that is not understood.
    #[error("invalid response of the API server: {0}")]
    Invalid(String),
}

/// A running watch.
pub(crate) struct Watch {
    body: RawBody,
    lines: Lines,
    ends_at: Instant,
}

/// Duration of a watch, after which the API server ends it; up to twice as long, so that clients spread. As in
/// client-go.
const WATCH_DURATION: Duration = Duration::from_secs(5 * 60);
/// Time for the API server to end a watch by itself.
const WATCH_GRACE: Duration = Duration::from_secs(30);
/// Maximum size of a list. A slice of 100 pods has about 40 KB, so it is enough for 150,000 pods.
const LIST_SIZE_MAX: usize = 64 * 1024 * 1024;
/// Maximum size of an event. Objects in etcd have at most 1.5 MiB, in a denser encoding.
const EVENT_SIZE_MAX: usize = 8 * 1024 * 1024;
/// Maximum size of an error's body.
const ERROR_SIZE_MAX: usize = 64 * 1024;
/// Maximum length of a message of the API server in an error.
const MESSAGE_LEN_MAX: usize = 500;
/// Maximum delay that the API server can demand.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

impl Client {
    /// Creates a client for the slices of a service. `origin` and `prefix` are the URL of the API server.
    pub(crate) fn new(
        api: ApiServer,
        (origin, prefix): (String, String),
        namespace: &str,
        service: &str,
    ) -> Self {
        let path = format!(
            "{prefix}/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices\
             ?labelSelector=kubernetes.io%2Fservice-name%3D{service}"
        );
        Self { api, origin, path, channel: None }
    }

    /// Closes the connection. The next request makes another.
    pub(crate) fn disconnect(&mut self) {
        self.channel = None;
    }

    /// Lists the slices: the latest state, or else any that the API server has in memory, which costs it less.
    pub(crate) async fn list(&mut self, latest: bool) -> Result<SliceList, RequestError> {
        let time = self.api.request_timeout();
        let version = if latest { "" } else { "&resourceVersion=0" };
        let listed = async {
            let response = self.get(version).await?;
            let body = read(response.into_body(), LIST_SIZE_MAX).await?;
            serde_json::from_slice(&body).map_err(|error| RequestError::Invalid(error.to_string()))
        };
        timeout(time, listed).await.unwrap_or(Err(RequestError::TimedOut(time)))
    }

    /// Starts a watch of changes after `version`. `random_unit` in 0..=1 selects its duration.
    pub(crate) async fn watch(&mut self, version: &str, random_unit: f64) -> Result<Watch, RequestError> {
        let duration = WATCH_DURATION.mul_f64(1.0 + random_unit);
        let seconds = duration.as_secs();
        let query = format!(
            "&watch=true&allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds={seconds}",
            escaped(version)
        );
        let time = self.api.request_timeout();
        let response = timeout(time, self.get(&query)).await.unwrap_or(Err(RequestError::TimedOut(time)))?;
        let ends_at = Instant::now() + duration + WATCH_GRACE;
        Ok(Watch { body: response.into_body(), lines: Lines::default(), ends_at })
    }

    async fn get(&mut self, query: &str) -> Result<Response<RawBody>, RequestError> {
        let token = self.api.current_token().map_err(|error| RequestError::Token(error.to_string()))?;
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(token) = token {
            let value = HeaderValue::try_from(format!("Bearer {token}"));
            let mut value = value.map_err(|_| RequestError::Token("it has invalid characters".to_owned()))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let mut request = Request::new(NoBody);
        *request.headers_mut() = headers;
        let path = format!("{}{query}", self.path);
        *request.uri_mut() =
            path.parse().map_err(|error| RequestError::Settings(format!("{path}: {error}")))?;
        let channel = if let Some(channel) = &self.channel {
            channel
        } else {
            let channel = self.api.channel(&self.origin);
            let channel = channel.map_err(|error| RequestError::Settings(error.to_string()))?;
            self.channel.insert(channel)
        };
        let sent = channel.raw(request, &CallOptions::default()).await;
        let response = sent.map_err(RequestError::Connection)?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(failure(response).await)
    }
}

impl Watch {
    /// Returns the next events; `None` at the end. A line that is cut off is dropped: a watch from the last version
    /// repeats it.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<WatchEvent>>, RequestError> {
        let Ok(piece) = timeout_at(self.ends_at, next_piece(&mut self.body)).await else { return Ok(None) };
        let Some(piece) = piece? else { return Ok(None) };
        let lines = self.lines.take(&piece, EVENT_SIZE_MAX);
        let lines = lines
            .map_err(|_| RequestError::Invalid(format!("an event is larger than {EVENT_SIZE_MAX} bytes")))?;
        let lines = lines.iter().filter(|line| !line.trim_ascii().is_empty());
        let event = |line: &Vec<u8>| serde_json::from_slice(line);
        let events = lines.map(event).collect::<Result<Vec<WatchEvent>, _>>();
        events.map(Some).map_err(|error| RequestError::Invalid(error.to_string()))
    }
}

/// Returns the next bytes of a body; `None` at its end.
async fn next_piece(body: &mut RawBody) -> Result<Option<Bytes>, RequestError> {
    loop {
        match poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await {
            None => return Ok(None),
            Some(Err(status)) => return Err(RequestError::Connection(status)),
            Some(Ok(frame)) => {
                if let Ok(piece) = frame.into_data() {
                    return Ok(Some(piece));
                }
            }
        }
    }
}

async fn read(mut body: RawBody, size_max: usize) -> Result<Vec<u8>, RequestError> {
    let mut bytes = Vec::new();
    while let Some(piece) = next_piece(&mut body).await? {
        if bytes.len() + piece.len() > size_max {
            return Err(RequestError::Invalid(format!("it is larger than {size_max} bytes")));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

/// Reads the error of a response.
async fn failure(response: Response<RawBody>) -> RequestError {
    let (parts, body) = response.into_parts();
    let retry_after = parts.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let retry_after = retry_after.map(|seconds| Duration::from_secs(seconds).min(RETRY_AFTER_MAX));
    let body = read(body, ERROR_SIZE_MAX).await.unwrap_or_default();
    let message = match serde_json::from_slice::<ApiStatus>(&body) {
        Ok(status) => status.message,
        Err(_) => String::from_utf8_lossy(&body).into_owned(),
    };
    RequestError::Status { status: ApiStatus { code: parts.status.as_u16(), message }, retry_after }
}

/// Describes an error of the API server, and what to do.
fn of_status(ApiStatus { code, message }: &ApiStatus) -> String {
    let message: String = message.trim().chars().take(MESSAGE_LEN_MAX).collect();
    let message = if message.is_empty() { String::new() } else { format!(": {}", message.escape_debug()) };
    let hint = match code {
        401 => "; check the token and its expiry",
        403 => {
            "; let a Role allow `get`, `list` and `watch` of `endpointslices` in the API group \
             `discovery.k8s.io`, and bind it to the service account"
        }
        404 => "; it needs Kubernetes 1.21 or later",
        _ => "",
    };
    format!("HTTP {code}{message}{hint}")
}

/// Escapes a version, which is opaque, for a query (RFC 3986 §2.1).
fn escaped(version: &str) -> String {
    let is_kept = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let escape = |byte| if is_kept(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    version.bytes().map(escape).collect()
}

/// The body of a GET request.
struct NoBody;

impl Body for NoBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        true
    }
}

impl OutgoingBody for NoBody {
    fn status(error: Status) -> Status {
        error
    }

    fn take_complete(&mut self) -> Option<(Piece, Trailers)> {
        Some((Piece::default(), Trailers::None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_to_do() {
        let check = |code, message: &str, expected: &str| {
            let status = ApiStatus { code, message: message.to_owned() };
            assert_eq!(of_status(&status), expected);
        };
        check(500, "", "HTTP 500");
        check(503, " down\r\n", "HTTP 503: down");
        check(401, "Unauthorized", "HTTP 401: Unauthorized; check the token and its expiry");
        check(500, "a\u{1b}b", "HTTP 500: a\\u{1b}b");
        check(500, &"x".repeat(900), &format!("HTTP 500: {}", "x".repeat(500)));
    }

    #[test]
    fn versions_are_escaped() {
        assert_eq!(escaped("12345"), "12345");
        assert_eq!(escaped("a&b=c%é"), "a%26b%3Dc%25%C3%A9");
    }
}
