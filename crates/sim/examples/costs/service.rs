//! The called service: one method of each kind, each doing almost nothing.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use thalweg::outbound::Responses;
use thalweg::server::{Methods, Service};
use thalweg::{Method, Request, Response, ServiceOptions, Status, Stream, Streaming, prost};

pub(crate) static UNARY: Method = Method::new("/costs.Script/Unary");
pub(crate) static CLIENT_STREAMING: Method = Method::new("/costs.Script/ClientStreaming");
pub(crate) static SERVER_STREAMING: Method = Method::new("/costs.Script/ServerStreaming");
pub(crate) static BIDI: Method = Method::new("/costs.Script/Bidi");
pub(crate) static SERVER_STREAMING_ORDINARY: Method = Method::new("/costs.Script/ServerStreamingOrdinary");
pub(crate) static BIDI_ORDINARY: Method = Method::new("/costs.Script/BidiOrdinary");
pub(crate) static CLIENT_STREAMING_IN_PLACE: Method = Method::new("/costs.Script/ClientStreamingInPlace");
pub(crate) static SERVER_STREAMING_IN_PLACE: Method = Method::new("/costs.Script/ServerStreamingInPlace");
pub(crate) static BIDI_IN_PLACE: Method = Method::new("/costs.Script/BidiInPlace");

/// The only message type.
#[derive(Clone, PartialEq, prost::Message)]
#[prost(prost_path = "prost")]
pub(crate) struct Payload {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) body: Bytes,
    /// Number of messages requested or received.
    #[prost(uint64, tag = "2")]
    pub(crate) count: u64,
}

impl Payload {
    pub(crate) fn new(body_bytes: usize) -> Self {
        Self { body: Bytes::from(vec![7; body_bytes]), count: 0 }
    }
}

/// A client's requests: the same message repeated.
pub(crate) struct Repeat {
    message: Payload,
    left: usize,
}

impl Repeat {
    pub(crate) fn new(message: Payload, count: usize) -> Self {
        Self { message, left: count }
    }
}

impl Iterator for Repeat {
    type Item = Payload;

    fn next(&mut self) -> Option<Payload> {
        self.left = self.left.checked_sub(1)?;
        Some(self.message.clone())
    }
}

impl Stream for Repeat {
    type Item = Payload;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Payload>> {
        Poll::Ready(self.next())
    }
}

/// The same as a server's responses.
struct RepeatResponses(Repeat);

impl Stream for RepeatResponses {
    type Item = Result<Payload, Status>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.next().map(Ok))
    }
}

/// Yields after every 32 messages of a stream.
pub(crate) struct Yielding<S> {
    stream: S,
    until_yield: u8,
}

const MESSAGES_PER_YIELD: u8 = 32;

impl<S> Yielding<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, until_yield: MESSAGES_PER_YIELD }
    }
}

impl<S: Stream + Unpin> Stream for Yielding<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        if self.until_yield == 0 {
            self.until_yield = MESSAGES_PER_YIELD;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.until_yield -= 1;
        Pin::new(&mut self.stream).poll_next(cx)
    }
}

/// Reads to the end and returns the number of messages.
pub(crate) async fn count(mut messages: Streaming<Payload>) -> Result<u64, Status> {
    let mut count = 0;
    while messages.message().await?.is_some() {
        count += 1;
    }
    Ok(count)
}

/// Like [`count`], reading each message into the same value.
pub(crate) async fn count_in_place(mut messages: Streaming<Payload>) -> Result<u64, Status> {
    let (mut message, mut count) = (Payload::default(), 0);
    while messages.message_into(&mut message).await? {
        count += 1;
    }
    Ok(count)
}

/// Echoes the requests, each read into and sent from the same value.
fn echo_in_place(mut requests: Streaming<Payload>) -> Responses<Payload> {
    let mut message = Payload::default();
    Responses::new(move |cx, pack| {
        while !pack.is_full() {
            match requests.poll_message_into(cx, &mut message) {
                Poll::Ready(Ok(true)) => pack.push(&message),
                Poll::Ready(ended) => return Poll::Ready(ended.map(drop)),
                Poll::Pending => return Poll::Pending,
            };
        }
        Poll::Pending
    })
}

/// Responds at once with the request.
pub(crate) struct Script;

impl Service for Script {
    const NAME: &'static str = "costs.Script";

    fn register(self, methods: &mut Methods<'_>) {
        let (service, options) = (Arc::new(self), ServiceOptions::default());
        methods.unary("Unary", &service, &options, |_, request: Request<Payload>| async {
            Ok(Response::new(request.into_inner()))
        });
        methods.client_streaming("ClientStreaming", &service, &options, |_, requests: Request<_>| async {
            Ok(Response::new(Payload { count: count(requests.into_inner()).await?, ..Payload::default() }))
        });
        methods.server_streaming(
            "ServerStreaming",
            &service,
            &options,
            |_, request: Request<Payload>| async {
                let Payload { body, count } = request.into_inner();
                Ok(Response::new(RepeatResponses(Repeat::new(Payload { body, count: 0 }, count as usize))))
            },
        );
        methods.bidi_streaming(
            "Bidi",
            &service,
            &options,
            |_, requests: Request<Streaming<Payload>>| async { Ok(Response::new(requests.into_inner())) },
        );
        register_ordinary(methods, &service, &options);
        register_in_place(methods, &service, &options);
    }
}

/// Registers the same methods with responses that yield.
fn register_ordinary(methods: &mut Methods<'_>, service: &Arc<Script>, options: &ServiceOptions) {
    methods.server_streaming(
        "ServerStreamingOrdinary",
        service,
        options,
        |_, request: Request<Payload>| async {
            let Payload { body, count } = request.into_inner();
            let responses = RepeatResponses(Repeat::new(Payload { body, count: 0 }, count as usize));
            Ok(Response::new(Yielding::new(responses)))
        },
    );
    methods.bidi_streaming(
        "BidiOrdinary",
        service,
        options,
        |_, requests: Request<Streaming<Payload>>| async {
            Ok(Response::new(Yielding::new(requests.into_inner())))
        },
    );
}

/// Registers the same methods without moving messages.
fn register_in_place(methods: &mut Methods<'_>, service: &Arc<Script>, options: &ServiceOptions) {
    methods.client_streaming("ClientStreamingInPlace", service, options, |_, requests: Request<_>| async {
        let count = count_in_place(requests.into_inner()).await?;
        Ok(Response::new(Payload { count, ..Payload::default() }))
    });
    methods.server_streaming(
        "ServerStreamingInPlace",
        service,
        options,
        |_, request: Request<Payload>| async {
            let Payload { body, count } = request.into_inner();
            Ok(Response::new(Responses::repeat(Payload { body, count: 0 }, count)))
        },
    );
    methods.bidi_streaming(
        "BidiInPlace",
        service,
        options,
        |_, requests: Request<Streaming<Payload>>| async {
            Ok(Response::new(echo_in_place(requests.into_inner())))
        },
    );
}
