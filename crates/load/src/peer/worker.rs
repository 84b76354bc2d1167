//! The workers: each has one call under way, of one of the kinds.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use thalweg::{Request, Status, outbound};

use super::bidi::bidi_stream;
use super::call::{Call, Replies, Worker, check_size, ended_early, request};
use super::run::Start;
use super::stride::stride;
use crate::record::{CallType, Handing, Recorder};
use crate::services::proto::SimpleRequest;

/// How long a worker rests after a failed call: a server that refuses everything is not hammered.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(10);

impl Call {
    /// Call after call until the run is over.
    pub(super) async fn repeat(self, worker: Worker) {
        while !worker.run.is_over() {
            worker.progress.waits_since(worker.run.now_ns());
            let is_otherwise = self.method.is_some() || self.echo.is_some();
            let ended = match (self.kind, &self.afresh, is_otherwise) {
                (CallType::Unary, None, false) => self.unary(&worker).await,
                (CallType::Unary, _, _) => self.unary_otherwise(&worker).await,
                (_, None, _) => self.stream(&worker).await,
                (_, Some(builder), _) => match self.on_channel(builder) {
                    Ok(call) => call.stream(&worker).await,
                    Err(status) => Err(status),
                },
            };
            worker.progress.rests();
            if let Err(status) = ended {
                worker.run.fail(&status);
                tokio::time::sleep(PAUSE_AFTER_ERROR).await;
            }
        }
    }

    async fn stream(&self, worker: &Worker) -> Result<(), Status> {
        match self.kind {
            CallType::Unary => Ok(()),
            CallType::ClientStream => self.client_stream(worker).await,
            CallType::ServerStream => self.server_stream(worker).await,
            CallType::BidiStream | CallType::PingPong => bidi_stream(self, worker).await,
        }
    }

    /// As [`Self::unary`], of whichever method, each on a channel of its own if that is asked for. Its connecting is a
    /// part of the call.
    async fn unary_otherwise(&self, worker: &Worker) -> Result<(), Status> {
        loop {
            let started_ns = worker.run.now_ns();
            let start = worker.run.start(started_ns, 1);
            if start == Start::Over {
                return Ok(());
            }
            worker.progress.waits_since(started_ns);
            let stages = self.once_otherwise().await?;
            let ended_ns = worker.run.now_ns();
            if start != Start::WarmUp && worker.run.holds(ended_ns) {
                let mut shard = worker.run.shard();
                shard.record(ended_ns - started_ns, 1, ended_ns);
                if let Some(stages) = &stages {
                    shard.recorder.divided(stages);
                }
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
            if counted && worker.run.holds(ended_ns) {
                let mut shard = worker.run.shard();
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
        let response = match self.handing {
            Handing::InPlace => self.client.streaming_from_client(Request::new(requests.in_place())).await?,
            Handing::Owned => {
                let requests = tokio_stream::iter(requests);
                self.client.streaming_from_client(Request::new(requests)).await?
            }
        };
        check_size(response.get_ref(), 0)?;
        let ended_ns = worker.run.now_ns();
        let sent = sent.lock().unwrap_or_else(PoisonError::into_inner);
        if !sent.is_complete {
            return Err(ended_early());
        }
        if !sent.is_begun {
            return Ok(());
        }
        let mut shard = worker.run.shard();
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
        let mut started_ns = run.now_ns();
        let mut start = run.start(started_ns, stride);
        if start == Start::Over {
            return Ok(());
        }
        let responses = self.client.streaming_from_server(Request::new(request(0, self.size))).await?;
        let mut responses = Replies::new(responses.into_inner(), self);
        loop {
            let (count, counted) = match start {
                Start::Over => {
                    run.shard().recorder.call();
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
                match responses.next().await {
                    Ok(true) => received += 1,
                    Ok(false) => break Err(ended_early()),
                    Err(status) => break Err(status),
                }
            };
            let now_ns = run.now_ns();
            if counted && received > 0 && run.holds(now_ns) {
                let mut shard = run.shard();
                shard.recorder.record_pace(now_ns - started_ns, received);
                shard.last_ns = shard.last_ns.max(now_ns);
            }
            ended?;
            worker.progress.waits_since(now_ns);
            started_ns = now_ns;
            start = run.start(now_ns, stride);
        }
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
    /// The stride under way: when it began, its messages, how many of them are still to come, whether they count.
    started_ns: u64,
    count: u64,
    left: u64,
    counted: bool,
}

impl Requests {
    fn new(request: SimpleRequest, worker: Worker, stride: u64, sent: Arc<Mutex<Sent>>) -> Self {
        Self { request, worker, stride, sent, started_ns: 0, count: 0, left: 0, counted: false }
    }

    /// Ends a stride and begins the next. False when the run is over.
    fn next_stride(&mut self) -> bool {
        let now_ns = self.worker.run.now_ns();
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        if self.counted && self.worker.run.holds(now_ns) {
            sent.recorder.record_pace(now_ns - self.started_ns, self.count);
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

impl Requests {
    /// The same, sent from where they are.
    fn in_place(mut self) -> outbound::Requests<SimpleRequest> {
        outbound::Requests::new(move |_, pack| {
            while self.left > 0 || self.next_stride() {
                self.left -= 1;
                if !pack.push(&self.request) {
                    return Poll::Pending;
                }
            }
            Poll::Ready(())
        })
    }
}

impl Iterator for Requests {
    type Item = SimpleRequest;

    fn next(&mut self) -> Option<SimpleRequest> {
        if self.left == 0 && !self.next_stride() {
            return None;
        }
        self.left -= 1;
        Some(self.request.clone())
    }
}

#[cfg(test)]
mod tests {
    use thalweg::{Channel, Server};

    use super::super::call::client;
    use super::super::run::Run;
    use super::*;
    use crate::record::{Handing, LaneRule, LoadSettings};
    use crate::services::BenchmarkWorker;
    use crate::services::proto::benchmark_service_server::BenchmarkServiceServer;

    /// A worker looks whether the run is over, and may be stopped for a while before it calls.
    #[tokio::test]
    async fn a_call_that_the_end_of_the_run_leaves_no_message_for_does_not_count() {
        let server = Server::builder().add_service(BenchmarkServiceServer::new(BenchmarkWorker::default()));
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
                echo: None,
                handing: Handing::default(),
                warmup_ns: 0,
                duration_ns: Some(0),
                total: None,
                bare: None,
                busy_poll_ns: Some(0),
                cpus: None,
            };
            let run = Arc::new(Run::begin(&settings, 1));
            let worker = Worker { run: run.clone(), progress: Arc::default() };
            let (channel, client) = (channel.clone(), client(&channel));
            let others = Arc::new([]);
            let call = Call {
                channel,
                others,
                client,
                kind,
                size: 0,
                afresh: None,
                method: None,
                echo: None,
                handing: Handing::default(),
            };
            call.stream(&worker).await.unwrap();
            let counted = run.merged().recorder;
            assert_eq!((counted.operations(), counted.calls()), (0, 0), "{kind}");
        }
    }
}
