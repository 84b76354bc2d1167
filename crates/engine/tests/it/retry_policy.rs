//! Retries by the policy of a service config or a call (gRFC A6).

use std::ops::RangeInclusive;
use std::time::Duration;

use http::Request;
use thalweg_engine::http2::ErrorCode;
use thalweg_engine::http2::frame::Kind;
use thalweg_engine::{CallOptions, CallPeer, Channel, ChannelConfig, Code, RetryPolicy, Status};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::raw::Pieces;
use crate::support::peer::{OK, OK_HEADERS, Peer, envelope};
use crate::support::{
    CHAT, Message, call_options, channel_config, connected_by, echo, items, raw, soon, spawn_echo,
    spawn_echo_with, stream,
};

/// The server's response to one attempt.
#[derive(Clone, Copy)]
pub(crate) enum Response {
    Ok,
    /// A Trailers-Only response.
    Fails(Code),
    FailsWithPushback(Code, &'static str),
    /// Response headers, and then a failure.
    StartsAndFails(Code),
    Refuses,
}

use Response::{Fails, FailsWithPushback, Ok as Succeeds, Refuses, StartsAndFails};

const UNAVAILABLE: Response = Fails(Code::Unavailable);

/// At most four attempts, with 100 ms of backoff that doubles.
const POLICY: &str = r#""retryPolicy": { "maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "1s",
    "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"] }"#;

