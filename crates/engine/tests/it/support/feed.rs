//! A server streaming method whose responses the test sets, for `grpc.health.v1` and ORCA.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use thalweg_engine::server::{Handler, Router, ServerMethod, StreamingCall, StreamingHandler};
use thalweg_engine::{RequestHead, ServiceOptions, Source, Status};
use tokio::sync::watch;

use super::{BoxFuture, Message, Messages, NO_METADATA, raw};

/// The streams of one method. Each sends the last response at once, and every later one.
#[derive(Clone)]
pub(crate) struct Feed {
    last: watch::Sender<Option<Result<Vec<u8>, Status>>>,
    opened: Arc<AtomicUsize>,
    /// Whether new streams wait for the next response.
    holds: Arc<AtomicBool>,
    requests: Arc<Mutex<Vec<Message>>>,
}

impl Feed {
    /// Creates streams without responses.
    pub(crate) fn silent() -> Self {
        let (last, _) = watch::channel(None);
        Self { last, opened: Arc::default(), holds: Arc::default(), requests: Arc::default() }
    }

    pub(crate) fn new(response: &[u8]) -> Self {
        let feed = Self::silent();
        feed.send(response);
        feed
    }

    /// Creates streams that fail.
    pub(crate) fn failing(status: Status) -> Self {
        let feed = Self::silent();
        feed.fail(status);
        feed
    }

    pub(crate) fn send(&self, response: &[u8]) {
        self.last.send_replace(Some(Ok(response.to_vec())));
    }

    pub(crate) fn fail(&self, status: Status) {
        self.last.send_replace(Some(Err(status)));
    }

    /// Makes new streams wait for the next response.
    pub(crate) fn hold(&self) {
        self.holds.store(true, Ordering::SeqCst);
    }

    /// Returns the number of streams so far.
    pub(crate) fn opened(&self) -> usize {
        self.opened.load(Ordering::SeqCst)
    }

    /// Returns the number of open streams.
    pub(crate) fn open(&self) -> usize {
        self.last.receiver_count()
    }

    /// Returns the requests so far.
    pub(crate) fn requests(&self) -> Vec<Message> {
        self.requests.lock().unwrap().clone()
    }

    /// Returns a router with this method, and those of `others`.
    pub(crate) fn router(&self, name: &'static str, others: Arc<dyn Router>) -> Arc<dyn Router> {
        let handler = Handler::streaming(self.clone());
        let method = Arc::new(ServerMethod::new(name, ServiceOptions::default(), handler));
        Arc::new(WithFeed { path: format!("/{name}"), method, others })
    }
}

struct WithFeed {
    path: String,
    method: Arc<ServerMethod>,
    others: Arc<dyn Router>,
}

impl fmt::Debug for WithFeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)
    }
}

impl Router for WithFeed {
    fn find(&self, path: &[u8]) -> Result<Arc<ServerMethod>, Status> {
        if path == self.path.as_bytes() { Ok(Arc::clone(&self.method)) } else { self.others.find(path) }
    }

    fn method_names(&self) -> Vec<Arc<str>> {
        self.others.method_names()
    }
}

impl StreamingHandler for Feed {
    fn start(&self, _: &RequestHead, call: StreamingCall) -> BoxFuture<()> {
        self.opened.fetch_add(1, Ordering::SeqCst);
        let feed = self.clone();
        let (last, holds) = (self.last.subscribe(), self.holds.load(Ordering::SeqCst));
        Box::pin(async move {
            let request = Messages(call.requests()).message().await.expect("a request").expect("one request");
            feed.requests.lock().unwrap().push(request);
            call.respond_stream(&NO_METADATA, Responses(Box::pin(next(last, holds))), None).await;
        })
    }
}

type Next = (watch::Receiver<Option<Result<Vec<u8>, Status>>>, Result<Vec<u8>, Status>);

/// Waits for a response other than the last one.
async fn next(mut last: watch::Receiver<Option<Result<Vec<u8>, Status>>>, mut is_sent: bool) -> Next {
    loop {
        if std::mem::replace(&mut is_sent, false) {
            last.changed().await.expect("the method exists");
        }
        let response = last.borrow_and_update().clone();
        match response {
            Some(response) => return (last, response),
            None => is_sent = true,
        }
    }
}

struct Responses(Pin<Box<dyn Future<Output = Next> + Send>>);

impl Stream for Responses {
    type Item = Result<Message, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let (last, response) = ready!(self.0.as_mut().poll(cx));
        self.0 = Box::pin(next(last, true));
        Poll::Ready(Some(response.map(raw)))
    }
}

impl Source for Responses {
    type Message = Message;
}
