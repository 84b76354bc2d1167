//! Runs against misbehaving servers, whose calls must not count as successes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::connect::StartError;
use crate::peer::{Announcement, DriveError, Patience, drive};
use crate::record::{CallType, LaneRule, LoadResult, LoadSettings, MessageOwnership, MethodCall};
use crate::services::BenchmarkWorker;
use crate::services::proto::benchmark_service_server::{BenchmarkService, BenchmarkServiceServer};
use crate::services::proto::{Payload, SimpleRequest, SimpleResponse};
use crate::services::zeros;
use thalweg::{Request, Response, Server, Status, Streaming};
use tokio_stream::wrappers::ReceiverStream;

/// Misbehaviour of the server from its second call on; the first call is the driver's check.
#[derive(Clone, Copy, Debug)]
enum Manner {
    Refuses,
    AnswersShort,
    Stalls,
    /// Streams end with OK after this many responses.
    EndsAfter(usize),
}

struct Misbehaving {
    manner: Manner,
    calls: Arc<AtomicU64>,
}

type Replies = ReceiverStream<Result<SimpleResponse, Status>>;

impl Misbehaving {
    async fn misbehave(&self, size: i32) -> Result<Response<SimpleResponse>, Status> {
        let is_first = self.calls.fetch_add(1, Relaxed) == 0;
        let size = usize::try_from(size).unwrap();
        match self.manner {
            _ if is_first => Ok(Response::new(response(size))),
            Manner::Refuses => Err(Status::permission_denied("not today")),
            Manner::AnswersShort => Ok(Response::new(response(size.saturating_sub(1)))),
            Manner::Stalls => std::future::pending().await,
            Manner::EndsAfter(_) => Ok(Response::new(response(size))),
        }
    }

    async fn misbehave_at_length(&self, size: i32) -> Result<Response<Replies>, Status> {
        let count = if let Manner::EndsAfter(count) = self.manner { count } else { 1 };
        let reply = self.misbehave(size).await?.into_inner();
        let (sender, receiver) = tokio::sync::mpsc::channel(count.max(1));
        for _ in 0..count {
            sender.try_send(Ok(reply.clone())).unwrap();
        }
        Ok(Response::new(ReceiverStream::new(receiver)))
    }
}

impl BenchmarkService for Misbehaving {
    type StreamingCallStream = Replies;
    type StreamingFromServerStream = Replies;
    type StreamingBothWaysStream = Replies;

    async fn unary_call(&self, request: Request<SimpleRequest>) -> Result<Response<SimpleResponse>, Status> {
        self.misbehave(request.get_ref().response_size).await
    }

    async fn streaming_call(
        &self,
        request: Request<Streaming<SimpleRequest>>,
    ) -> Result<Response<Replies>, Status> {
        let first = request.into_inner().message().await?.unwrap_or_default();
        self.misbehave_at_length(first.response_size).await
    }

    async fn streaming_from_client(
        &self,
        _request: Request<Streaming<SimpleRequest>>,
    ) -> Result<Response<SimpleResponse>, Status> {
        // An empty response is expected here, so a wrong size must be larger.
        let wrong_size = i32::from(matches!(self.manner, Manner::AnswersShort)) * 3;
        self.misbehave(wrong_size).await
    }

    async fn streaming_from_server(
        &self,
        request: Request<SimpleRequest>,
    ) -> Result<Response<Replies>, Status> {
        self.misbehave_at_length(request.get_ref().response_size).await
    }

    async fn streaming_both_ways(
        &self,
        _request: Request<Streaming<SimpleRequest>>,
    ) -> Result<Response<Replies>, Status> {
        Err(Status::unimplemented("the driver does not call it"))
    }
}

