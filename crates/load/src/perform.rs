//! Makes one call, of any of the four kinds, with bytes for messages.

use std::future::poll_fn;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use thalweg::bytes::Bytes;
use thalweg::{Channel, Code, Raw, Request, Status, Streaming};
use thalweg_measure::code::code_name;

use crate::call::{Call, CallKind, CallMetadata};
use crate::stream_messages::{Counting, Received, StreamMessages};
use crate::stream_requests::{SendTimes, StreamRequests};
use crate::template::Moment;
use crate::traffic::Traffic;
use crate::variables::Variables;
use crate::went::{Failure, Went};

/// For whom a call is made.
#[derive(Debug)]
pub(crate) struct Turn<'w> {
    pub(crate) worker: usize,
    /// The start that it belongs to.
    pub(crate) number: u64,
    /// What steps before have kept.
    pub(crate) variables: Arc<Variables>,
    /// What is under way then is cancelled, and has failed.
    pub(crate) cut_at: Option<Instant>,
    /// What ends then is counted, and what comes then of a stream; ns of the run's clock.
    pub(crate) counted: Range<u64>,
    /// Where messages of streams are counted.
    pub(crate) counting: &'w Arc<Counting>,
}

/// A call that could not be begun.
fn not_made(why: &str) -> Failure {
    Failure::Status(Status::invalid_argument(format!("cannot build the request: {why}")))
}

/// Makes the call. What steps behind it need goes into the turn's variables.
pub(crate) async fn perform(call: &Call, channel: &Channel, turn: &mut Turn<'_>) -> Went {
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
            .unwrap_or_else(|_| Err(Status::cancelled("still running when the measurement ended"))),
    }
}

/// Metadata goes into the request of a call. Nothing is copied where there is none.
fn put_metadata<T>(call: &Call, request: &mut Request<T>, turn: &Turn<'_>) -> Result<(), Failure> {
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
        Ok(()) => Err(Failure::Check(format!("expected status {}, got OK", code_name(expected as i32)))),
        Err(status) if status.code() == expected && expected != Code::Ok => Ok(()),
        Err(status) => Err(Failure::Status(status)),
    }
}

fn checked(call: &Call, response: &[u8], turn: &mut Turn<'_>) -> Result<(), Failure> {
    match &call.expects.responses {
        None => Ok(()),
        Some(check) => check.check(response, Arc::make_mut(&mut turn.variables)).map_err(Failure::Check),
    }
}

async fn unary(call: &Call, channel: &Channel, turn: &mut Turn<'_>) -> Went {
    let mut went = Went::default();
    let message = match call.requests.of_call(turn.number, turn.worker as u64, &turn.variables) {
        Ok(message) => message,
        Err(why) => return Went { failure: Some(not_made(&why)), ..went },
    };
    went.traffic = Traffic { sent: 1, bytes_sent: message.len() as u64, ..Traffic::default() };
    let mut request = Request::new(Raw(message));
    if let Err(failure) = put_metadata(call, &mut request, turn) {
        return Went { failure: Some(failure), ..went };
    }
    let response = channel.unary::<Raw, Raw>(&call.method, request, &call.options);
    match in_time(turn.cut_at, response).await {
        Ok(response) => {
            let Raw(wire) = response.get_ref();
            went.traffic += Traffic { received: 1, bytes_received: wire.len() as u64, ..Traffic::default() };
            went.failure = judged(call, Ok(())).and_then(|()| checked(call, wire, turn)).err();
        }
        Err(status) => went.failure = judged(call, Err(status)).err(),
    }
    went
}

/// On the wire all kinds are bidi streams.
async fn stream(call: &Call, channel: &Channel, turn: &mut Turn<'_>) -> Went {
    let plan = &call.stream;
    let is_paired = call.kind == CallKind::BidiStream;
    let outstanding = plan.outstanding.filter(|_| is_paired);
    let messages = Arc::new(StreamMessages::new(turn.counting, &turn.counted, is_paired, outstanding));
    let mut request = Request::new(requests(call, turn, messages.clone()));
    if let Err(failure) = put_metadata(call, &mut request, turn) {
        return Went { failure: Some(failure), ..Went::default() };
    }
    let mut counted = Received::of(&messages);
    let mut check = Ok(());
    let mut is_cut = false;
    let received = in_time(turn.cut_at, async {
        let response = channel.bidi_streaming::<_, Raw>(&call.method, request, &call.options).await?;
        let mut responses = response.into_inner();
        let mut message = Raw::default();
        while next(&mut responses, &mut message, &mut counted).await? {
            if check.is_ok() {
                check = checked(call, &message.0, turn);
            }
            if plan.responses.is_some_and(|responses| counted.total >= responses) {
                is_cut = true;
                return Ok(());
            }
        }
        Ok(())
    });
    let ended = match plan.lasts.filter(|_| call.kind == CallKind::ServerStream) {
        Some(lasts) => {
            let ended = tokio::time::timeout_at((messages.began + lasts).into(), received).await;
            // It was to last so long: dropped, it is cancelled.
            is_cut |= ended.is_err();
            ended.unwrap_or(Ok(()))
        }
        None => received.await,
    };
    let is_answered = counted.total == 1 || is_cut || call.kind != CallKind::ClientStream;
    let ended = match ended {
        Ok(()) if !is_answered => {
            let received = counted.total;
            Err(Status::new(Code::Internal, format!("expected one response, received {received}")))
        }
        ended => ended,
    };
    let failure = judged(call, ended).and(check).err();
    let failure = messages.fault().map(not_made).or(failure);
    Went { failure, ..Went::default() }
}

/// The requests of a stream.
fn requests(
    call: &Call,
    turn: &Turn<'_>,
    stream: Arc<StreamMessages>,
) -> StreamRequests<impl Iterator<Item = Result<Bytes, String>> + Unpin + use<>> {
    let receives_alone = call.kind == CallKind::ServerStream;
    let count = if receives_alone { 1 } else { call.requests.per_stream() };
    let (requests, variables) = (call.requests.clone(), turn.variables.clone());
    let (number, worker) = (turn.number, turn.worker as u64);
    StreamRequests {
        messages: (0..count).map(move |message| requests.of_stream(number, worker, message, &variables)),
        stream,
        lasts: call.stream.lasts.filter(|_| !receives_alone),
        times: call.stream.message_rate.clone().map(SendTimes::new),
    }
}

/// Reads the next response, and counts it; false when there is none. What has come is counted before one is waited for.
async fn next(
    responses: &mut Streaming<Raw>,
    message: &mut Raw,
    counted: &mut Received<'_>,
) -> Result<bool, Status> {
    let is_there = poll_fn(|cx| {
        let polled = responses.poll_message_into(cx, message);
        if polled.is_pending() {
            counted.count();
        }
        polled
    });
    let is_there = is_there.await?;
    if is_there {
        counted.push(message.0.len() as u64);
    }
    Ok(is_there)
}
