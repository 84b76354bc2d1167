//! One call of any method, of all four kinds, with bytes for messages.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use thalweg::bytes::Bytes;
use thalweg::metadata::MetadataMap;
use thalweg::{CallOptions, Channel, Code, Method, Raw, Request, Status, Stream};

use crate::requests::Requests;
use crate::template::Moment;

/// The four kinds of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// One message each way.
    Unary,
    /// A stream of requests.
    ClientStream,
    /// A stream of responses.
    ServerStream,
    /// Both.
    BidiStream,
}

impl CallKind {
    /// Of a method that streams, or does not, in these directions.
    pub fn of(is_client_streaming: bool, is_server_streaming: bool) -> Self {
        match (is_client_streaming, is_server_streaming) {
            (false, false) => Self::Unary,
            (true, false) => Self::ClientStream,
            (false, true) => Self::ServerStream,
            (true, true) => Self::BidiStream,
        }
    }

    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unary => "unary",
            Self::ClientStream => "client-stream",
            Self::ServerStream => "server-stream",
            Self::BidiStream => "bidi-stream",
        }
    }
}

/// What is called, and with what.
#[derive(Debug)]
pub struct Callee {
    /// Whom it is called at, for the result.
    pub targets: Vec<String>,
    /// Connections that are asked for, of all targets.
    pub connections: u32,
    /// Workers take turns at these.
    pub channels: Vec<Channel>,
    /// Which method.
    pub method: Method,
    /// Of which kind it is.
    pub kind: CallKind,
    /// Sent with each call.
    pub metadata: CallMetadata,
    /// Of each call.
    pub options: CallOptions,
    /// What is sent.
    pub requests: Requests,
}

type MakeMetadata = dyn Fn(&Moment) -> Result<MetadataMap, String> + Send + Sync;

/// The metadata of calls.
pub enum CallMetadata {
    /// The same for all.
    Constant(MetadataMap),
    /// Made for each; or why it cannot be.
    Made(Box<MakeMetadata>),
}

impl fmt::Debug for CallMetadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(metadata) => metadata.fmt(f),
            Self::Made(_) => f.write_str("made"),
        }
    }
}

impl CallMetadata {
    /// Into the request of a call. Nothing is copied where there is none.
    fn put_into<T>(&self, request: &mut Request<T>, number: u64, worker: usize) -> Result<(), Status> {
        match self {
            Self::Constant(metadata) if metadata.is_empty() => {}
            Self::Constant(metadata) => *request.metadata_mut() = metadata.clone(),
            Self::Made(make) => {
                let moment = Moment { request: number, worker: worker as u64, ..Moment::default() };
                *request.metadata_mut() = make(&moment).map_err(|why| not_made(&why))?;
            }
        }
        Ok(())
    }
}

/// A call that could not be begun.
fn not_made(why: &str) -> Status {
    Status::invalid_argument(format!("the request could not be made: {why}"))
}

/// How a call went, but for how long it took.
#[derive(Debug, Default)]
pub(crate) struct Went {
    pub(crate) sent: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) received: u64,
    pub(crate) bytes_received: u64,
    /// Until the first response of a stream was here.
    pub(crate) first_ns: Option<u64>,
    /// From each request of a bidi stream to the response of the same number.
    pub(crate) replies_ns: Vec<u64>,
    /// What ended it, if that was not OK.
    pub(crate) failure: Option<Status>,
}

impl Callee {
    /// The call of this number, begun by this worker.
    pub(crate) async fn call(&self, worker: usize, number: u64) -> Went {
        let channel = &self.channels[worker % self.channels.len()];
        match self.kind {
            CallKind::Unary => self.unary(channel, worker, number).await,
            _ => self.stream(channel, worker, number).await,
        }
    }

    async fn unary(&self, channel: &Channel, worker: usize, number: u64) -> Went {
        let mut went = Went::default();
        let message = match self.requests.of_call(number, worker as u64) {
            Ok(message) => message,
            Err(why) => return Went { failure: Some(not_made(&why)), ..went },
        };
        (went.sent, went.bytes_sent) = (1, message.len() as u64);
        let mut request = Request::new(Raw(message));
        if let Err(status) = self.metadata.put_into(&mut request, number, worker) {
            return Went { failure: Some(status), ..went };
        }
        match channel.unary::<Raw, Raw>(&self.method, request, &self.options).await {
            Ok(response) => {
                went.received = 1;
                went.bytes_received = response.get_ref().0.len() as u64;
            }
            Err(status) => went.failure = Some(status),
        }
        went
    }

    /// On the wire all kinds are bidi streams.
    async fn stream(&self, channel: &Channel, worker: usize, number: u64) -> Went {
        let began = Instant::now();
        let count = if self.kind == CallKind::ServerStream { 1 } else { self.requests.per_stream() };
        let is_paired = self.kind == CallKind::BidiStream;
        let sent = Arc::new(Mutex::new(Sent::default()));
        let requests = self.requests.clone();
        let messages = (0..count).map(move |message| requests.of_stream(number, worker as u64, message));
        let source = Source { messages, sent: sent.clone(), is_paired, began };
        let mut request = Request::new(source);
        if let Err(status) = self.metadata.put_into(&mut request, number, worker) {
            return Went { failure: Some(status), ..Went::default() };
        }
        let mut went = Went::default();
        let ended = async {
            let response = channel.bidi_streaming::<_, Raw>(&self.method, request, &self.options).await?;
            let mut responses = response.into_inner();
            while let Some(Raw(wire)) = responses.message().await? {
                let now_ns = began.elapsed().as_nanos() as u64;
                went.received += 1;
                went.bytes_received += wire.len() as u64;
                went.first_ns.get_or_insert(now_ns);
                if is_paired {
                    let mut sent = sent.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Some(at_ns) = sent.unanswered.pop_front() {
                        went.replies_ns.push(now_ns.saturating_sub(at_ns));
                    }
                }
            }
            let is_answered = went.received == 1 || self.kind != CallKind::ClientStream;
            if is_answered {
                Ok(())
            } else {
                Err(Status::new(Code::Internal, "no response came, and no error"))
            }
        };
        went.failure = ended.await.err();
        let mut sent = sent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(why) = sent.fault.take() {
            went.failure = Some(not_made(&why));
        }
        (went.sent, went.bytes_sent) = (sent.count, sent.bytes);
        went
    }
}

/// What a stream has sent.
#[derive(Debug, Default)]
struct Sent {
    count: u64,
    bytes: u64,
    /// When those were handed over that have no response yet.
    unanswered: VecDeque<u64>,
    /// A message could not be made, and the stream ended before it.
    fault: Option<String>,
}

/// The requests of one stream, as fast as the library takes them.
struct Source<I> {
    messages: I,
    sent: Arc<Mutex<Sent>>,
    is_paired: bool,
    began: Instant,
}

impl<I: Iterator<Item = Result<Bytes, String>> + Unpin> Stream for Source<I> {
    type Item = Raw;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Raw>> {
        let Some(message) = self.messages.next() else { return Poll::Ready(None) };
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let message = match message {
            Ok(message) => message,
            Err(why) => {
                sent.fault = Some(why);
                return Poll::Ready(None);
            }
        };
        sent.count += 1;
        sent.bytes += message.len() as u64;
        if self.is_paired {
            sent.unanswered.push_back(self.began.elapsed().as_nanos() as u64);
        }
        drop(sent);
        Poll::Ready(Some(Raw(message)))
    }
}
