//! The workers: each has one call under way, of one of the four kinds.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use thalweg::channel::ChannelBuilder;
use thalweg::{CallOptions, Channel, Method, Raw, Request, Status};

use super::run::{Run, Start};
use super::stride::{Pace, stride};
use super::{PAUSE_AFTER_ERROR, client};
use crate::record::{CallType, Recorder};
use crate::services::proto::benchmark_service_client::BenchmarkServiceClient;
use crate::services::proto::{Payload, SimpleRequest, SimpleResponse};
use crate::services::zeros;

/// What every worker of a run does.
#[derive(Clone)]
pub(super) struct Call {
    pub(super) channel: Channel,
    pub(super) client: BenchmarkServiceClient,
    pub(super) kind: CallType,
    /// Bytes of payload in a message.
    pub(super) size: usize,
    /// What each call makes a channel of its own with, if it is to.
    pub(super) afresh: Option<ChannelBuilder>,
    /// The method that is called, where it is not `kind`'s.
    pub(super) method: Option<Arc<RawMethod>>,
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
    pub(super) index: usize,
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
    /// Call after call until the run is over.
    pub(super) async fn repeat(self, worker: Worker) {
        while !worker.run.is_over() {
            worker.progress.waits_since(worker.run.now_ns());
            let ended = match (self.kind, &self.afresh, &self.method) {
                (CallType::Unary, None, None) => self.unary(&worker).await,
                (CallType::Unary, _, _) => self.unary_otherwise(&worker).await,
                (_, None, _) => self.stream(&worker).await,
                (_, Some(builder), _) => match self.on_channel(builder) {
                    Ok(call) => call.stream(&worker).await,
                    Err(status) => Err(status),
                },
            };
            worker.progress.rests();
            if let Err(status) = ended {
                worker.run.fail(worker.index, &status);
                tokio::time::sleep(PAUSE_AFTER_ERROR).await;
            }
        }
    }

    async fn stream(&self, worker: &Worker) -> Result<(), Status> {
        match self.kind {
            CallType::Unary => Ok(()),
            CallType::ClientStream => self.client_stream(worker).await,
            CallType::ServerStream => self.server_stream(worker).await,
            CallType::BidiStream | CallType::PingPong => super::bidi::bidi_stream(self, worker).await,
        }
    }

    /// The same on another channel, which connects with the call.
    fn on_channel(&self, builder: &ChannelBuilder) -> Result<Self, Status> {
        let channel = builder.clone().connect_lazy().map_err(|error| Status::internal(error.to_string()))?;
        Ok(Self { client: client(&channel), channel, ..self.clone() })
    }

