//! A client and a server of the shape that `tonic-build` generates: that it compiles is most of the test.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BufMut};
use http::uri::PathAndQuery;

use crate::tonic::codec::{Codec, CompressionEncoding, DecodeBuf, Decoder, EncodeBuf, Encoder};
use crate::tonic::codegen::{BoxStream, StdError, tokio_stream};
use crate::tonic::service::{LayerExt as _, Routes, interceptor};
use crate::tonic::transport::{Channel, Endpoint, Server};
use crate::tonic::{self, Request, Response, Status, Streaming};

/// Messages are texts.
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

/// The client upon the server, without a transport between them.
#[tokio::test]
async fn stubs_of_tonics_shape_fit_each_other() {
    let routes = Routes::new(GreeterServer::new(Polite)).prepare();
    let mut client = GreeterClient::new(routes.clone());
    assert_eq!(client.greet("Ada".to_owned()).await.unwrap().into_inner(), "Hello Ada");
    let texts = tokio_stream::iter(["a".to_owned(), "b".to_owned()]);
    let mut replies = client.chat(texts).await.unwrap().into_inner();
    assert_eq!(replies.message().await.unwrap().as_deref(), Some("a"));
    assert_eq!(replies.message().await.unwrap().as_deref(), Some("b"));
    assert_eq!(replies.message().await.unwrap(), None);
    let name = |mut request: Request<()>| {
        request.metadata_mut().insert("from", "Bob".parse().unwrap());
        Ok(request)
    };
    let mut named = GreeterClient::new(interceptor::InterceptedService::new(routes, name));
    let reply = named.greet(Request::new("Ada".to_owned())).await.unwrap().into_inner();
    assert_eq!(reply, "Hello Ada, from \"Bob\"");
}

/// What programs write, whether or not it carries calls.
#[tokio::test]
async fn servers_and_channels_take_the_stubs() {
    let refuse = |_: Request<()>| Err(Status::permission_denied("nobody"));
    let layer = tower::layer::util::Identity::new();
    let mut server = Server::builder()
        .timeout(Duration::from_secs(1))
        .concurrency_limit_per_connection(8)
        .layer(tonic::service::InterceptorLayer::new(|request: Request<()>| Ok(request)));
    server.add_optional_service(Some(layer.named_layer(GreeterServer::new(Polite))));
    server.add_routes(Routes::default()).add_optional_service(None::<GreeterServer<Polite>>);
    let router = server.add_service(GreeterServer::with_interceptor(Polite, refuse));
    let serving = router.serve_with_shutdown("127.0.0.1:0".parse().unwrap(), std::future::ready(()));
    assert!(serving.await.is_err(), "it does not carry calls yet");
    let channel = Endpoint::from_static("http://127.0.0.1:1").concurrency_limit(1).connect_lazy();
    let mut client = GreeterClient::new(channel.clone()).send_compressed(CompressionEncoding::Gzip);
    assert_eq!(client.greet("Ada".to_owned()).await.unwrap_err().code(), tonic::Code::Unimplemented);
    assert!(GreeterClient::connect("http://127.0.0.1:1").await.is_err());
    let both = Channel::balance_list([Endpoint::from_static("http://127.0.0.1:1")].into_iter());
    let called = GreeterClient::new(both).greet("Ada".to_owned()).await;
    assert_eq!(called.unwrap_err().code(), tonic::Code::Unimplemented);
}
