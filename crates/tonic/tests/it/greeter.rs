//! A client and a server like those that `tonic-build` generates; most of the test is that they compile.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BufMut};
use http::uri::PathAndQuery;

use crate::tonic::codec::{Codec, CompressionEncoding, DecodeBuf, Decoder, EncodeBuf, Encoder};
use crate::tonic::codegen::{BoxStream, StdError, tokio_stream};
use crate::tonic::service::{LayerExt as _, Routes, interceptor};
use crate::tonic::transport::server::TcpIncoming;
use crate::tonic::transport::{Channel, Endpoint, Server};
use crate::tonic::{self, Code, Request, Response, Status, Streaming};

/// A codec for text messages.
#[derive(Clone, Copy, Default)]
struct Texts;

impl Codec for Texts {
    type Encode = String;
    type Decode = String;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Texts {
    type Item = String;
    type Error = Status;

    fn encode(&mut self, text: String, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put_slice(text.as_bytes());
        Ok(())
    }
}

impl Decoder for Texts {
    type Item = String;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<String>, Status> {
        let bytes = buffer.copy_to_bytes(buffer.remaining());
        String::from_utf8(bytes.into()).map(Some).map_err(|error| Status::internal(error.to_string()))
    }
}

#[tonic::async_trait]
trait Greeter: Send + Sync + 'static {
    async fn greet(&self, request: Request<String>) -> Result<Response<String>, Status>;
    async fn chat(&self, request: Request<Streaming<String>>) -> Result<Response<BoxStream<String>>, Status>;
}

#[derive(Clone)]
struct GreeterServer<T> {
    greeter: Arc<T>,
}

impl<T: Greeter> GreeterServer<T> {
    fn new(greeter: T) -> Self {
        Self { greeter: Arc::new(greeter) }
    }

    fn with_interceptor<I: tonic::service::Interceptor>(
        greeter: T,
        interceptor: I,
    ) -> tonic::codegen::InterceptedService<Self, I> {
        tonic::codegen::InterceptedService::new(Self::new(greeter), interceptor)
    }
}

impl<T> tonic::server::NamedService for GreeterServer<T> {
    const NAME: &'static str = "test.Greeter";
}

impl<T, B> tonic::codegen::Service<http::Request<B>> for GreeterServer<T>
where
    T: Greeter,
    B: tonic::codegen::Body + Send + 'static,
    B::Error: Into<StdError> + Send + 'static,
{
    type Response = http::Response<tonic::body::Body>;
    type Error = std::convert::Infallible;
    type Future = tonic::codegen::BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(
        &mut self,
        _: &mut tonic::codegen::Context<'_>,
    ) -> tonic::codegen::Poll<Result<(), Self::Error>> {
        tonic::codegen::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        struct Greet<T>(Arc<T>);
        impl<T: Greeter> tonic::server::UnaryService<String> for Greet<T> {
            type Response = String;
            type Future = tonic::codegen::BoxFuture<Response<String>, Status>;
            fn call(&mut self, request: Request<String>) -> Self::Future {
                let greeter = Arc::clone(&self.0);
                Box::pin(async move { greeter.greet(request).await })
            }
        }
        struct Chat<T>(Arc<T>);
        impl<T: Greeter> tonic::server::StreamingService<String> for Chat<T> {
            type Response = String;
            type ResponseStream = BoxStream<String>;
            type Future = tonic::codegen::BoxFuture<Response<BoxStream<String>>, Status>;
            fn call(&mut self, request: Request<Streaming<String>>) -> Self::Future {
                let greeter = Arc::clone(&self.0);
                Box::pin(async move { greeter.chat(request).await })
            }
        }
        let greeter = Arc::clone(&self.greeter);
        Box::pin(async move {
            let mut grpc = tonic::server::Grpc::new(Texts);
            Ok(match request.uri().path() {
                "/test.Greeter/Greet" => grpc.unary(Greet(greeter), request).await,
                "/test.Greeter/Chat" => grpc.streaming(Chat(greeter), request).await,
                _ => Status::unimplemented("no such method").into_http(),
            })
        })
    }
}