fn response(size: usize) -> SimpleResponse {
    let payload = (size > 0).then(|| Payload { r#type: 0, body: zeros(size) });
    SimpleResponse { payload, ..SimpleResponse::default() }
}

/// Measured time; long enough even if the machine is busy with other work for a while.
const WINDOW_NS: u64 = 1_000_000_000;
/// Messages driven where no call succeeds; several batches of a stream.
const MESSAGES: u64 = 40;
/// Time limit for a server that stalls.
const STALL: Duration = Duration::from_millis(100);

/// Drives `service` for a moment with calls of this type, two at a time.
async fn driven<S: BenchmarkService>(service: S, call: CallType) -> Result<LoadResult, DriveError> {
    // Long enough that a busy machine does not look like a failing server.
    driven_with(service, call, Duration::from_secs(5)).await
}

async fn driven_with<S: BenchmarkService>(
    service: S,
    call: CallType,
    call_patience: Duration,
) -> Result<LoadResult, DriveError> {
    driven_as(service, call_patience, |settings| settings.call = call).await
}

/// Drives `service` with settings changed by `edit`.
async fn driven_as<S: BenchmarkService>(
    service: S,
    call_patience: Duration,
    edit: impl FnOnce(&mut LoadSettings),
) -> Result<LoadResult, DriveError> {
    let server = Server::builder().add_service(BenchmarkServiceServer::new(service));
    let server = server.bind(&["127.0.0.1:0".parse().unwrap()]).await.unwrap();
    let mut settings = LoadSettings {
        target: server.local_addresses()[0].to_string(),
        call: CallType::Unary,
        size_bytes: 10,
        in_flight: 2,
        connections: 1,
        lanes: LaneRule::Fixed,
        method: None,
        echo: None,
        message_ownership: MessageOwnership::default(),
        warmup_ns: 0,
        duration_ns: Some(WINDOW_NS),
        total: None,
        bare: None,
        busy_poll_ns: Some(0),
        cpus: None,
    };
    edit(&mut settings);
    let patience = Patience { call: call_patience, ..Patience::default() };
    let serving = tokio::spawn(server.serve());
    let mut moments = Vec::new();
    let result = drive(
        &settings,
        None,
        |channel| channel,
        patience,
        std::future::pending(),
        |moment| moments.push(moment),
    )
    .await;
    let announced: &[Announcement] =
        if result.is_ok() { &[Announcement::Measuring, Announcement::Measured] } else { &[] };
    assert_eq!(moments, announced, "both are announced, once, in this order");
    serving.abort();
    result
}

/// Checks that no call to such a server succeeds, that all count under `code`, and that the first is explained.
async fn check(manner: Manner, call: CallType, code: &str, explained: &str) {
    let call_patience = if matches!(manner, Manner::Stalls) { STALL } else { Duration::from_secs(5) };
    let service = Misbehaving { manner, calls: Arc::default() };
    // Ends by number, since a busy machine might complete nothing in a fixed time.
    let edit = |settings: &mut LoadSettings| {
        (settings.call, settings.duration_ns, settings.total) = (call, None, Some(MESSAGES));
    };
    let result = driven_as(service, call_patience, edit).await.unwrap();
    let what = format!("{manner:?}, {call}: {:?} {:?}", result.errors, result.notes);
    assert_eq!((result.messages, result.calls), (0, 0), "{what}");
    assert!(result.errors.len() == 1 && result.errors[code] > 0, "{what}");
    assert!(result.notes.iter().any(|note| note.text.contains(explained)), "{what}");
}

#[tokio::test]
async fn refusals_are_errors() {
    for call in CallType::ALL {
        check(Manner::Refuses, call, "PERMISSION_DENIED", "not today").await;
    }
}

#[tokio::test]
async fn responses_of_wrong_size_are_errors() {
    for call in CallType::ALL {
        check(Manner::AnswersShort, call, "DATA_LOSS", "expected a response of").await;
    }
}

#[tokio::test]
async fn stalled_calls_time_out() {
    for call in CallType::ALL {
        check(Manner::Stalls, call, "DEADLINE_EXCEEDED", "within 100ms").await;
    }
}

#[tokio::test]
async fn streams_that_end_too_early_are_errors() {
    for call in [CallType::ServerStream, CallType::BidiStream] {
        check(Manner::EndsAfter(0), call, "DATA_LOSS", "ended the stream early").await;
    }
}

#[tokio::test]
async fn client_stream_with_early_response_is_not_counted() {
    let service = Misbehaving { manner: Manner::EndsAfter(0), calls: Arc::default() };
    let result = driven(service, CallType::ClientStream).await.unwrap();
    assert!(result.errors["DATA_LOSS"] > 0, "{:?}", result.errors);
    // At the end of the run, a response may follow just after the end of the requests, which is valid.
    assert!(result.calls <= u64::from(result.settings.in_flight), "{}", result.calls);
}

#[tokio::test]
async fn messages_count_even_if_their_stream_fails_later() {
    let service = Misbehaving { manner: Manner::EndsAfter(5), calls: Arc::default() };
    let result = driven(service, CallType::ServerStream).await.unwrap();
    let (messages, failed) = (result.messages, result.errors["DATA_LOSS"]);
    // A stream that fails just after the end of the run is counted, but its messages are not.
    let in_flight = u64::from(result.settings.in_flight);
    assert!(messages > 0 && messages.is_multiple_of(5), "{messages}");
    assert!((failed.saturating_sub(in_flight)..=failed).contains(&(messages / 5)), "{messages}, {failed}");
    assert_eq!(result.calls, 0);
}

#[tokio::test]
async fn failing_first_call_prevents_run() {
    let service = Misbehaving { manner: Manner::Refuses, calls: Arc::new(AtomicU64::new(1)) };
    let error = driven(service, CallType::Unary).await.unwrap_err();
    assert!(matches!(error, DriveError::Start(StartError::FirstCall { .. })), "{error}");
    assert!(error.to_string().contains("PERMISSION_DENIED: not today"), "{error}");
}

#[tokio::test]
async fn correct_server_has_no_errors() {
    for call in CallType::ALL {
        let mut window_ns = WINDOW_NS;
        loop {
            let result = driven_as(BenchmarkWorker::default(), Duration::from_secs(60), |settings| {
                settings.call = call;
                settings.duration_ns = Some(window_ns);
            });
            let result = result.await.unwrap();
            assert!(result.errors.is_empty(), "{call}: {:?}", result.errors);
            assert!(result.duration_ns >= window_ns, "{call}: {}", result.duration_ns);
            if result.messages > 0 {
                break;
            }
            // On a busy machine a window may pass before the first batch of a stream is complete.
            assert!(window_ns < 32 * WINDOW_NS, "{call}: no message");
            window_ns *= 4;
        }
    }
}

#[tokio::test]
async fn ping_pong_has_one_message_in_flight() {
    let result = driven(BenchmarkWorker::default(), CallType::PingPong).await.unwrap();
    assert!(result.messages > 0 && result.errors.is_empty(), "{:?}", result.errors);
    // The message in flight at the end of each stream may not count.
    let latency = result.latency_ns.unwrap();
    let (in_flight, took_ns) = (f64::from(result.settings.in_flight), result.duration_ns as f64);
    assert!(latency.mean * (result.messages as f64) < took_ns * in_flight * 1.01, "{latency:?}");
}

#[tokio::test]
async fn lane_rule_per_call_opens_channel_per_call() {
    for call in [CallType::Unary, CallType::PingPong] {
        let patience = Duration::from_secs(5);
        let edit = |settings: &mut LoadSettings| {
            (settings.call, settings.lanes) = (call, LaneRule::PerCall);
        };
        let result = driven_as(BenchmarkWorker::default(), patience, edit).await.unwrap();
        assert!(result.messages > 0 && result.errors.is_empty(), "{call}: {:?}", result.errors);
        // The number of connections is not checked here.
        assert!(!result.notes.iter().any(|note| note.text.contains("connections")), "{:?}", result.notes);
    }
}

#[tokio::test]
async fn lane_counts_of_adaptive_channel_are_reported() {
    let edit = |settings: &mut LoadSettings| settings.lanes = LaneRule::Adaptive;
    let result = driven_as(BenchmarkWorker::default(), Duration::from_secs(5), edit).await.unwrap();
    assert!(result.messages > 0 && result.errors.is_empty(), "{:?}", result.errors);
    assert!(result.lanes[0].lanes >= 1, "{:?}", result.lanes);
    assert!(result.lanes.windows(2).all(|pair| pair[0].at_ns < pair[1].at_ns), "{:?}", result.lanes);
}

#[tokio::test]
async fn any_unary_method_can_be_driven() {
    let method = |path: &str| Some(MethodCall { path: path.to_owned(), request: Vec::new() });
    let patience = Duration::from_secs(5);
    let known = "/grpc.testing.BenchmarkService/UnaryCall";
    let result = driven_as(BenchmarkWorker::default(), patience, |settings| settings.method = method(known))
        .await
        .unwrap();
    assert!(result.messages > 0 && result.errors.is_empty(), "{:?}", result.errors);

    let check = async |path: &str, call: CallType, explained: &str| {
        let edit = |settings: &mut LoadSettings| {
            (settings.method, settings.call) = (method(path), call);
        };
        let error = driven_as(BenchmarkWorker::default(), patience, edit).await.unwrap_err().to_string();
        assert!(error.contains(explained), "{path}: {error}");
    };
    check("/a.B/C", CallType::Unary, "the first call, a.B/C, ended with UNIMPLEMENTED").await;
    check("nonsense", CallType::Unary, "nonsense").await;
    check(known, CallType::PingPong, "unary").await;
}
