//! A stream of requests, sent as fast as tonic accepts them.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio_stream::Stream;
use tonic::Status;

use super::channel::Client;
use super::record::Recorder;
use super::run::Start;
use super::stride::stride;
use super::worker::{Call, Worker, check_size, ended_early, request};
use crate::proto::SimpleRequest;

/// Runs one stream. Its messages count once the server's response has acknowledged all of them. Otherwise the stream is
/// an error, however late it shows.
pub async fn client_stream(call: Call, client: &mut Client, worker: &Worker) -> Result<(), Status> {
    let run = &worker.run;
    let recorder = Recorder::starting_at(run.measured_from());
    let sent = Arc::new(Mutex::new(Sent { recorder, has_started: false, is_complete: false }));
    let requests = Requests {
        request: request(call.size, 0),
        worker: worker.clone(),
        stride: stride(call.size),
        sent: sent.clone(),
        start: Start::Over,
        started_ns: 0,
        count: 0,
        remaining: 0,
    };
    let outcome = client.streaming_from_client(requests).await;
    let ended_ns = run.now_ns();
    let sent = sent.lock().unwrap_or_else(PoisonError::into_inner);
    let outcome = match outcome {
        Ok(response) => check_size(response.get_ref(), 0),
        Err(status) => Err(status),
    };
    let outcome = outcome.and_then(|()| if sent.is_complete { Ok(()) } else { Err(ended_early()) });
    outcome?;
    if !sent.has_started {
        return Ok(());
    }
    let mut shard = run.shard(worker.index);
    if sent.recorder.operations() > 0 {
        shard.recorder.merge(&sent.recorder);
        shard.last_ns = shard.last_ns.max(ended_ns);
    }
    shard.recorder.calls += 1;
    Ok(())
}

/// State of the sending side.
struct Sent {
    recorder: Recorder,
    /// The stream has sent a message. A stream without one, because the run was over first, does not count.
    has_started: bool,
    /// The stream has been half-closed.
    is_complete: bool,
}

struct Requests {
    request: SimpleRequest,
    worker: Worker,
    stride: u64,
    sent: Arc<Mutex<Sent>>,
    /// The current stride: outcome and time of its start, its size, and its unsent messages.
    start: Start,
    started_ns: u64,
    count: u64,
    remaining: u64,
}

impl Requests {
    /// Ends a stride and starts the next. Returns false when the run is over.
    fn next_stride(&mut self) -> bool {
        let now_ns = self.worker.run.now_ns();
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        if self.worker.run.counts(self.start, now_ns) {
            sent.recorder.record_pace(now_ns - self.started_ns, self.count);
        }
        self.worker.progress.waits_since(now_ns);
        self.started_ns = now_ns;
        self.start = self.worker.run.start(now_ns, self.stride);
        self.count = match self.start {
            Start::Over => 0,
            Start::WarmUp => self.stride,
            Start::Counted(count) => count,
        };
        self.remaining = self.count;
        sent.has_started |= self.count > 0;
        sent.is_complete = self.count == 0;
        !sent.is_complete
    }
}

impl Stream for Requests {
    type Item = SimpleRequest;

    fn poll_next(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<SimpleRequest>> {
        if self.remaining == 0 && !self.next_stride() {
            return Poll::Ready(None);
        }
        self.remaining -= 1;
        Poll::Ready(Some(self.request.clone()))
    }
}
