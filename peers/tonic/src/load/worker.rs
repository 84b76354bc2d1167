//! The workers. Each has one call of one of the four types in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tonic::Status;

use super::CallType;
use super::bidi::bidi_stream;
use super::channel::Client;
use super::client_stream::client_stream;
use super::run::{Run, Start};
use super::stride::stride;
use crate::proto::{Payload, SimpleRequest, SimpleResponse};
use crate::zeros::zeros;

/// Pause after a failed call, so that a server that rejects everything is not flooded.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(10);

/// The call that every worker of a run makes.
#[derive(Clone, Copy)]
pub struct Call {
    pub kind: CallType,
    /// Payload bytes per message.
    pub size: usize,
}

/// A worker's handle to the run and to its supervisor.
#[derive(Clone)]
pub struct Worker {
    pub index: usize,
    pub run: Arc<Run>,
    pub progress: Arc<Progress>,
}

/// Time since when a worker has been waiting, in ns of the run's clock; 0 if it is not waiting.
#[derive(Default)]
pub struct Progress(AtomicU64);

impl Progress {
    #[inline]
    pub fn waits_since(&self, now_ns: u64) {
        self.0.store(now_ns.max(1), Relaxed);
    }

    pub fn stops_waiting(&self) {
        self.0.store(0, Relaxed);
    }

    pub fn since_ns(&self) -> Option<u64> {
        Some(self.0.load(Relaxed)).filter(|&since_ns| since_ns > 0)
    }
}

/// Makes calls until the run is over.
pub async fn repeat(call: Call, mut client: Client, worker: Worker) {
    while !worker.run.is_over() {
        worker.progress.waits_since(worker.run.now_ns());
        let ended = match call.kind {
            CallType::Unary => unary(call, &mut client, &worker).await,
            CallType::ClientStream => client_stream(call, &mut client, &worker).await,
            CallType::ServerStream => server_stream(call, &mut client, &worker).await,
            CallType::BidiStream | CallType::PingPong => bidi_stream(call, &mut client, &worker).await,
        };
        worker.progress.stops_waiting();
        worker.run.call_ended();
        if let Err(status) = ended {
            worker.run.fail(worker.index, &status);
            tokio::time::sleep(PAUSE_AFTER_ERROR).await;
        }
    }
}

/// Makes unary calls until one fails. The end of a call is the start of the next, so that one reading of the clock
/// serves both.
async fn unary(call: Call, client: &mut Client, worker: &Worker) -> Result<(), Status> {
    let run = &worker.run;
    let request = request(call.size, call.size);
    let mut started_ns = run.now_ns();
    loop {
        let start = run.start(started_ns, 1);
        if start == Start::Over {
            return Ok(());
        }
        worker.progress.waits_since(started_ns);
        let response = client.unary_call(request.clone()).await?;
        check_size(response.get_ref(), call.size)?;
        let ended_ns = run.now_ns();
        if run.counts(start, ended_ns) {
            let mut shard = run.shard(worker.index);
            shard.record(ended_ns - started_ns, 1, ended_ns);
            shard.recorder.calls += 1;
        }
        started_ns = ended_ns;
    }
}

/// Runs one stream of responses, cancelled when the run is over.
async fn server_stream(call: Call, client: &mut Client, worker: &Worker) -> Result<(), Status> {
    let run = &worker.run;
    let stride = stride(call.size);
    let mut started_ns = run.now_ns();
    let mut start = run.start(started_ns, stride);
    if start == Start::Over {
        return Ok(());
    }
    let mut responses = client.streaming_from_server(request(0, call.size)).await?.into_inner();
    loop {
        let count = match start {
            Start::Over => {
                run.shard(worker.index).recorder.calls += 1;
                return Ok(());
            }
            Start::WarmUp => stride,
            Start::Counted(count) => count,
        };
        let mut received = 0;
        let ended = loop {
            if received == count {
                break Ok(());
            }
            match responses.message().await {
                Ok(Some(response)) => {
                    if let Err(status) = check_size(&response, call.size) {
                        break Err(status);
                    }
                    received += 1;
                }
                Ok(None) => break Err(ended_early()),
                Err(status) => break Err(status),
            }
        };
        let now_ns = run.now_ns();
        if received > 0 && run.counts(start, now_ns) {
            let mut shard = run.shard(worker.index);
            shard.recorder.record_pace(now_ns - started_ns, received);
            shard.last_ns = shard.last_ns.max(now_ns);
        }
        ended?;
        worker.progress.waits_since(now_ns);
        started_ns = now_ns;
        start = run.start(now_ns, stride);
    }
}

/// Checks the size of a reply; a wrong size fails the call.
#[inline]
pub fn check_size(response: &SimpleResponse, requested: usize) -> Result<(), Status> {
    match response.payload.as_ref().map_or(0, |payload| payload.body.len()) {
        got if got == requested => Ok(()),
        got => Err(Status::data_loss(format!("a reply of {requested} bytes was asked for, {got} came"))),
    }
}

/// The status of a stream that ended with OK too early.
pub fn ended_early() -> Status {
    Status::data_loss("the server ended the stream before its time")
}

/// Creates a request of `size` bytes for a response of `response_size` bytes. With 0 there is no payload: an empty
/// message.
pub fn request(size: usize, response_size: usize) -> SimpleRequest {
    SimpleRequest {
        response_size: i32::try_from(response_size).expect("payloads are bounded by PAYLOAD_BYTES_MAX"),
        payload: (size > 0).then(|| Payload { r#type: 0, body: zeros(size) }),
        ..SimpleRequest::default()
    }
}