struct GreeterClient<T> {
    grpc: tonic::client::Grpc<T>,
}

impl GreeterClient<Channel> {
    async fn connect<D>(dst: D) -> Result<Self, tonic::transport::Error>
    where
        D: TryInto<Endpoint>,
        D::Error: Into<StdError>,
    {
        Ok(Self::new(Endpoint::new(dst)?.connect().await?))
    }
}

impl<T> GreeterClient<T>
where
    T: tonic::client::GrpcService<tonic::body::Body>,
    T::Error: Into<StdError>,
    T::ResponseBody: tonic::codegen::Body<Data = tonic::codegen::Bytes> + Send + 'static,
    <T::ResponseBody as tonic::codegen::Body>::Error: Into<StdError> + Send,
{
    fn new(service: T) -> Self {
        Self { grpc: tonic::client::Grpc::new(service) }
    }

    fn send_compressed(mut self, encoding: CompressionEncoding) -> Self {
        self.grpc = self.grpc.send_compressed(encoding);
        self
    }

    async fn greet(&mut self, request: impl tonic::IntoRequest<String>) -> Result<Response<String>, Status> {
        self.grpc.ready().await.map_err(|error| Status::unknown(error.into().to_string()))?;
        let mut request = request.into_request();
        request.extensions_mut().insert(tonic::GrpcMethod::new("test.Greeter", "Greet"));
        self.grpc.unary(request, PathAndQuery::from_static("/test.Greeter/Greet"), Texts).await
    }

    async fn chat(
        &mut self,
        request: impl tonic::IntoStreamingRequest<Message = String>,
    ) -> Result<Response<Streaming<String>>, Status> {
        self.grpc.ready().await.map_err(|error| Status::unknown(error.into().to_string()))?;
        let request = request.into_streaming_request();
        self.grpc.streaming(request, PathAndQuery::from_static("/test.Greeter/Chat"), Texts).await
    }
}

#[derive(Clone)]
struct Polite;

#[tonic::async_trait]
impl Greeter for Polite {
    async fn greet(&self, request: Request<String>) -> Result<Response<String>, Status> {
        let from = request.metadata().get("from").map(|from| format!(", from {from:?}"));
        Ok(Response::new(format!("Hello {}{}", request.into_inner(), from.unwrap_or_default())))
    }

    async fn chat(&self, request: Request<Streaming<String>>) -> Result<Response<BoxStream<String>>, Status> {
        Ok(Response::new(Box::pin(request.into_inner())))
    }
}

/// The client calls the server directly, without a transport.
#[tokio::test]
async fn client_and_server_stubs_work_together() {
    let routes = Routes::new(GreeterServer::new(Polite)).prepare();
    let mut client = GreeterClient::new(routes.clone());
    assert_eq!(client.greet("Ada".to_owned()).await.unwrap().into_inner(), "Hello Ada");
    let texts = tokio_stream::iter(["a".to_owned(), "b".to_owned()]);
    let mut responses = client.chat(texts).await.unwrap().into_inner();
    assert_eq!(responses.message().await.unwrap().as_deref(), Some("a"));
    assert_eq!(responses.message().await.unwrap().as_deref(), Some("b"));
    assert_eq!(responses.message().await.unwrap(), None);
    let name = |mut request: Request<()>| {
        request.metadata_mut().insert("from", "Bob".parse().unwrap());
        Ok(request)
    };
    let mut named = GreeterClient::new(interceptor::InterceptedService::new(routes, name));
    let response = named.greet(Request::new("Ada".to_owned())).await.unwrap().into_inner();
    assert_eq!(response, "Hello Ada, from \"Bob\"");
}

