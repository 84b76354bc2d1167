//! An API server that lists and watches EndpointSlices, by hyper. Each request waits until the test responds to it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::channel::{Channel, Sender};
use http_body_util::{Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use thalweg::channel::Resolver;
use thalweg_kubernetes::{ApiServer, Backoff, KubernetesResolver};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// The API server.
pub(crate) struct Api {
    pub(crate) address: SocketAddr,
    requests: mpsc::UnboundedReceiver<Asked>,
}

/// A request that waits for its response.
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) authorization: Option<String>,
    /// Number of its connection.
    pub(crate) connection: usize,
    respond: oneshot::Sender<Response<Body>>,
}

/// A running watch.
pub(crate) struct Watch(Sender<Bytes, std::io::Error>);

type Body = Either<Full<Bytes>, Channel<Bytes, std::io::Error>>;

/// Time for anything to happen.
const PATIENCE: Duration = Duration::from_secs(20);

impl Api {
    pub(crate) async fn start() -> Self {
        Self::listen(None).await
    }

    pub(crate) async fn listen(tls: Option<Arc<tokio_rustls::rustls::ServerConfig>>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let (sender, requests) = mpsc::unbounded_channel();
        let tls = tls.map(TlsAcceptor::from);
        tokio::spawn(async move {
            let mut connection = 0;
            while let Ok((io, _)) = listener.accept().await {
                let (tls, sender) = (tls.clone(), sender.clone());
                connection += 1;
                tokio::spawn(async move {
                    match tls {
                        None => serve(io, connection, sender).await,
                        Some(tls) => {
                            if let Ok(io) = tls.accept(io).await {
                                serve(io, connection, sender).await;
                            }
                        }
                    }
                });
            }
        });
        Self { address, requests }
    }

    /// Describes the server, with delays of 10 ms between requests.
    pub(crate) fn settings(&self) -> ApiServer {
        let backoff = Backoff::default().base_delay(Duration::from_millis(10)).multiplier(1.0);
        ApiServer::new(format!("http://{}", self.address)).token("secret").backoff(backoff)
    }

    pub(crate) fn resolver(&self, target: &str) -> KubernetesResolver {
        KubernetesResolver::with_api_server(target, self.settings()).expect("a valid target")
    }

    pub(crate) async fn request(&mut self) -> Asked {
        timeout(PATIENCE, self.requests.recv()).await.expect("a request").expect("the server runs")
    }

    /// Returns whether another request arrives within this time.
    pub(crate) async fn is_asked_within(&mut self, time: Duration) -> bool {
        timeout(time, self.requests.recv()).await.is_ok()
    }

    /// Responds to a list, and returns the watch that follows it.
    pub(crate) async fn list_and_watch(&mut self, version: &str, slices: &[String]) -> Watch {
        self.request().await.list(version, slices);
        self.watch(version).await
    }

    /// Accepts a watch, which must start at this version.
    pub(crate) async fn watch(&mut self, version: &str) -> Watch {
        let request = self.request().await;
        assert!(request.query.contains("&watch=true"), "{}", request.query);
        assert!(request.query.contains(&format!("&resourceVersion={version}&")), "{}", request.query);
        request.watch()
    }
}

async fn serve(
    io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    connection: usize,
    sender: mpsc::UnboundedSender<Asked>,
) {
    let respond = service_fn(move |request: Request<Incoming>| {
        let sender = sender.clone();
        async move {
            let (respond, response) = oneshot::channel();
            let authorization = request.headers().get("authorization");
            let authorization = authorization.map(|value| value.to_str().expect("text").to_owned());
            let query = request.uri().query().unwrap_or_default().to_owned();
            let path = request.uri().path().to_owned();
            let asked = Asked { path, query, authorization, connection, respond };
            sender.send(asked).map_err(|_| std::io::Error::other("the test has ended"))?;
            response.await.map_err(std::io::Error::other)
        }
    });
    let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    let _ = builder.serve_connection(TokioIo::new(io), respond).await;
}

