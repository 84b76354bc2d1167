//! Makes one call, of any of the four kinds, with bytes for messages.

use std::sync::Arc;
use std::time::Instant;

use thalweg::{Channel, Code, Raw, Request, Status};

use crate::call::{Call, CallKind, CallMetadata};
use crate::stream_requests::{SendTimes, SharedSent, StreamRequests};
use crate::template::Moment;
use crate::variables::Variables;

/// For whom a call is made.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) worker: usize,
    /// The start that it belongs to.
    pub(crate) number: u64,
    /// What steps before have kept.
    pub(crate) variables: Arc<Variables>,
    /// What is under way then is cancelled, and has failed.
    pub(crate) cut_at: Option<Instant>,
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
    pub(crate) failure: Option<Failure>,
}

/// Why a call has not gone well.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It ended so.
    Status(Status),
    /// It brought something else than what was expected.
    Check(String),
}

/// A call that could not be begun.
fn not_made(why: &str) -> Failure {
    Failure::Status(Status::invalid_argument(format!("the request could not be made: {why}")))
}

/// Makes the call. What steps behind it need goes into the turn's variables.
pub(crate) async fn perform(call: &Call, channel: &Channel, turn: &mut Turn) -> Went {
    match call.kind {
        CallKind::Unary => unary(call, channel, turn).await,
        _ => stream(call, channel, turn).await,
    }
}

/// The same, unless it is under way when the time is up: then it is cancelled.
async fn in_time<T>(
    cut_at: Option<Instant>,
    call: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    match cut_at {
        None => call.await,
        Some(at) => tokio::time::timeout_at(at.into(), call)
            .await
            .unwrap_or_else(|_| Err(Status::cancelled("it was under way when the time was up"))),
    }
}

/// Metadata goes into the request of a call. Nothing is copied where there is none.
fn put_metadata<T>(call: &Call, request: &mut Request<T>, turn: &Turn) -> Result<(), Failure> {
    match &call.metadata {
        CallMetadata::Constant(metadata) if metadata.is_empty() => {}
        CallMetadata::Constant(metadata) => *request.metadata_mut() = metadata.clone(),
        CallMetadata::Made(make) => {
            let moment = Moment {
                request: turn.number,
                worker: turn.worker as u64,
                variables: Some(&turn.variables),
                ..Moment::default()
            };
            *request.metadata_mut() = make(&moment).map_err(|why| not_made(&why))?;
        }
    }
    Ok(())
}

/// Whether a call that ended so has gone well.
fn judged(call: &Call, ended: Result<(), Status>) -> Result<(), Failure> {
    let expected = call.expects.status;
    match ended {
        Ok(()) if expected == Code::Ok => Ok(()),
        Ok(()) => Err(Failure::Check(format!("the status is OK, and not {expected:?}"))),
        Err(status) if status.code() == expected && expected != Code::Ok => Ok(()),
        Err(status) => Err(Failure::Status(status)),
    }
}

fn checked(call: &Call, response: &[u8], turn: &mut Turn) -> Result<(), Failure> {
    match &call.expects.responses {
        None => Ok(()),
        Some(check) => check.check(response, Arc::make_mut(&mut turn.variables)).map_err(Failure::Check),
    }
}

async fn unary(call: &Call, channel: &Channel, turn: &mut Turn) -> Went {
    let mut went = Went::default();
    let message = match call.requests.of_call(turn.number, turn.worker as u64, &turn.variables) {
        Ok(message) => message,
        Err(why) => return Went { failure: Some(not_made(&why)), ..went },
    };
    (went.sent, went.bytes_sent) = (1, message.len() as u64);
    let mut request = Request::new(Raw(message));
    if let Err(failure) = put_metadata(call, &mut request, turn) {
        return Went { failure: Some(failure), ..went };
    }
    let response = channel.unary::<Raw, Raw>(&call.method, request, &call.options);
    match in_time(turn.cut_at, response).await {
        Ok(response) => {
            let Raw(wire) = response.get_ref();
            (went.received, went.bytes_received) = (1, wire.len() as u64);
            went.failure = judged(call, Ok(())).and_then(|()| checked(call, wire, turn)).err();
        }
        Err(status) => went.failure = judged(call, Err(status)).err(),
    }
    went
}

/// On the wire all kinds are bidi streams.
async fn stream(call: &Call, channel: &Channel, turn: &mut Turn) -> Went {
    let began = Instant::now();
    let count = if call.kind == CallKind::ServerStream { 1 } else { call.requests.per_stream() };
    let is_paired = call.kind == CallKind::BidiStream;
    let plan = &call.stream;
    let sent = SharedSent::default();
    let (requests, variables) = (call.requests.clone(), turn.variables.clone());
    let (number, worker) = (turn.number, turn.worker as u64);
    let source = StreamRequests {
        messages: (0..count).map(move |message| requests.of_stream(number, worker, message, &variables)),
        sent: sent.clone(),
        is_paired,
        began,
        lasts: plan.lasts.filter(|_| call.kind != CallKind::ServerStream),
        times: plan.message_rate.clone().map(SendTimes::new),
    };
    let mut request = Request::new(source);
    if let Err(failure) = put_metadata(call, &mut request, turn) {
        return Went { failure: Some(failure), ..Went::default() };
    }
    let mut went = Went::default();
    let mut check = Ok(());
    let mut is_cut = false;
    let received = in_time(turn.cut_at, async {
        let response = channel.bidi_streaming::<_, Raw>(&call.method, request, &call.options).await?;
        let mut responses = response.into_inner();
        while let Some(Raw(wire)) = responses.message().await? {
            let now_ns = began.elapsed().as_nanos() as u64;
            went.received += 1;
            went.bytes_received += wire.len() as u64;
            went.first_ns.get_or_insert(now_ns);
            if is_paired && let Some(at_ns) = sent.lock().unanswered.pop_front() {
                went.replies_ns.push(now_ns.saturating_sub(at_ns));
            }
            if check.is_ok() {
                check = checked(call, &wire, turn);
            }
            if plan.responses.is_some_and(|responses| went.received >= responses) {
                is_cut = true;
                return Ok(());
            }
        }
        Ok(())
    });
    let ended = match plan.lasts.filter(|_| call.kind == CallKind::ServerStream) {
        Some(lasts) => {
            let ended = tokio::time::timeout_at((began + lasts).into(), received).await;
            // It was to last so long: dropped, it is cancelled.
            is_cut |= ended.is_err();
            ended.unwrap_or(Ok(()))
        }
        None => received.await,
    };
    let is_answered = went.received == 1 || is_cut || call.kind != CallKind::ClientStream;
    let ended = match ended {
        Ok(()) if !is_answered => Err(Status::new(Code::Internal, "no response came, and no error")),
        ended => ended,
    };
    went.failure = judged(call, ended).and(check).err();
    let mut sent = sent.lock();
    if let Some(why) = sent.fault.take() {
        went.failure = Some(not_made(&why));
    }
    (went.sent, went.bytes_sent) = (sent.count, sent.bytes);
    went
}
