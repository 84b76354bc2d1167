//! An outgoing call: its request, and the decoding of the response.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use http::{HeaderMap, Request, StatusCode};
use thalweg_engine::{CallOptions, Method, RequestAccounting, Status, request_timeout};

use super::protocol::Protocol;
use super::request_body::{MessageBody, MessageEncoder, check_size};
use super::responses::Responses;
use super::transport::Transport;
use crate::body::Body;
use crate::compression::Compression;
use crate::connect;
use crate::deadline::Deadline;
use crate::envelope::{END_SIZE_MAX, PREFIX_LEN};
use crate::grpc_web::{self, ContentType};

/// Maximum URL length of a GET call, in bytes; intermediaries may refuse longer URLs.
const URL_LEN_MAX: usize = 8 * 1024;

/// A client's protocol, transport and options.
#[derive(Clone, Debug)]
pub(super) struct ClientConfig {
    pub(super) protocol: Protocol,
    pub(super) transport: Transport,
    pub(super) uses_get: bool,
}

/// Response of a successful unary call.
#[derive(Clone, Debug)]
pub struct UnaryResponse {
    /// The leading metadata.
    pub metadata: HeaderMap,
    /// The message.
    pub message: Bytes,
    /// The trailing metadata.
    pub trailers: HeaderMap,
}

pub(super) struct OutgoingCall<'a> {
    config: &'a ClientConfig,
    method: &'a Method,
    metadata: &'a HeaderMap,
    options: &'a CallOptions,
    codec: &'static str,
    compression: Compression,
    timeout: Option<Duration>,
    pub(super) deadline: Deadline,
}

impl<'a> OutgoingCall<'a> {
    pub(super) fn new(
        config: &'a ClientConfig,
        method: &'a Method,
        metadata: &'a HeaderMap,
        options: &'a CallOptions,
    ) -> Result<Self, Status> {
        let timeout = options.timeout_of(request_timeout(metadata)?);
        let compression = Compression {
            encoding: options.send_compressed.unwrap_or_default(),
            threshold: options.compression_threshold,
        };
        Ok(Self {
            config,
            method,
            metadata,
            options,
            codec: if method.content_subtype().is_empty() { "proto" } else { method.content_subtype() },
            compression,
            timeout,
            deadline: Deadline::after(timeout),
        })
    }

    pub(super) async fn unary(&self, message: Bytes) -> Result<UnaryResponse, Status> {
        match self.config.protocol {
            Protocol::Connect => self.connect_unary(message).await,
            Protocol::GrpcWeb | Protocol::GrpcWebText => {
                let (request, encoder) = self.request_head()?;
                let mut body = Vec::with_capacity(PREFIX_LEN + message.len());
                encoder.encode(&message, &mut body)?;
                let (metadata, mut responses) = self.send(request.map(|()| Body::full(body))).await?;
                let (message, trailers) = responses.only(&metadata).await?;
                Ok(UnaryResponse { metadata, message, trailers })
            }
        }
    }

    async fn connect_unary(&self, message: Bytes) -> Result<UnaryResponse, Status> {
        check_size(message.len(), self.options.max_encoding_message_size)?;
        let size_max = self.options.max_decoding_message_size;
        let request = self.unary_request(&message)?;
        drop(message);
        let (head, body) = self.config.transport.send(request, self.options).await?.into_parts();
        let read = |body| {
            let accepts = self.options.accept_compressed;
            connect::UnaryResponse::read(head.status, &head.headers, body, self.codec, accepts, size_max)
        };
        let response = if head.status == StatusCode::OK {
            match body.collect_bytes(size_max, &mut RequestAccounting::default()).await {
                Ok(body) => read(body)?,
                // A response that is not Connect is reported as such, even if it is too long.
                Err(status) => return Err(read(Bytes::new()).err().unwrap_or(status)),
            }
        } else {
            // For error pages that are not Connect the headers suffice.
            read(
                body.collect_bytes(END_SIZE_MAX, &mut RequestAccounting::default()).await.unwrap_or_default(),
            )?
        };
        let connect::UnaryResponse { metadata, trailers, message } = response;
        Ok(UnaryResponse { metadata, message, trailers })
    }

    fn unary_request(&self, message: &Bytes) -> Result<Request<Body>, Status> {
        let call = self.connect_call();
        if self.config.uses_get && !self.method.has_side_effects() && message.len() <= URL_LEN_MAX {
            let request = call.get(message)?;
            if request.uri().path_and_query().is_some_and(|url| url.as_str().len() <= URL_LEN_MAX) {
                return Ok(request.map(|()| Body::empty()));
            }
        }
        Ok(call.post(message)?.map(Body::full))
    }

    pub(super) async fn stream<S>(&self, requests: S) -> Result<(HeaderMap, Responses), Status>
    where
        S: Stream<Item = Result<Bytes, Status>> + Send + 'static,
    {
        let (request, encoder) = self.request_head()?;
        let requests: Pin<Box<dyn Stream<Item = Result<Bytes, Status>> + Send>> = Box::pin(requests);
        self.send(request.map(|()| Body::streaming(MessageBody::new(requests, encoder)))).await
    }

    /// Returns the request headers of an enveloped call, and the message encoder.
    fn request_head(&self) -> Result<(Request<()>, MessageEncoder), Status> {
        let (request, is_text) = match self.config.protocol {
            Protocol::Connect => (self.connect_call().stream()?, false),
            Protocol::GrpcWeb => (self.grpc_web_call(false).head()?, false),
            Protocol::GrpcWebText => (self.grpc_web_call(true).head()?, true),
        };
        let (compression, size_max) = (self.compression, self.options.max_encoding_message_size);
        Ok((request, MessageEncoder { compression, is_text, size_max }))
    }

    async fn send(&self, request: Request<Body>) -> Result<(HeaderMap, Responses), Status> {
        let (head, body) = self.config.transport.send(request, self.options).await?.into_parts();
        let (accepts, size_max) = (self.options.accept_compressed, self.options.max_decoding_message_size);
        let read_response = match self.config.protocol {
            Protocol::Connect => connect::read_response,
            Protocol::GrpcWeb | Protocol::GrpcWebText => grpc_web::read_response,
        };
        let (metadata, reader) = read_response(head.status, &head.headers, self.codec, accepts, size_max)?;
        Ok((metadata, Responses::new(body, reader, self.deadline)))
    }

    fn connect_call(&self) -> connect::Call<'_> {
        connect::Call {
            path: self.method.path(),
            codec: self.codec,
            timeout: self.timeout,
            compression: self.compression,
            accepts: self.options.accept_compressed,
            metadata: self.metadata,
        }
    }

    fn grpc_web_call(&self, is_text: bool) -> grpc_web::Call<'_> {
        grpc_web::Call {
            path: self.method.path(),
            content_type: ContentType { is_text, codec: self.codec },
            timeout: self.timeout,
            compression: self.compression,
            accepts: self.options.accept_compressed,
            metadata: self.metadata,
        }
    }
}
