//! Calls of [`client::Grpc`](crate::client::Grpc) to [`Grpc`], without a connection.

use std::convert::Infallible;
use std::future::Future;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::uri::PathAndQuery;
use tokio_stream::StreamExt;
use tower_service::Service;

use super::*;
use crate::codec::testing::BytesCodec;
use crate::{Code, client};

/// Messages are bytes.
#[derive(Clone, Copy, Debug, Default)]
struct TestCodec;

impl Codec for TestCodec {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = BytesCodec;
    type Decoder = BytesCodec;

    fn encoder(&mut self) -> BytesCodec {
        BytesCodec
    }

    fn decoder(&mut self) -> BytesCodec {
        BytesCodec
    }
}

type BoxFuture<T> = std::pin::Pin<Box<dyn Future<Output = T> + Send>>;
type Answer<T> = BoxFuture<Result<Response<T>, Status>>;
type BoxStream = std::pin::Pin<Box<dyn Stream<Item = Result<Bytes, Status>> + Send>>;

/// Handles each type of call, as generated code does.
#[derive(Clone)]
struct Handler;

fn checked(message: &Bytes) -> Result<(), Status> {
    match &message[..] {
        b"fail" => {
            let mut status = Status::with_details(Code::Aborted, "as told", Bytes::from_static(b"why"));
            status.metadata_mut().insert("trailing", "yes".parse().unwrap());
            Err(status)
        }
        _ => Ok(()),
    }
}

impl Service<Request<Bytes>> for Handler {
    type Response = Response<Bytes>;
    type Error = Status;
    type Future = Answer<Bytes>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        Box::pin(async move {
            checked(request.get_ref())?;
            let (metadata, _, message) = request.into_parts();
            let mut response = Response::new(message);
            *response.metadata_mut() = metadata;
            Ok(response)
        })
    }
}

/// Repeats each message once.
#[derive(Clone)]
struct Streams;

impl Service<Request<Streaming<Bytes>>> for Streams {
    type Response = Response<BoxStream>;
    type Error = Status;
    type Future = Answer<BoxStream>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Self::Future {
        Box::pin(async move {
            let echoed = request
                .into_inner()
                .map(|message| message.and_then(|message| checked(&message).map(|()| message)));
            Ok(Response::new(Box::pin(echoed) as BoxStream))
        })
    }
}

/// Joins all messages.
#[derive(Clone)]
struct Joins;

impl Service<Request<Streaming<Bytes>>> for Joins {
    type Response = Response<Bytes>;
    type Error = Status;
    type Future = Answer<Bytes>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Self::Future {
        Box::pin(async move {
            let mut messages = request.into_inner();
            let mut joined = Vec::new();
            while let Some(message) = messages.message().await? {
                checked(&message)?;
                joined.extend(message);
            }
            Ok(Response::new(joined.into()))
        })
    }
}

/// A server's method.
#[derive(Clone, Copy, Default)]
struct Method {
    accepts: EnabledCompressionEncodings,
    sends: EnabledCompressionEncodings,
    size_max: Option<usize>,
}

impl Service<http::Request<Body>> for Method {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Result<http::Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let grpc = Grpc::new(TestCodec).apply_compression_config(self.accepts, self.sends);
        let mut grpc = grpc.apply_max_message_size_config(self.size_max, None);
        Box::pin(async move {
            let head = (request.method().as_str(), request.version(), &request.headers()["te"]);
            assert_eq!(head, ("POST", http::Version::HTTP_2, &HeaderValue::from_static("trailers")));
            Ok(match request.uri().path() {
                "/s/Unary" => grpc.unary(Handler, request).await,
                "/s/Joins" => grpc.client_streaming(Joins, request).await,
                "/s/Streams" => grpc.streaming(Streams, request).await,
                "/proxy/s/Gone" => http::Response::builder().status(503).body(Body::empty()).unwrap(),
                path => Status::unimplemented(path).into_http(),
            })
        })
    }
}

fn client(method: Method) -> client::Grpc<Method> {
    client::Grpc::new(method)
}

fn path(path: &'static str) -> PathAndQuery {
    PathAndQuery::from_static(path)
}

