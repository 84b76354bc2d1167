//! A channel's calls over protocols other than gRPC.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use http::HeaderMap;
use thalweg_core::metadata::MetadataMap;
use thalweg_core::{Extensions, Request, Response, Status};
use thalweg_engine::{
    self as engine, ByteStreams, CallOptions, ChannelConfig, ConnectError, Encode, Method, Payload, Source,
};
use thalweg_web::client::{self, Client, Http1, Http1Options, Streams};

use crate::codec;
use crate::interceptor::CallType;
use crate::message::Message;
use crate::streaming::{MessageSource, Streaming};

/// Protocol of a channel's calls; see [`ChannelBuilder::protocol`](crate::channel::ChannelBuilder::protocol).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Protocol {
    /// gRPC, over HTTP/2.
    #[default]
    Grpc,
    /// [Connect](https://connectrpc.com/docs/protocol); unary calls are plain HTTP requests and responses.
    Connect,
    /// [gRPC-Web](https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md), binary.
    GrpcWeb,
    /// gRPC-Web in Base64, for intermediaries that pass only text.
    GrpcWebText,
}

/// Settings of the web protocols.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WebOptions {
    pub(crate) protocol: Protocol,
    /// `None` for HTTP/2.
    pub(crate) http1: Option<Http1Options>,
    pub(crate) uses_get: bool,
}

impl WebOptions {
    fn protocol(&self) -> Option<client::Protocol> {
        match self.protocol {
            Protocol::Grpc => None,
            Protocol::Connect => Some(client::Protocol::Connect),
            Protocol::GrpcWeb => Some(client::Protocol::GrpcWeb),
            Protocol::GrpcWebText => Some(client::Protocol::GrpcWebText),
        }
    }

    /// Returns the HTTP/1.1 connections, if calls use HTTP/1.1.
    pub(crate) fn http1(&self, target: &str, config: &ChannelConfig) -> Result<Option<Http1>, ConnectError> {
        let Some(options) = self.http1 else { return Ok(None) };
        if self.protocol == Protocol::Grpc {
            return Err(ConnectError::Protocol("gRPC needs HTTP/2; use Connect or gRPC-Web over HTTP/1.1"));
        }
        let streams = ByteStreams::new(target, config)?;
        let authority = streams.authority().to_owned();
        Http1::new(streams, options).map(Some).map_err(|_| ConnectError::Authority(authority))
    }

    /// Returns the client for protocols other than gRPC; `None` for gRPC.
    pub(crate) fn client(&self, engine: &engine::Channel, http1: Option<Http1>) -> Option<Client> {
        let transport =
            http1.map_or_else(|| client::Transport::from(engine.clone()), client::Transport::from);
        Some(Client::new(self.protocol()?, transport).with_get(self.uses_get))
    }
}

pub(crate) async fn unary<Req: Message, Res: Message>(
    client: &Client,
    method: &Method,
    request: Request<Req>,
    options: &CallOptions,
) -> Result<Response<Res>, Status> {
    let (metadata, extensions, message) = request.into_parts();
    let mut options = options.clone();
    if !codec::compresses(&extensions) {
        options.send_compressed = None;
    }
    let wire = wire_of(&codec::OwnedMessage(message));
    let response = client.unary(method, metadata.as_ref(), wire, &options).await?;
    let message = codec::decode(Payload::Owned(response.message))?;
    let mut metadata = response.metadata;
    metadata.extend(response.trailers);
    Ok(Response::from_parts(MetadataMap::from_headers(metadata), message, Extensions::default()))
}

pub(crate) async fn stream<R: Source + Send + 'static>(
    client: &Client,
    method: &Method,
    metadata: &MetadataMap,
    requests: R,
    kind: CallType,
    options: &CallOptions,
) -> Result<(HeaderMap, Box<client::Responses>), Status> {
    let streams = match kind {
        CallType::Unary | CallType::ServerStreaming => Streams::Responses,
        CallType::ClientStreaming => Streams::Requests,
        CallType::BidiStreaming => Streams::Both,
    };
    let opened = client.stream(method, metadata.as_ref(), streams, Encoded(requests), options).await;
    opened.map(|(metadata, responses)| (metadata, Box::new(responses)))
}

pub(crate) async fn only_response<Res: Message>(
    mut responses: Box<client::Responses>,
    headers: &HeaderMap,
) -> Result<(Res, HeaderMap), Status> {
    let (message, trailers) = responses.only(headers).await?;
    Ok((codec::decode(Payload::Owned(message))?, trailers))
}

pub(crate) fn responses<Res: Message>(responses: Box<client::Responses>) -> Streaming<Res> {
    Streaming::from_source(Responses(Some(responses)))
}

/// Encodes a message.
fn wire_of(message: &impl Encode) -> bytes::Bytes {
    let mut wire = Vec::with_capacity(message.encoded_len());
    message.encode(&mut wire);
    wire.into()
}

/// Requests encoded as bytes.
struct Encoded<R>(R);

impl<R, M> Stream for Encoded<R>
where
    R: Stream<Item = Result<M, Status>> + Unpin,
    M: Encode,
{
    type Item = Result<bytes::Bytes, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let message = Pin::new(&mut self.0).poll_next(cx);
        message.map(|message| message.map(|message| message.map(|message| wire_of(&message))))
    }
}

/// Responses of a call; `None` after a message that cannot be decoded.
struct Responses(Option<Box<client::Responses>>);

impl<T: Message> MessageSource<T> for Responses {
    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, Status>>> {
        let Some(responses) = &mut self.0 else { return Poll::Ready(None) };
        Pin::new(&mut **responses).poll_next(cx).map(|message| {
            let decoded = message?.and_then(|message| codec::decode(Payload::Owned(message)));
            Some(decoded.inspect_err(|_| self.0 = None))
        })
    }

    fn take_trailers(&mut self) -> Option<MetadataMap> {
        self.0.as_mut()?.take_trailers().map(MetadataMap::from_headers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::Channel;

    #[test]
    fn grpc_over_http1_is_rejected() {
        let check = |protocol, is_http1, expected: bool| {
            let outcome = Channel::builder("localhost:1").protocol(protocol).http1(is_http1).connect_lazy();
            let is_rejected = matches!(outcome, Err(ConnectError::Protocol(_)));
            assert_eq!(is_rejected, !expected, "{protocol:?}");
        };
        for is_http1 in [false, true] {
            check(Protocol::Grpc, is_http1, !is_http1);
            check(Protocol::Connect, is_http1, true);
            check(Protocol::GrpcWeb, is_http1, true);
            check(Protocol::GrpcWebText, is_http1, true);
        }
    }
}
