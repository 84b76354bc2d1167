//! Tests of connections over a pipe, with a paused clock.

mod closing;
mod fuzz;
mod requests;
mod smuggling;
mod timeouts;

use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::Frame;
use thalweg_engine::{Code, RequestAccounting, Status};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{Http1Limits, serve};
use crate::body::Body;

/// Log of the service, a line per request or event.
#[derive(Clone, Debug, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn add(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Logs when it is dropped.
struct Dropped(Log, &'static str);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.add(self.1);
    }
}

/// A service whose path selects its behavior.
async fn service(request: Request<Body>, log: Log) -> Response<Body> {
    let (head, mut body) = request.into_parts();
    let request_line = format!("{} {}", head.method, head.uri);
    match head.uri.path() {
        "/unread" => {
            log.add(request_line);
            Response::new(Body::full("unread"))
        }
        "/early" => {
            log.add(request_line);
            Response::new(Body::streaming(Early(
                Some(body),
                Slow::of(vec![Ok(Frame::data("early".into())), Ok(Frame::data(", and late".into()))]),
            )))
        }
        "/hang" => {
            log.add(request_line);
            let _dropped = Dropped(log, "dropped");
            pending().await
        }
        "/slow" => {
            log.add(request_line);
            tokio::time::sleep(Duration::from_secs(100)).await;
            Response::new(Body::full("slow"))
        }
        path @ ("/fails" | "/fails-of-30") => {
            let frames = vec![
                Ok(Frame::data("some".into())),
                Err(Status::new(Code::Internal, "it fails")),
                Ok(Frame::data("and more".into())),
            ];
            let mut response = Response::new(Body::streaming(Slow::of(frames)));
            if path == "/fails-of-30" {
                response.headers_mut().insert("content-length", HeaderValue::from_static("30"));
            }
            response
        }
        "/pieces" => Response::new(pieces(vec![Ok(Frame::data("a".into())), Ok(Frame::data("bc".into()))])),
        "/for-ever" => Response::new(Body::streaming(Stalled(Dropped(log, "dropped")))),
        "/endless" => Response::new(Body::streaming(Endless)),
        "/large" => Response::new(Body::full(vec![b'a'; 1 << 20])),
        "/trailers" => {
            let mut trailers = HeaderMap::new();
            trailers.insert("behind", HeaderValue::from_static("it"));
            let body = pieces(vec![Ok(Frame::data("a".into())), Ok(Frame::trailers(trailers))]);
            let mut response = Response::new(body);
            response.headers_mut().insert("trailer", HeaderValue::from_static("behind"));
            response
        }
        "/fields" => {
            let field_lines =
                head.headers.iter().map(|(name, value)| format!("{name}={} ", value.to_str().unwrap()));
            Response::new(Body::full(field_lines.collect::<String>()))
        }
        "/length" => {
            let mut response = Response::new(Body::full("abc"));
            response.headers_mut().insert("content-length", HeaderValue::from_static("30"));
            response
        }
        "/100" => Response::builder().status(100).body(Body::empty()).unwrap(),
        "/whole" => {
            let end = match body.collect_bytes(usize::MAX, &mut RequestAccounting::default()).await {
                Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                Err(status) => format!("{:?}: {}", status.code(), status.message()),
            };
            log.add(format!("{request_line}: {end}"));
            Response::new(Body::full("whole"))
        }
        _ => {
            let mut read = String::new();
            let end = loop {
                if head.uri.path() == "/parts" {
                    // Each piece is a part.
                    body.expect_part(Some(read.len() as u64));
                }
                match poll_fn(|cx| http_body::Body::poll_frame(Pin::new(&mut body), cx)).await {
                    Some(Ok(frame)) => match frame.into_data() {
                        Ok(piece) => read.push_str(&String::from_utf8_lossy(&piece)),
                        Err(_) => read.push_str(" and trailers"),
                    },
                    Some(Err(status)) => break format!("{read}, then {}", status.message()),
                    None => break read,
                }
            };
            log.add(if end.is_empty() { request_line } else { format!("{request_line}: {end}") });
            Response::new(Body::full("ok"))
        }
    }
}

