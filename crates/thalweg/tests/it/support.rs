//! A service that exercises everything a call can do, and helpers for a client and a server over a real socket.

pub(crate) mod callers;
pub(crate) mod certificates;
pub(crate) mod http;
pub(crate) mod peer;
#[cfg(feature = "opentelemetry")]
pub(crate) mod recorded;
pub(crate) mod servers;
#[cfg(feature = "opentelemetry")]
pub(crate) mod spans;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use thalweg::bytes::Bytes;
use thalweg::server::{Methods, ServerBuilder, Service};
use thalweg::{Channel, Raw, Request, Response, ServiceOptions, Status, Stream, Streaming};

pub(crate) static ECHO: thalweg::Method = thalweg::Method::new("/test.Echo/Echo");
pub(crate) static COUNT: thalweg::Method = thalweg::Method::new("/test.Echo/Count");
pub(crate) static REPEAT: thalweg::Method = thalweg::Method::new("/test.Echo/Repeat");
pub(crate) static CHAT: thalweg::Method = thalweg::Method::new("/test.Echo/Chat");

/// Obeys the request's bytes: `sleep`, `panic`, `fail`, `spin`; echoes anything else.
#[derive(Clone, Default)]
pub(crate) struct Echo {
    /// Handlers dropped before they finished.
    pub cancelled: Arc<std::sync::atomic::AtomicUsize>,
    pub options: ServiceOptions,
}

struct CountDrop(Option<Arc<std::sync::atomic::AtomicUsize>>);

impl Drop for CountDrop {
    fn drop(&mut self) {
        if let Some(count) = &self.0 {
            count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
    }
}

#[expect(clippy::unused_async, reason = "handlers are async, those that do not wait, too")]
impl Echo {
    async fn echo(self: Arc<Self>, request: Request<Raw>) -> Result<Response<Raw>, Status> {
        match &request.get_ref().0[..] {
            b"sleep" => {
                let mut guard = CountDrop(Some(Arc::clone(&self.cancelled)));
                tokio::time::sleep(Duration::from_secs(3600)).await;
                guard.0 = None;
            }
            b"yield" => tokio::task::yield_now().await,
            b"panic" => panic!("asked to"),
            b"fail" => return Err(Status::not_found("nichts: ü %")),
            _ => {}
        }
        let mut response = Response::new(request.get_ref().clone());
        if let Some(value) = request.metadata().get("x-echo") {
            response.metadata_mut().insert("x-echo", value.clone());
        }
        Ok(response)
    }

    async fn count(self: Arc<Self>, request: Request<Streaming<Raw>>) -> Result<Response<Raw>, Status> {
        let mut requests = request.into_inner();
        let (mut messages, mut bytes) = (0, 0);
        while let Some(Raw(message)) = requests.message().await? {
            messages += 1;
            bytes += message.len();
        }
        Ok(Response::new(Raw(Bytes::from(format!("{messages} {bytes}")))))
    }

    async fn repeat(self: Arc<Self>, request: Request<Raw>) -> Result<Response<Repeated>, Status> {
        let (times, size) = parse(request.get_ref());
        Ok(Response::new(Repeated { left: times, message: Raw(Bytes::from(vec![7; size])) }))
    }

    async fn chat(
        self: Arc<Self>,
        request: Request<Streaming<Raw>>,
    ) -> Result<Response<Streaming<Raw>>, Status> {
        Ok(Response::new(request.into_inner()))
    }
}

/// Parses `times size`.
fn parse(order: &Raw) -> (usize, usize) {
    let text = std::str::from_utf8(&order.0).expect("tests send text");
    let (times, size) = text.split_once(' ').expect("two numbers");
    (times.parse().expect("a number"), size.parse().expect("a number"))
}

pub(crate) struct Repeated {
    left: usize,
    message: Raw,
}

impl Stream for Repeated {
    type Item = Result<Raw, Status>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        self.left -= 1;
        Poll::Ready(Some(Ok(self.message.clone())))
    }
}

impl Service for Echo {
    const NAME: &'static str = "test.Echo";

    fn register(self, methods: &mut Methods<'_>) {
        let options = self.options.clone();
        let service = Arc::new(self);
        methods.unary("Echo", &service, &options, Echo::echo);
        methods.client_streaming("Count", &service, &options, Echo::count);
        methods.server_streaming("Repeat", &service, &options, Echo::repeat);
        methods.bidi_streaming("Chat", &service, &options, Echo::chat);
    }
}

/// Starts a server for the lifetime of the test's runtime; returns its target.
pub(crate) async fn serve(service: impl Service) -> String {
    start(thalweg::Server::builder().add_service(service)).await
}

/// Starts a server like [`serve`], from a builder.
pub(crate) async fn start(server: ServerBuilder) -> String {
    let server = server.bind(&["127.0.0.1:0".parse().expect("an address")]).await.expect("a free port");
    let target = server.local_addresses()[0].to_string();
    tokio::spawn(server.serve());
    target
}

pub(crate) async fn connect(target: &str) -> Channel {
    Channel::builder(target).connect().await.expect("a server")
}

pub(crate) fn raw(bytes: impl Into<Vec<u8>>) -> Raw {
    Raw(Bytes::from(bytes.into()))
}

/// A stream of messages that is always ready.
pub(crate) struct Items<T>(pub std::vec::IntoIter<T>);

impl<T> Unpin for Items<T> {}

impl<T> Stream for Items<T> {
    type Item = T;
    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<T>> {
        Poll::Ready(self.0.next())
    }
}

pub(crate) fn items<T>(items: Vec<T>) -> Items<T> {
    Items(items.into_iter())
}

/// Polls a future once with a no-op waker.
pub(crate) fn poll_once<F: Future>(future: Pin<&mut F>) -> Option<F::Output> {
    match future.poll(&mut Context::from_waker(std::task::Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// Waits for a future that must complete; fails instead of hanging.
pub(crate) async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("it must come to an end")
}

/// Waits until a condition that must become true.
pub(crate) async fn until(condition: impl Fn() -> bool) {
    soon(async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

/// Calls `Echo` in a new task.
pub(crate) fn spawn_echo(channel: &Channel, message: &str) -> tokio::task::JoinHandle<Result<Raw, Status>> {
    let (channel, message) = (channel.clone(), raw(message));
    tokio::spawn(async move { echo(&channel, message).await })
}

pub(crate) async fn echo(channel: &Channel, message: Raw) -> Result<Raw, Status> {
    let options = thalweg::CallOptions::default();
    channel.unary(&ECHO, Request::new(message), &options).await.map(Response::into_inner)
}

pub(crate) async fn chat<S>(channel: &Channel, requests: S) -> Result<Streaming<Raw>, Status>
where
    S: Stream + Send + 'static,
    S::Item: thalweg::Message,
{
    let options = thalweg::CallOptions::default();
    channel.bidi_streaming(&CHAT, Request::new(requests), &options).await.map(Response::into_inner)
}

/// A stream of messages that the test sends one by one.
pub(crate) struct Receiver<T>(pub tokio::sync::mpsc::UnboundedReceiver<T>);

impl<T> Stream for Receiver<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.0.poll_recv(cx)
    }
}
