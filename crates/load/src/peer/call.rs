//! What a worker calls, and what all calls of a run have in common.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use thalweg::channel::ChannelBuilder;
use thalweg::{CallOptions, Channel, Method, Raw, Request, Status, Streaming};

use super::run::Run;
use crate::echo::{EchoCall, Stages};
use crate::record::{CallType, Handing};
use crate::services::proto::benchmark_service_client::BenchmarkServiceClient;
use crate::services::proto::{Payload, SimpleRequest, SimpleResponse};
use crate::services::{PAYLOAD_BYTES_MAX, zeros};

/// What every worker of a run does.
#[derive(Clone)]
pub(super) struct Call {
    pub(super) channel: Channel,
    /// Further channels, where there are more connections than one can have.
    pub(super) others: Arc<[Channel]>,
    pub(super) client: BenchmarkServiceClient,
    pub(super) kind: CallType,
    /// Bytes of payload in a message.
    pub(super) size: usize,
    /// What each call makes a channel of its own with, if it is to.
    pub(super) afresh: Option<ChannelBuilder>,
    /// The method that is called, where it is not `kind`'s.
    pub(super) method: Option<Arc<RawMethod>>,
    /// The work of the study of gRPC against a JSON API, where that is called.
    pub(super) echo: Option<Arc<EchoCall>>,
    /// How messages of streams go to the stack and come from it.
    pub(super) handing: Handing,
}

/// A unary method of any service, and what it is called with.
#[derive(Debug)]
pub(super) struct RawMethod {
    pub(super) method: Method,
    pub(super) request: Bytes,
}

/// One worker's place: what it has in common with the run and with whoever watches over it.
#[derive(Clone, Debug)]
pub(super) struct Worker {
    pub(super) run: Arc<Run>,
    pub(super) progress: Arc<Progress>,
}

/// Since when a worker has been waiting for what it waits for: ns of the run's clock, 0 when for nothing.
#[derive(Debug, Default)]
pub(super) struct Progress(AtomicU64);

impl Progress {
    #[inline]
    pub(super) fn waits_since(&self, now_ns: u64) {
        self.0.store(now_ns.max(1), Relaxed);
    }

    pub(super) fn rests(&self) {
        self.0.store(0, Relaxed);
    }

    pub(super) fn since_ns(&self) -> Option<u64> {
        Some(self.0.load(Relaxed)).filter(|&since_ns| since_ns > 0)
    }
}

impl Call {
    /// The same on another channel, which connects with the call.
    pub(super) fn on_channel(&self, builder: &ChannelBuilder) -> Result<Self, Status> {
        let channel = builder.clone().connect_lazy().map_err(|error| Status::internal(error.to_string()))?;
        Ok(Self { client: client(&channel), channel, ..self.clone() })
    }

    /// Of this worker: workers take turns at the channels.
    pub(super) fn of_worker(&self, index: usize) -> Self {
        match self.others.get((index % (self.others.len() + 1)).wrapping_sub(1)) {
            Some(channel) => Self { client: client(channel), channel: channel.clone(), ..self.clone() },
            None => self.clone(),
        }
    }

    /// The first call, whose answer is looked at more closely where there is something to be seen.
    pub(super) async fn first(&self) -> Result<(), Status> {
        match &self.echo {
            Some(echo) => echo.first().await,
            None => self.once().await,
        }
    }

    /// One call of whatever is called, on a connection of its own if that is asked for. What its stages took, where it
    /// was divided.
    pub(super) async fn once_otherwise(&self) -> Result<Option<Stages>, Status> {
        match (&self.echo, &self.afresh) {
            (Some(echo), afresh) => echo.once(afresh.is_some()).await,
            (None, Some(builder)) => self.on_channel(builder)?.once().await.map(|()| None),
            (None, None) => self.once().await.map(|()| None),
        }
    }

    /// One unary call.
    async fn once(&self) -> Result<(), Status> {
        match self.method.as_deref() {
            None => {
                let request = Request::new(request(self.size, self.size));
                check_size(self.client.unary_call(request).await?.get_ref(), self.size)
            }
            Some(RawMethod { method, request }) => {
                let (request, options) = (Request::new(Raw(request.clone())), CallOptions::default());
                self.channel.unary::<Raw, Raw>(method, request, &options).await.map(drop)
            }
        }
    }
}

pub(super) fn client(channel: &Channel) -> BenchmarkServiceClient {
    // The server says how large its messages are to be; what it sends is checked against what was asked for.
    BenchmarkServiceClient::new(channel.clone()).max_decoding_message_size(2 * PAYLOAD_BYTES_MAX)
}

/// The replies of a stream, each of which is looked at and done with.
pub(super) struct Replies {
    messages: Streaming<SimpleResponse>,
    handing: Handing,
    size: usize,
    /// The last one, where they are read to one place.
    reply: SimpleResponse,
}

impl Replies {
    pub(super) fn new(messages: Streaming<SimpleResponse>, call: &Call) -> Self {
        Self { messages, handing: call.handing, size: call.size, reply: SimpleResponse::default() }
    }

    /// Reads one. False behind the last.
    #[inline]
    pub(super) async fn next(&mut self) -> Result<bool, Status> {
        if self.handing == Handing::InPlace {
            let is_there = self.messages.message_into(&mut self.reply).await?;
            return if is_there { check_size(&self.reply, self.size).map(|()| true) } else { Ok(false) };
        }
        // Not `?`, which would move the message.
        match &self.messages.message().await {
            Ok(Some(reply)) => check_size(reply, self.size).map(|()| true),
            Ok(None) => Ok(false),
            Err(status) => Err(status.clone()),
        }
    }
}

/// What a reply that is not as large as asked for makes of its call.
pub(super) fn check_size(response: &SimpleResponse, asked: usize) -> Result<(), Status> {
    match response.payload.as_ref().map_or(0, |payload| payload.body.len()) {
        got if got == asked => Ok(()),
        got => Err(Status::data_loss(format!("expected a response of {asked} bytes, got {got}"))),
    }
}

/// A stream that ended with OK while it was still used.
pub(super) fn ended_early() -> Status {
    Status::data_loss("the server ended the stream early")
}

/// A request of `size` bytes that wants `response_size` bytes back. Both without payload: an empty message.
pub fn request(size: usize, response_size: usize) -> SimpleRequest {
    SimpleRequest {
        response_size: i32::try_from(response_size).expect("payloads are bounded by PAYLOAD_BYTES_MAX"),
        payload: payload(size),
        ..SimpleRequest::default()
    }
}

/// So many bytes; none is no payload at all.
pub fn payload(size: usize) -> Option<Payload> {
    (size > 0).then(|| Payload { r#type: 0, body: zeros(size) })
}