/// A server with typical layers, and clients over all kinds of channels.
#[tokio::test]
async fn server_and_channel_accept_stubs() {
    let strangers = |request: Request<()>| match request.metadata().get("from") {
        Some(_) => Ok(request),
        None => Err(Status::permission_denied("say who you are")),
    };
    let layer = tower::layer::util::Identity::new();
    let mut server = Server::builder()
        .timeout(Duration::from_secs(60))
        .concurrency_limit_per_connection(8)
        .layer(tonic::service::InterceptorLayer::new(|request: Request<()>| Ok(request)));
    server.add_optional_service(Some(layer.named_layer(GreeterServer::new(Polite))));
    server.add_routes(Routes::default()).add_optional_service(None::<GreeterServer<Polite>>);
    let router = server.add_service(GreeterServer::with_interceptor(Polite, strangers));
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let uri = format!("http://{}", incoming.local_addr().unwrap());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(router.serve_with_incoming_shutdown(incoming, async { _ = stopped.await }));

    let endpoint = Endpoint::from_shared(uri).unwrap().concurrency_limit(1);
    let named = |text: &str| {
        let mut request = Request::new(text.to_owned());
        request.metadata_mut().insert("from", "Bob".parse().unwrap());
        request
    };
    for channel in [
        endpoint.connect().await.unwrap(),
        endpoint.connect_lazy(),
        Channel::balance_list([endpoint.clone(), endpoint.clone()].into_iter()),
    ] {
        let mut client = GreeterClient::new(channel);
        let response = client.greet(named("Ada")).await.unwrap().into_inner();
        assert_eq!(response, "Hello Ada, from \"Bob\"");
        let refused = client.greet("Ada".to_owned()).await.unwrap_err();
        assert_eq!((refused.code(), refused.message()), (Code::PermissionDenied, "say who you are"));
        let texts = (0..100).map(|n| n.to_string().repeat(n));
        let mut request = Request::new(tokio_stream::iter(texts.clone().collect::<Vec<_>>()));
        request.metadata_mut().insert("from", "Bob".parse().unwrap());
        let mut responses = client.chat(request).await.unwrap().into_inner();
        for text in texts {
            assert_eq!(responses.message().await.unwrap(), Some(text));
        }
        assert_eq!(responses.message().await.unwrap(), None);
        // The server is not configured to accept it.
        let mut compresses = client.send_compressed(CompressionEncoding::Gzip);
        assert_eq!(compresses.greet(named("Ada")).await.unwrap_err().code(), Code::Unimplemented);
    }
    stop.send(()).unwrap();
    serving.await.unwrap().unwrap();
    assert!(GreeterClient::connect(endpoint).await.is_err());
}

/// Like OpenTelemetry's exporters, whose threads have no runtime.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn thread_without_runtime_can_call() {
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let uri = format!("http://{}", incoming.local_addr().unwrap());
    let router = Server::builder().add_service(GreeterServer::new(Polite));
    let serving = tokio::spawn(router.serve_with_incoming(incoming));
    let channel = Endpoint::from_shared(uri).unwrap().timeout(Duration::from_secs(60)).connect_lazy();
    let calling = std::thread::spawn(move || {
        block_on(async {
            let mut client = GreeterClient::new(channel.clone());
            let response = client.greet("Ada".to_owned()).await.unwrap().into_inner();
            let mut responses = client.chat(tokio_stream::iter(["a".to_owned()])).await.unwrap().into_inner();
            let first = responses.message().await.unwrap();
            // A call of one of tonic's own clients.
            let mut request = http::Request::new(::vocabulary::body::Body::empty());
            *request.uri_mut() = http::Uri::from_static("/test.Greeter/Nothing");
            let other = tower::ServiceExt::oneshot(channel, request).await.unwrap();
            (response, first, other.headers()["grpc-status"].clone())
        })
    });
    let (response, first, other) = tokio::task::spawn_blocking(|| calling.join().unwrap()).await.unwrap();
    assert_eq!((response.as_str(), first.as_deref()), ("Hello Ada", Some("a")));
    assert_eq!(other, "12");
    serving.abort();
}

/// Blocks this thread without tokio.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut cx = std::task::Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut cx) {
            std::task::Poll::Ready(output) => return output,
            std::task::Poll::Pending => std::thread::park(),
        }
    }
}
