//! The library of `tests/proto`, as far as the script in its page calls it, on a port with the page.

use std::collections::HashMap;
use std::future::{Ready, pending, ready};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body::Frame;
use serde_json::{Value, json};
use thalweg_engine::server::{
    Handler, LocalCalls, MessageResponse, ServerConfig, ServerMethod, StreamingCall, StreamingHandler,
    UnaryHandler,
};
use thalweg_engine::{Code, Encode, Envelope, RequestHead, ServiceOptions, Status};
use thalweg_protobuf::{Schema, json as protojson};
use thalweg_web::body::Body;
use thalweg_web::http1::{Http1Limits, serve};
use thalweg_web::{Web, WebService};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

use crate::browser::ScriptResults;
use crate::echo::{collect, next};
use crate::library::{Methods, ResponseStream, Sent, Wire};
use crate::openapi::descriptors;

/// A library with its page, on its own port.
pub(crate) struct Site {
    service: WebService,
    results: ScriptResults,
    state: Arc<State>,
    bodies: Mutex<HashMap<String, Vec<u8>>>,
}

/// State shared by the handlers.
struct State {
    schema: Schema,
    /// Number of first messages that were seen.
    shown_count: watch::Sender<u32>,
    /// Number of held calls that have ended.
    released: AtomicUsize,
}

impl Site {
    /// Serves it with `probe` added to the page's script. Returns the port and the results of the probe.
    pub(crate) async fn start(probe: &'static str) -> (Arc<Site>, u16, mpsc::UnboundedReceiver<String>) {
        let set = descriptors();
        let schema = Schema::from_descriptor_set(&set).unwrap();
        let state = Arc::new(State {
            schema,
            shown_count: watch::Sender::default(),
            released: AtomicUsize::default(),
        });
        let web = Web::new().descriptors(set).docs(true).openapi(true);
        let (results, facts) = ScriptResults::new();
        let service = web.into_service(calls(&state)).unwrap();
        let site = Arc::new(Site { service, results, state, bodies: Mutex::default() });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let serving = Arc::clone(&site);
        tokio::spawn(async move {
            loop {
                let (io, _) = listener.accept().await.unwrap();
                let site = Arc::clone(&serving);
                tokio::spawn(async move {
                    let respond = |request| site.respond(request, probe);
                    serve(io, respond, &Http1Limits::default(), pending()).await;
                });
            }
        });
        (site, port, facts)
    }

    /// Returns the body sent to a path.
    pub(crate) fn body(&self, path: &str) -> Vec<u8> {
        self.bodies.lock().unwrap()[path].clone()
    }

    /// Returns the number of held calls that have ended.
    pub(crate) fn released(&self) -> usize {
        self.state.released.load(Ordering::SeqCst)
    }

    async fn respond(self: &Arc<Site>, request: Request<Body>, probe: &str) -> Response<Body> {
        match request.uri().path() {
            "/hold" => self.results.wait_until_done().await,
            "/report" => {
                let fact = collect(Response::new(request.into_body())).await;
                if fact.text().starts_with("WatchBooks seen") {
                    self.state.shown_count.send_modify(|shown_count| *shown_count += 1);
                }
                self.results.record(fact.text())
            }
            "/docs/page.js" => {
                let (head, script) = self.service.call(request).await.into_parts();
                let script = collect(Response::new(script)).await.body;
                Response::from_parts(head, Body::full([&script, probe.as_bytes()].concat()))
            }
            path => {
                let (site, path) = (Arc::clone(self), path.to_owned());
                site.bodies.lock().unwrap().insert(path.clone(), Vec::new());
                self.service.call(request.map(|body| Body::new(Recorded { body, site, path }))).await
            }
        }
    }
}

/// A body that records what is read.
struct Recorded {
    body: Body,
    site: Arc<Site>,
    path: String,
}

impl http_body::Body for Recorded {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &frame
            && let Some(piece) = frame.data_ref()
        {
            self.site.bodies.lock().unwrap().entry(self.path.clone()).or_default().extend_from_slice(piece);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}

/// Returns all methods that the script calls except `LockBook`, which has a descriptor only.
fn calls(state: &Arc<State>) -> LocalCalls {
    let method = |name: &str, handler: Handler| {
        let name = format!("library.v1.Library/{name}");
        Arc::new(ServerMethod::new(&name, ServiceOptions::default(), handler))
    };
    let streaming = |name| method(name, Handler::streaming(Streaming(name, Arc::clone(state))));
    let methods = vec![
        method("GetBook", Handler::unary(GetBook(Arc::clone(state)))),
        method("UpdateBook", Handler::unary(UpdateBook)),
        streaming("WatchBooks"),
        streaming("ImportBooks"),
        streaming("Ask"),
    ];
    LocalCalls::new(&ServerConfig::default(), Arc::new(Methods(methods)))
}

impl State {
    fn wire(&self, name: &str, json: &Value) -> Wire {
        let message_type = self.schema.message(&format!("library.v1.{name}")).unwrap();
        Wire(protojson::to_wire(message_type, json.to_string().as_bytes()).unwrap())
    }