pub(crate) fn config(method: &str, rest: &str) -> ChannelConfig {
    let json =
        format!(r#"{{ "methodConfig": [{{ "name": [{{ "service": "test.Echo" }}], {method} }}] {rest} }}"#);
    channel_config(|config| config.service_config = Some(json.into()))
}

/// An attempt that reached the server: when, in milliseconds, and its `grpc-previous-rpc-attempts`.
pub(crate) type Attempt = (u128, Option<String>);

/// Responds to attempts as `responses` say.
pub(crate) async fn serve(peer: &mut Peer, responses: &[Response]) -> Vec<Attempt> {
    let (started, mut attempts) = (Instant::now(), Vec::new());
    for response in responses {
        let headers = soon(peer.next_of(Kind::Headers)).await;
        let text = headers.text();
        let previous = text.lines().find_map(|line| line.strip_prefix("grpc-previous-rpc-attempts: "));
        attempts.push((started.elapsed().as_millis(), previous.map(str::to_owned)));
        let mut bytes = Vec::new();
        loop {
            let data = soon(peer.next_of(Kind::Data)).await;
            bytes.extend_from_slice(&data.payload);
            if data.end_stream {
                break;
            }
        }
        assert!(bytes.ends_with(&envelope(b"x")), "{bytes:?}");
        let stream = headers.stream;
        let code = match *response {
            Fails(code) | FailsWithPushback(code, _) | StartsAndFails(code) => code,
            Succeeds | Refuses => Code::Ok,
        };
        let number = code.number().to_string();
        let failure = ("grpc-status", &*number);
        match *response {
            Succeeds => {
                peer.headers(stream, false, OK_HEADERS).message(stream, false, b"y").headers(stream, true, OK)
            }
            Fails(_) => peer.headers(stream, true, &[OK_HEADERS, &[failure]].concat()),
            FailsWithPushback(_, pushback) => {
                let pushback = ("grpc-retry-pushback-ms", pushback);
                peer.headers(stream, true, &[OK_HEADERS, &[failure, pushback]].concat())
            }
            StartsAndFails(_) => peer.headers(stream, false, OK_HEADERS).headers(stream, true, &[failure]),
            Refuses => peer.reset(stream, ErrorCode::RefusedStream),
        };
        peer.send().await;
    }
    attempts
}

/// Makes one unary call, and one call with streams, and compares outcome and attempts: the times after the former
/// attempt in milliseconds.
async fn check(
    method: &str,
    responses: &[Response],
    expected: Result<(), Code>,
    delays: &[RangeInclusive<u128>],
) {
    for is_unary in [true, false] {
        let (channel, mut peer, _accepted) = connected_by(config(method, ""), &[]).await;
        let call: JoinHandle<Result<Message, Status>> = if is_unary {
            spawn_echo(&channel, "x")
        } else {
            let channel = channel.clone();
            tokio::spawn(async move {
                let messages = items(vec![raw("w"), raw("x")]);
                let mut responses = stream(&channel, &CHAT, messages, &CallOptions::default()).await?;
                let first = responses.message().await?;
                responses.message().await?;
                Ok(first.expect("a message"))
            })
        };
        let attempts = serve(&mut peer, responses).await;
        let outcome = soon(call).await.expect("no panic");
        assert_eq!(outcome.map(drop).map_err(|status| status.code()), expected, "unary: {is_unary}");
        let mut former = 0;
        assert_eq!(attempts.len(), delays.len() + 1);
        for ((at, previous), (number, delay)) in attempts[1..].iter().zip((1..).zip(delays)) {
            assert!(
                delay.contains(&(at - former)),
                "attempt {number}: {at} after {former}, unary: {is_unary}"
            );
            let is_transparent = *delay == (0..=0);
            assert_eq!(*previous, (!is_transparent).then(|| number.to_string()));
            former = *at;
        }
        let transparent = delays.iter().filter(|delay| **delay == (0..=0)).count() as u64;
        check_counts(&channel, [delays.len() as u64 - transparent, transparent, 0]);
    }
}

/// Compares the channel's retries, transparent retries and hedges, which were all at one peer.
pub(crate) fn check_counts(channel: &Channel, expected: [u64; 3]) {
    let counted = channel.snapshot().further_attempts;
    let counts = counted.iter().map(|it| [it.retries, it.transparent_retries, it.hedges]);
    assert_eq!(counts.collect::<Vec<_>>(), if expected == [0; 3] { vec![] } else { vec![expected] });
    assert!(counted.iter().all(|it| it.peer.is_some()), "{counted:?}");
}

#[tokio::test(start_paused = true)]
async fn retryable_failures_are_retried_with_backoff() {
    check(POLICY, &[UNAVAILABLE, Succeeds], Ok(()), &[80..=121]).await;
    let delays = [80..=121, 160..=241, 320..=481];
    check(POLICY, &[UNAVAILABLE, UNAVAILABLE, UNAVAILABLE, Succeeds], Ok(()), &delays).await;
    check(POLICY, &[UNAVAILABLE; 4], Err(Code::Unavailable), &delays).await;
    check(POLICY, &[UNAVAILABLE, Fails(Code::NotFound)], Err(Code::NotFound), &[80..=121]).await;
}

#[tokio::test(start_paused = true)]
async fn other_failures_and_started_responses_are_not_retried() {
    check(POLICY, &[Fails(Code::Internal)], Err(Code::Internal), &[]).await;
    check(POLICY, &[StartsAndFails(Code::Unavailable)], Err(Code::Unavailable), &[]).await;
    check(r#""timeout": "10s""#, &[UNAVAILABLE], Err(Code::Unavailable), &[]).await;
}

#[tokio::test(start_paused = true)]
async fn server_pushes_back() {
    let after = FailsWithPushback(Code::Unavailable, "3000");
    // The backoff starts over after a pushback.
    check(POLICY, &[UNAVAILABLE, after, UNAVAILABLE, Succeeds], Ok(()), &[80..=121, 3000..=3001, 80..=121])
        .await;
    let stop = FailsWithPushback(Code::Unavailable, "-1");
    check(POLICY, &[stop], Err(Code::Unavailable), &[]).await;
}

#[tokio::test(start_paused = true)]
async fn transparent_retry_is_not_counted() {
    check(POLICY, &[Refuses, Succeeds], Ok(()), &[0..=0]).await;
    check(r#""timeout": "10s""#, &[Refuses, Refuses], Err(Code::Unavailable), &[0..=0]).await;
}

#[tokio::test(start_paused = true)]
async fn retry_beyond_the_deadline_is_not_awaited() {
    let method = format!(r#""timeout": "0.05s", {POLICY}"#);
    check(&method, &[UNAVAILABLE], Err(Code::Unavailable), &[]).await;
    let method = format!(r#""timeout": "0.25s", {POLICY}"#);
    check(&method, &[UNAVAILABLE, UNAVAILABLE], Err(Code::Unavailable), &[80..=121]).await;
}

#[tokio::test(start_paused = true)]
async fn throttled_channel_does_not_retry() {
    let throttling = r#", "retryThrottling": { "maxTokens": 4, "tokenRatio": 1 }"#;
    let (channel, mut peer, _accepted) = connected_by(config(POLICY, throttling), &[]).await;
    let call = async |channel: &Channel, peer: &mut Peer, responses: &[Response]| {
        let call = spawn_echo(channel, "x");
        serve(peer, responses).await;
        soon(call).await.expect("no panic").map(drop).map_err(|status| status.code())
    };
    // Each failure takes a token. With half of the four left, there are no retries.
    assert_eq!(call(&channel, &mut peer, &[UNAVAILABLE, UNAVAILABLE]).await, Err(Code::Unavailable));
    assert_eq!(call(&channel, &mut peer, &[UNAVAILABLE]).await, Err(Code::Unavailable));
    for _ in 0..4 {
        assert_eq!(call(&channel, &mut peer, &[Succeeds]).await, Ok(()));
    }
    assert_eq!(call(&channel, &mut peer, &[UNAVAILABLE, Succeeds]).await, Ok(()));
}

/// A raw call returns its failure as a response, which does not add to the tokens.
#[tokio::test(start_paused = true)]
async fn failed_raw_stream_does_not_count_as_success() {
    let throttling = r#", "retryThrottling": { "maxTokens": 4, "tokenRatio": 2 }"#;
    let (channel, mut peer, _accepted) = connected_by(config(POLICY, throttling), &[]).await;
    // The second failure leaves half of the tokens: it is not retried, and neither is the next call.
    for responses in [&[UNAVAILABLE; 2][..], &[UNAVAILABLE]] {
        let body = Pieces::of([&envelope(b"w"), &envelope(b"x")]);
        let request = Request::post("/test.Echo/Chat");
        let request = request.header("content-type", "application/grpc").header("te", "trailers");
        let request = request.body(body).expect("a request");
        let call = tokio::spawn(channel.raw(request, &CallOptions::default()));
        serve(&mut peer, responses).await;
        let response = soon(call).await.expect("no panic").expect("a response");
        assert_eq!(response.headers()["grpc-status"], "14");
    }
}

#[tokio::test(start_paused = true)]
async fn call_may_have_its_own_policy() {
    let (channel, mut peer, _accepted) = connected_by(channel_config(|_| {}), &[]).await;
    let policy = RetryPolicy::new(2, [Code::Aborted]);
    let options = CallOptions::default().retry(policy);
    let call = spawn_echo_with(&channel, raw("x"), options);
    assert_eq!(serve(&mut peer, &[Fails(Code::Aborted), Succeeds]).await.len(), 2);
    soon(call).await.expect("no panic").expect("a response");
}

/// Messages of servers are not changed; [`CallPeer`] says which attempt they are of.
#[tokio::test(start_paused = true)]
async fn caller_learns_the_number_of_attempts() {
    for is_unary in [true, false] {
        let (channel, mut peer, _accepted) = connected_by(config(POLICY, ""), &[]).await;
        let peers = CallPeer::new();
        let options = CallOptions::default().peer(&peers);
        let call = if is_unary {
            spawn_echo_with(&channel, raw("x"), options)
        } else {
            let channel = channel.clone();
            tokio::spawn(async move {
                let mut responses = stream(&channel, &CHAT, items(vec![raw("x")]), &options).await?;
                Ok(responses.message().await?.expect("a message"))
            })
        };
        assert_eq!(serve(&mut peer, &[UNAVAILABLE, UNAVAILABLE, Fails(Code::NotFound)]).await.len(), 3);
        let error = soon(call).await.expect("no panic").expect_err("a failure");
        assert_eq!((error.code(), error.message()), (Code::NotFound, ""));
        assert_eq!((peers.attempts(), peers.address().as_deref()), (3, Some("memory:1")));
        peers.clear();
        assert_eq!((peers.attempts(), peers.address()), (0, None));
    }
}

#[tokio::test(start_paused = true)]
async fn retries_of_the_service_config_can_be_turned_off() {
    let call = async |config: ChannelConfig, options: CallOptions, responses: &[Response]| {
        let (channel, mut peer, _accepted) = connected_by(config, &[]).await;
        let call = spawn_echo_with(&channel, raw("x"), options);
        serve(&mut peer, responses).await;
        soon(call).await.expect("no panic").map(drop).map_err(|status| status.code())
    };
    let unavailable = Err(Code::Unavailable);
    let mut off = config(POLICY, "");
    off.retries = false;
    assert_eq!(call(off.clone(), CallOptions::default(), &[UNAVAILABLE]).await, unavailable);
    assert_eq!(
        call(config(POLICY, ""), CallOptions::default().without_retries(), &[UNAVAILABLE]).await,
        unavailable
    );
    let own = CallOptions::default().retry(RetryPolicy::new(2, [Code::Unavailable]));
    assert_eq!(call(off.clone(), own, &[UNAVAILABLE, Succeeds]).await, Ok(()));
    // Transparent retries remain.
    assert_eq!(call(off, CallOptions::default(), &[Refuses, Succeeds]).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn attempts_of_the_service_config_are_capped() {
    let policy = POLICY.replace("\"maxAttempts\": 4", "\"maxAttempts\": 100");
    for (cap, expected) in [(None, 5), (Some(2), 2), (Some(1), 1), (Some(7), 7)] {
        let mut config = config(&policy, "");
        config.max_call_attempts = cap.unwrap_or(config.max_call_attempts);
        let (channel, mut peer, _accepted) = connected_by(config, &[]).await;
        let call = spawn_echo(&channel, "x");
        serve(&mut peer, &vec![UNAVAILABLE; expected]).await;
        let outcome = soon(call).await.expect("no panic");
        assert_eq!(outcome.expect_err("it fails").code(), Code::Unavailable, "{cap:?}");
    }
}

/// A streaming call that has sent more than the buffers keep is not retried.
#[tokio::test(start_paused = true)]
async fn retry_buffers_have_limits() {
    type Setting = fn(&mut ChannelConfig, &mut CallOptions);
    let settings: [(Setting, bool); 6] = [
        (|_, _| {}, true),
        (|config, _| config.call_retry_buffer_size = 11, false),
        (|config, _| config.call_retry_buffer_size = 12, true),
        (|config, _| config.retry_buffer_size = 11, false),
        (|_, options| options.retry_buffer_size = Some(11), false),
        (|config, options| (config.call_retry_buffer_size, options.retry_buffer_size) = (0, Some(12)), true),
    ];
    for (at, (set, is_retried)) in settings.into_iter().enumerate() {
        let (mut config, mut options) = (config(POLICY, ""), CallOptions::default());
        set(&mut config, &mut options);
        let (channel, mut peer, _accepted) = connected_by(config, &[]).await;
        let call = tokio::spawn(async move {
            // Two messages of one byte, with their prefixes.
            let mut responses = stream(&channel, &CHAT, items(vec![raw("w"), raw("x")]), &options).await?;
            responses.message().await
        });
        let responses: &[_] = if is_retried { &[UNAVAILABLE, Succeeds] } else { &[UNAVAILABLE] };
        serve(&mut peer, responses).await;
        assert_eq!(soon(call).await.expect("no panic").is_ok(), is_retried, "setting {at}");
    }
}

#[tokio::test(start_paused = true)]
async fn lost_connection_and_failed_reconnection_are_retried() {
    let policy = RetryPolicy::new(5, [Code::Unavailable]);
    let (channel, peer, mut accepted) = connected_by(
        channel_config(|config| {
            config.backoff.base_delay = Duration::from_millis(10);
        }),
        &[],
    )
    .await;
    let call = spawn_echo_with(&channel, raw("x"), CallOptions::default().retry(policy));
    tokio::time::sleep(Duration::from_millis(1)).await;
    drop(peer);
    let mut peer = Peer::server(soon(accepted.recv()).await.expect("it reconnects"), &[]).await;
    assert_eq!(serve(&mut peer, &[Succeeds]).await[0].1.as_deref(), Some("1"));
    soon(call).await.expect("no panic").expect("a response");
}

#[tokio::test(start_paused = true)]
async fn service_config_limits_timeouts_and_sizes() {
    let method =
        r#""timeout": "2s", "waitForReady": true, "maxRequestMessageBytes": 3, "maxResponseMessageBytes": 2"#;
    let (channel, mut peer, _accepted) = connected_by(config(method, ""), &[]).await;
    let error = soon(echo(&channel, raw("long"))).await.expect_err("too long");
    assert_eq!(error.code(), Code::ResourceExhausted, "{error}");
    for (own, expected) in [(None, 2), (Some(1), 1), (Some(5), 2)] {
        let started = Instant::now();
        let options = call_options(|options| options.timeout = own.map(Duration::from_secs));
        let call = spawn_echo_with(&channel, raw("x"), options);
        soon(peer.next_of(Kind::Headers)).await;
        let error = soon(call).await.expect("no panic").expect_err("no response");
        assert_eq!((error.code(), started.elapsed().as_secs()), (Code::DeadlineExceeded, expected));
    }
}

#[test]
fn invalid_service_config_is_an_error_that_names_the_field() {
    let config = config(r#""retryPolicy": { "maxAttempts": 1 }"#, "");
    let error = Channel::new("memory:1", config).expect_err("one attempt is no retry").to_string();
    assert!(error.contains("methodConfig[0].retryPolicy.maxAttempts"), "{error}");
    let config = channel_config(|config| {
        config.service_config = Some(r#"{ "loadBalancingConfig": [{ "fastest": {} }] }"#.into());
    });
    let error = Channel::new("memory:1", config).expect_err("no such policy").to_string();
    assert!(error.contains("fastest"), "{error}");
}