fn pieces(frames: Vec<Result<Frame<Bytes>, Status>>) -> Body {
    Body::streaming(Pieces(frames.into_iter()))
}

struct Pieces(std::vec::IntoIter<Result<Frame<Bytes>, Status>>);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, Status>>> {
        std::task::Poll::Ready(self.0.next())
    }
}

/// [`Pieces`] with a pause before each, so that the one before has been sent.
struct Slow(Pieces, Pin<Box<tokio::time::Sleep>>);

impl Slow {
    fn of(frames: Vec<Result<Frame<Bytes>, Status>>) -> Self {
        Self(Pieces(frames.into_iter()), Box::pin(tokio::time::sleep(PAUSE)))
    }
}

const PAUSE: Duration = Duration::from_millis(10);

impl http_body::Body for Slow {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, Status>>> {
        std::task::ready!(self.1.as_mut().poll(cx));
        self.1 = Box::pin(tokio::time::sleep(PAUSE));
        Pin::new(&mut self.0).poll_frame(cx)
    }
}

/// A body that drops the request body with its first piece.
struct Early(Option<Body>, Slow);

impl http_body::Body for Early {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = std::task::ready!(Pin::new(&mut self.1).poll_frame(cx));
        self.0 = None;
        std::task::Poll::Ready(frame)
    }
}

/// A body that starts and never continues.
struct Stalled(#[expect(dead_code, reason = "it is there to be dropped")] Dropped);

impl http_body::Body for Stalled {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, Status>>> {
        std::task::Poll::Pending
    }
}

struct Endless;

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, Status>>> {
        std::task::Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b'a'; 10_000])))))
    }
}

/// The client's side of a connection.
struct Client {
    io: DuplexStream,
    log: Log,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
}

/// Data received from a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Received {
    text: String,
    is_closed: bool,
}

impl Received {
    fn statuses(&self) -> Vec<&str> {
        let lines = self.text.split("HTTP/1.").skip(1);
        lines.map(|line| &line[2..5]).collect()
    }
}

impl Client {
    fn new() -> Self {
        Self::with(Http1Limits::default(), 64 << 10)
    }

    /// `buffered` is the capacity of the pipe in bytes, each way.
    fn with(limits: Http1Limits, buffered: usize) -> Self {
        let (io, served) = duplex(buffered);
        let (stop, stopped) = oneshot::channel();
        let log = Log::default();
        let logged = log.clone();
        let serving = tokio::spawn(async move {
            let stopped = async {
                if stopped.await.is_err() {
                    pending::<()>().await;
                }
            };
            serve(served, |request| service(request, logged.clone()), &limits, stopped).await;
        });
        Self { io, log, stop: Some(stop), serving }
    }

    async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        // The server may have closed its side.
        let _ = self.io.write_all(bytes.as_ref()).await;
    }

    /// Receives until the other side closes or is silent for a second.
    async fn receive(&mut self) -> Received {
        let mut received = Received::default();
        let mut bytes = Vec::new();
        loop {
            match timeout(Duration::from_secs(1), self.io.read_buf(&mut bytes)).await {
                Ok(Ok(0) | Err(_)) => received.is_closed = true,
                Ok(Ok(_)) => continue,
                Err(_) => {}
            }
            received.text = String::from_utf8(bytes).expect("text");
            return received;
        }
    }

    async fn exchange(&mut self, bytes: impl AsRef<[u8]>) -> Received {
        self.send(bytes).await;
        self.receive().await
    }

    fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }
}

/// Returns the output and the duration of `future`.
async fn timed<T>(future: impl Future<Output = T>) -> (T, Duration) {
    let start = tokio::time::Instant::now();
    (future.await, start.elapsed())
}