    /// One unary call.
    pub(super) async fn once(&self) -> Result<(), Status> {
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

    /// As [`Self::unary`], of whichever method, each on a channel of its own if that is asked for. Its connecting is a part
    /// of the call.
    async fn unary_otherwise(&self, worker: &Worker) -> Result<(), Status> {
        loop {
            let started_ns = worker.run.now_ns();
            let start = worker.run.start(started_ns, 1);
            if start == Start::Over {
                return Ok(());
            }
            worker.progress.waits_since(started_ns);
            match &self.afresh {
                None => self.once().await?,
                Some(builder) => self.on_channel(builder)?.once().await?,
            }
            if let Start::Counted(_) = start {
                let ended_ns = worker.run.now_ns();
                let mut shard = worker.run.shard(worker.index);
                shard.record(ended_ns - started_ns, 1, ended_ns);
                shard.recorder.call();
            }
        }
    }

    /// Unary calls until one fails. The end of one is the start of the next: one reading of the clock for both.
    async fn unary(&self, worker: &Worker) -> Result<(), Status> {
        let request = request(self.size, self.size);
        let mut started_ns = worker.run.now_ns();
        loop {
            let counted = match worker.run.start(started_ns, 1) {
                Start::Over => return Ok(()),
                Start::WarmUp => false,
                Start::Counted(_) => true,
            };
            worker.progress.waits_since(started_ns);
            // Not `?`, which would move the response.
            match &self.client.unary_call(Request::new(request.clone())).await {
                Ok(response) => check_size(response.get_ref(), self.size)?,
                Err(status) => return Err(status.clone()),
            }
            let ended_ns = worker.run.now_ns();
            if counted {
                let mut shard = worker.run.shard(worker.index);
                shard.record(ended_ns - started_ns, 1, ended_ns);
                shard.recorder.call();
            }
            started_ns = ended_ns;
        }
    }

    /// One stream of requests. Its messages count once the server has acknowledged all of them by answering.
    async fn client_stream(&self, worker: &Worker) -> Result<(), Status> {
        let sent = Arc::new(Mutex::new(Sent {
            recorder: Recorder::starting_at(worker.run.measured_from()),
            is_begun: false,
            is_complete: false,
        }));
        let requests =
            Requests::new(request(self.size, 0), worker.clone(), stride(self.kind, self.size), sent.clone());
        let response = self.client.streaming_from_client(Request::new(requests)).await?;
        check_size(response.get_ref(), 0)?;
        let ended_ns = worker.run.now_ns();
        let sent = sent.lock().unwrap_or_else(PoisonError::into_inner);
        if !sent.is_complete {
            return Err(ended_early());
        }
        if !sent.is_begun {
            return Ok(());
        }
        let mut shard = worker.run.shard(worker.index);
        if sent.recorder.operations() > 0 {
            shard.recorder.merge(&sent.recorder);
            shard.last_ns = shard.last_ns.max(ended_ns);
        }
        shard.recorder.call();
        Ok(())
    }

    /// One stream of responses, cancelled when the run is over.
    async fn server_stream(&self, worker: &Worker) -> Result<(), Status> {
        let run = &worker.run;
        let stride = stride(self.kind, self.size);
        let mut pace = Pace::new();
        let mut started_ns = run.now_ns();
        let mut start = run.start(started_ns, stride);
        if start == Start::Over {
            return Ok(());
        }
        let mut responses =
            self.client.streaming_from_server(Request::new(request(0, self.size))).await?.into_inner();
        loop {
            let (count, counted) = match start {
                Start::Over => {
                    run.shard(worker.index).recorder.call();
                    return Ok(());
                }
                Start::WarmUp => (stride, false),
                Start::Counted(count) => (count, true),
            };
            let mut received = 0;
            let ended = loop {
                if received == count {
                    break Ok(());
                }
                match responses.message().await {
                    Ok(Some(response)) => {
                        if let Err(status) = check_size(&response, self.size) {
                            break Err(status);
                        }
                        received += 1;
                    }
                    Ok(None) => break Err(ended_early()),
                    Err(status) => break Err(status),
                }
            };
            let now_ns = run.now_ns();
            if counted && received > 0 {
                let mut shard = run.shard(worker.index);
                pace.record(&mut shard.recorder, now_ns - started_ns, received);
                shard.last_ns = shard.last_ns.max(now_ns);
            }
            ended?;
            worker.progress.waits_since(now_ns);
            started_ns = now_ns;
            start = run.start(now_ns, stride);
        }
    }
}

/// What a reply that is not as large as asked for makes of its call.
pub(super) fn check_size(response: &SimpleResponse, asked: usize) -> Result<(), Status> {
    match response.payload.as_ref().map_or(0, |payload| payload.body.len()) {
        got if got == asked => Ok(()),
        got => Err(Status::data_loss(format!("a reply of {asked} bytes was asked for, {got} came"))),
    }
}

/// A stream that ended with OK while it was still used.
pub(super) fn ended_early() -> Status {
    Status::data_loss("the server ended the stream before its time")
}

/// A request of `size` bytes that wants `response_size` bytes back. Both without payload: an empty message.
pub(super) fn request(size: usize, response_size: usize) -> SimpleRequest {
    SimpleRequest {
        response_size: i32::try_from(response_size).expect("payloads are bounded by PAYLOAD_BYTES_MAX"),
        payload: (size > 0).then(|| Payload { r#type: 0, body: zeros(size) }),
        ..SimpleRequest::default()
    }
}

/// What a client stream has sent.
struct Sent {
    recorder: Recorder,
    /// The stream has had a message. One that has none, because the run was over first, is no call that counts.
    is_begun: bool,
    /// The stream has been half-closed: there is no more to come.
    is_complete: bool,
}

/// The requests of a client stream, as fast as the library takes them.
struct Requests {
    request: SimpleRequest,
    worker: Worker,
    stride: u64,
    sent: Arc<Mutex<Sent>>,
    pace: Pace,
    /// The stride under way: when it began, its messages, how many of them are still to come, whether they count.
    started_ns: u64,
    count: u64,
    left: u64,
    counted: bool,
}

impl Requests {
    fn new(request: SimpleRequest, worker: Worker, stride: u64, sent: Arc<Mutex<Sent>>) -> Self {
        let pace = Pace::new();
        Self { request, worker, stride, sent, pace, started_ns: 0, count: 0, left: 0, counted: false }
    }

    /// Ends a stride and begins the next. False when the run is over.
    fn next_stride(&mut self) -> bool {
        let now_ns = self.worker.run.now_ns();
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        if self.counted {
            self.pace.record(&mut sent.recorder, now_ns - self.started_ns, self.count);
        }
        self.worker.progress.waits_since(now_ns);
        self.started_ns = now_ns;
        (self.count, self.counted) = match self.worker.run.start(now_ns, self.stride) {
            Start::Over => (0, false),
            Start::WarmUp => (self.stride, false),
            Start::Counted(count) => (count, true),
        };
        self.left = self.count;
        sent.is_begun |= self.count > 0;
        sent.is_complete = self.count == 0;
        !sent.is_complete
    }
}

impl Stream for Requests {
    type Item = SimpleRequest;

    fn poll_next(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<SimpleRequest>> {
        if self.left == 0 && !self.next_stride() {
            return Poll::Ready(None);
        }
        self.left -= 1;
        Poll::Ready(Some(self.request.clone()))
    }
}

#[cfg(test)]
mod tests {
    use thalweg::Server;

    use super::*;
    use crate::record::{LaneRule, LoadSettings};
    use crate::services::BenchmarkWorker;
    use crate::services::proto::benchmark_service_server::BenchmarkServiceServer;

    /// A worker looks whether the run is over, and may be stopped for a while before it calls.
    #[tokio::test]
    async fn a_call_that_the_end_of_the_run_leaves_no_message_for_does_not_count() {
        let server = Server::builder().add_service(BenchmarkServiceServer::new(BenchmarkWorker));
        let server = server.bind(&["127.0.0.1:0".parse().unwrap()]).await.unwrap();
        let target = server.local_addresses()[0].to_string();
        let channel = Channel::builder(&target).connect_lazy().unwrap();
        tokio::spawn(server.serve());
        let streams =
            [CallType::ClientStream, CallType::ServerStream, CallType::BidiStream, CallType::PingPong];
        for kind in streams {
            let settings = LoadSettings {
                target: target.clone(),
                call: kind,
                size_bytes: 0,
                in_flight: 1,
                connections: 1,
                lanes: LaneRule::Fixed,
                method: None,
                warmup_ns: 0,
                duration_ns: Some(0),
                total: None,
                busy_poll_ns: 0,
                cpus: None,
            };
            let run = Arc::new(Run::begin(&settings, 1));
            let worker = Worker { index: 0, run: run.clone(), progress: Arc::default() };
            let (channel, client) = (channel.clone(), client(&channel));
            let call = Call { channel, client, kind, size: 0, afresh: None, method: None };
            call.stream(&worker).await.unwrap();
            let counted = run.merged().recorder;
            assert_eq!((counted.operations(), counted.calls()), (0, 0), "{kind}");
        }
    }
}