#[tokio::test]
async fn unary_call_has_message_and_metadata() {
    let mut request = Request::new(Bytes::from("text"));
    request.metadata_mut().insert("a", "b".parse().unwrap());
    request.metadata_mut().insert("te", "wrong".parse().unwrap());
    let mut client = client(Method::default());
    client.ready().await.unwrap();
    let response = client.unary(request, path("/s/Unary"), TestCodec).await.unwrap();
    assert_eq!(
        (response.metadata().get("a").unwrap(), &response.get_ref()[..]),
        (&"b".parse().unwrap(), &b"text"[..])
    );
    assert_eq!(response.metadata().get("grpc-status").unwrap(), "0", "trailers are metadata too");
}

#[tokio::test]
async fn failed_call_has_the_handlers_status() {
    let status = client(Method::default())
        .unary(Request::new("fail".into()), path("/s/Unary"), TestCodec)
        .await
        .unwrap_err();
    assert_eq!((status.code(), status.message(), status.details()), (Code::Aborted, "as told", &b"why"[..]));
    assert_eq!(status.metadata().get("trailing").unwrap(), "yes");
    let status = client(Method::default())
        .unary(Request::new("text".into()), path("/s/Other"), TestCodec)
        .await
        .unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Unimplemented, "/s/Other"));
    let origin = "http://host/proxy".parse().unwrap();
    let status = client::Grpc::with_origin(Method::default(), origin)
        .unary(Request::new("text".into()), path("/s/Gone"), TestCodec)
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
}

#[tokio::test]
async fn streams_go_both_ways() {
    let list = |list: Vec<&'static str>| Request::new(tokio_stream::iter(list).map(Bytes::from));
    let response =
        client(Method::default()).client_streaming(list(vec!["a", "b"]), path("/s/Joins"), TestCodec).await;
    assert_eq!(response.unwrap().into_inner(), "ab");
    let response =
        client(Method::default()).streaming(list(vec!["a", "fail"]), path("/s/Streams"), TestCodec).await;
    let mut messages = response.unwrap().into_inner();
    assert_eq!(messages.message().await.unwrap().unwrap(), "a");
    let status = messages.message().await.unwrap_err();
    assert_eq!((status.code(), status.metadata().get("trailing").is_some()), (Code::Aborted, true));
    let single = client(Method::default())
        .server_streaming(Request::new("a".into()), path("/s/Streams"), TestCodec)
        .await;
    assert_eq!(single.unwrap().into_inner().message().await.unwrap().unwrap(), "a");
}

#[tokio::test]
async fn limits_hold_on_each_side() {
    let limited = Method { size_max: Some(3), ..Method::default() };
    let call = |mut client: client::Grpc<Method>| async move {
        client.unary(Request::new("text".into()), path("/s/Unary"), TestCodec).await.unwrap_err()
    };
    assert_eq!(call(client(limited)).await.code(), Code::OutOfRange);
    assert_eq!(call(client(Method::default()).max_decoding_message_size(3)).await.code(), Code::OutOfRange);
    assert_eq!(call(client(Method::default()).max_encoding_message_size(3)).await.code(), Code::OutOfRange);
    let status = client(Method::default())
        .client_streaming(Request::new(tokio_stream::empty::<Bytes>()), path("/s/Unary"), TestCodec)
        .await
        .unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Internal, "the request has no message"));
}

#[cfg(feature = "gzip")]
#[tokio::test]
async fn compression_is_agreed() {
    let gzip = CompressionEncoding::Gzip;
    let mut enabled = EnabledCompressionEncodings::default();
    enabled.enable(gzip);
    let text = || Request::new(Bytes::from("x".repeat(1_000)));
    let both = Method { accepts: enabled, sends: enabled, size_max: None };
    let mut compressing = client(both).send_compressed(gzip).accept_compressed(gzip);
    let response = compressing.unary(text(), path("/s/Unary"), TestCodec).await.unwrap();
    assert_eq!(response.metadata().get("grpc-encoding").unwrap(), "gzip");
    assert_eq!(response.into_inner().len(), 1_000);
    let response = client(both).unary(text(), path("/s/Unary"), TestCodec).await.unwrap();
    assert!(response.metadata().get("grpc-encoding").is_none());
    let refused =
        client(Method::default()).send_compressed(gzip).unary(text(), path("/s/Unary"), TestCodec).await;
    let status = refused.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented);
    assert_eq!(status.metadata().get("grpc-accept-encoding").unwrap(), "identity");
}