impl Asked {
    pub(crate) fn list(self, version: &str, slices: &[String]) {
        let items = slices.join(",");
        let text = format!(
            r#"{{"kind": "EndpointSliceList", "metadata": {{"resourceVersion": "{version}"}}, "items": [{items}]}}"#
        );
        self.respond(200, text);
    }

    pub(crate) fn respond(self, status: u16, body: impl Into<Bytes>) {
        let response = Response::builder().status(status).header("retry-after", "0");
        let body = Either::Left(Full::new(body.into()));
        let _ = self.respond.send(response.body(body).expect("a response"));
    }

    /// Responds with an error of the API.
    pub(crate) fn fail(self, code: u16, message: &str) {
        self.respond(code, status(code, message));
    }

    pub(crate) fn watch(self) -> Watch {
        let (sender, body) = Channel::new(8);
        let _ = self.respond.send(Response::new(Either::Right(body)));
        Watch(sender)
    }
}

impl Watch {
    pub(crate) async fn event(&mut self, kind: &str, object: &str) {
        self.send(format!("{}\n", event(kind, object))).await;
    }

    pub(crate) async fn send(&mut self, text: impl Into<Bytes>) {
        self.0.send_data(text.into()).await.expect("the watch is read");
    }

    /// Waits until the client has closed the watch.
    pub(crate) async fn closed(&mut self) {
        let closed = async { while self.0.send_data(Bytes::from_static(b"\n")).await.is_ok() {} };
        timeout(PATIENCE, closed).await.expect("the client ends the watch");
    }

    /// Resets the stream.
    pub(crate) fn abort(self) {
        self.0.abort(std::io::Error::other("cut"));
    }
}

pub(crate) fn event(kind: &str, object: &str) -> String {
    format!(r#"{{"type": "{kind}", "object": {object}}}"#)
}

pub(crate) fn status(code: u16, message: &str) -> String {
    format!(r#"{{"kind": "Status", "status": "Failure", "code": {code}, "message": "{message}"}}"#)
}

/// Returns a slice of ready pods.
pub(crate) fn slice(name: &str, version: &str, addresses: &[SocketAddr]) -> String {
    let pod = |address: &SocketAddr| {
        format!(r#"{{"addresses": ["{}"], "conditions": {{"ready": true}}}}"#, address.ip())
    };
    let pods: Vec<String> = addresses.iter().map(pod).collect();
    let port = addresses.first().map_or(1, SocketAddr::port);
    format!(
        r#"{{"metadata": {{"name": "{name}", "resourceVersion": "{version}"}}, "addressType": "IPv4",
            "endpoints": [{}], "ports": [{{"name": "grpc", "port": {port}, "protocol": "TCP"}}]}}"#,
        pods.join(",")
    )
    .replace('\n', " ")
}

pub(crate) fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
    texts.iter().map(|text| text.parse().expect("an address")).collect()
}

/// The resolver's servers, each change of which is waited for.
pub(crate) struct Seen<'a> {
    resolver: &'a KubernetesResolver,
    version: u64,
}

impl<'a> Seen<'a> {
    pub(crate) fn new(resolver: &'a KubernetesResolver) -> Self {
        Self { resolver, version: 0 }
    }

    /// Checks the servers after the next change.
    pub(crate) async fn next(&mut self, expected: &[&str]) {
        timeout(PATIENCE, self.resolver.changed(self.version)).await.expect("a change");
        self.check(expected).await;
    }

    /// Returns the version of the servers last checked.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Waits until the servers have another version.
    pub(crate) async fn wait(&mut self) {
        timeout(PATIENCE, self.resolver.changed(self.version)).await.expect("a change");
        self.version = self.resolver.resolve().await.expect("a list").version;
    }

    /// Checks the servers.
    pub(crate) async fn check(&mut self, expected: &[&str]) {
        let resolution = timeout(PATIENCE, self.resolver.resolve()).await.expect("a resolution");
        let resolution = resolution.expect("a list");
        let found = resolution.endpoints.iter().map(|endpoint| endpoint.name().to_string());
        assert_eq!(found.collect::<Vec<_>>(), expected);
        self.version = resolution.version;
    }
}