    fn value(&self, name: &str, wire: &[u8]) -> Value {
        let message_type = self.schema.message(&format!("library.v1.{name}")).unwrap();
        serde_json::from_str(&protojson::from_wire(message_type, wire).unwrap()).unwrap()
    }
}

/// Returns a book that names its reader and has misleading contents.
struct GetBook(Arc<State>);

impl UnaryHandler for GetBook {
    type Future = Ready<Self::Output>;
    type Output = (Wire, HeaderMap);

    fn start(&self, head: &RequestHead, mut request: Envelope<'_>) -> Result<Self::Future, Status> {
        assert!(
            head.timeout
                .is_some_and(|remaining| remaining.as_secs() == 59 || remaining == Duration::from_secs(60))
        );
        let request = self.0.value("GetBookRequest", request.open()?.as_bytes());
        let value = |name: &str| head.metadata.get(name).and_then(|value| value.to_str().ok()).unwrap();
        let book = json!({
            "name": request["name"],
            "title": "<img src=x onerror=alert(1)>",
            "subtitle": format!("{}, {}", value("x-who"), value("x-two")),
        });
        Ok(ready((self.0.wire("Book", &book), cost("12"))))
    }

    fn response((book, trailers): &Self::Output) -> Result<MessageResponse<'_, impl Encode>, Status> {
        static NONE: std::sync::LazyLock<HeaderMap> = std::sync::LazyLock::new(HeaderMap::new);
        Ok(MessageResponse { metadata: &NONE, message: Wire(book.0.clone()), trailers: Some(trailers) })
    }
}

struct UpdateBook;

impl UnaryHandler for UpdateBook {
    type Future = Ready<()>;
    type Output = ();

    fn start(&self, _: &RequestHead, _: Envelope<'_>) -> Result<Self::Future, Status> {
        Err(Status::new(Code::NotFound, "no book is called so"))
    }

    fn response((): &Self::Output) -> Result<MessageResponse<'_, impl Encode>, Status> {
        Err::<MessageResponse<'_, Wire>, _>(Status::new(Code::Internal, "it never begins"))
    }
}

struct Streaming(&'static str, Arc<State>);

impl StreamingHandler for Streaming {
    fn start(&self, head: &RequestHead, call: StreamingCall) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let (name, state, is_on_hold) = (self.0, Arc::clone(&self.1), head.metadata.contains_key("x-hold"));
        let input = match name {
            "WatchBooks" => "WatchBooksRequest",
            "ImportBooks" => "Book",
            _ => "Question",
        };
        let mut requests = call.requests();
        Box::pin(async move {
            let mut messages = Vec::new();
            while let Some(wire) = next(&mut requests).await.unwrap() {
                messages.push(state.value(input, &wire));
            }
            let none = HeaderMap::new();
            if name == "ImportBooks" {
                let message = state.wire("ImportSummary", &json!({ "count": messages.len() }));
                return call.respond(Ok(MessageResponse { metadata: &none, message, trailers: None }));
            }
            let (to, responses) = mpsc::channel(1);
            if name == "Ask" {
                tokio::spawn(respond_to_questions(state, messages, to));
                call.respond_stream(&none, ResponseStream(responses), None).await;
            } else {
                assert!(is_on_hold || messages == [json!({ "limit": 2 })], "{messages:?}");
                tokio::spawn(watch_books(state, is_on_hold, to));
                call.respond_stream(&none, ResponseStream(responses), Some(cost("3"))).await;
            }
        })
    }
}

/// Echoes each question, then fails.
async fn respond_to_questions(state: Arc<State>, questions: Vec<Value>, to: mpsc::Sender<Sent>) {
    for question in questions {
        let _ = to.send(Ok(state.wire("Answer", &question))).await;
    }
    let enough = Status::new(Code::ResourceExhausted, "enough for today").prepend_metadata(&cost("4"));
    let _ = to.send(Err(enough)).await;
}

/// Sends the second event once the first was seen; a held call never gets it.
async fn watch_books(state: Arc<State>, is_on_hold: bool, to: mpsc::Sender<Sent>) {
    let mut shown_count = state.shown_count.subscribe();
    let event = |title: &str| Ok(state.wire("BookEvent", &json!({ "book": { "title": title } })));
    let _ = to.send(event("One")).await;
    if is_on_hold {
        to.closed().await;
        state.released.fetch_add(1, Ordering::SeqCst);
        return;
    }
    tokio::select! {
        shown_count = shown_count.changed() => shown_count.unwrap(),
        () = to.closed() => return,
    }
    let _ = to.send(event("Two")).await;
}

fn cost(value: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(HeaderName::from_static("x-cost"), HeaderValue::from_static(value))])
}
