use std::time::{Duration, Instant};

use super::*;
use crate::retry::Progress;
use crate::service_config::RetryThrottling;

const MS: Duration = Duration::from_millis(1);

/// Something that happens to a call.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// Time passes.
    Poll,
    /// Response headers of an attempt.
    Headers(u32),
    /// An attempt ends.
    Ended(u32, Outcome),
    /// Another call of the channel succeeds.
    OtherOk,
    /// Another call of the channel fails.
    OtherFailed,
}

use Event::{Ended, Headers, OtherFailed, OtherOk, Poll};

/// The example of gRFC A6.
fn policy() -> HedgingPolicy {
    let codes = [Code::Unavailable, Code::Internal, Code::Aborted];
    HedgingPolicy::new(4, 500 * MS).non_fatal_codes(codes)
}

fn ok(attempt: u32) -> Event {
    Ended(attempt, Outcome::new(Code::Ok))
}

fn non_fatal(attempt: u32) -> Event {
    Ended(attempt, Outcome::new(Code::Unavailable))
}

fn fatal(attempt: u32) -> Event {
    Ended(attempt, Outcome::new(Code::InvalidArgument))
}

fn after(attempt: u32, ms: u32) -> Event {
    Ended(attempt, Outcome::new(Code::Unavailable).pushback(Pushback::After(MS * ms)))
}

fn stop(attempt: u32) -> Event {
    Ended(attempt, Outcome::new(Code::Unavailable).pushback(Pushback::Stop))
}

fn throttle(max_tokens: u32, token_ratio_millis: u32) -> Throttle {
    Throttle::new(Some(RetryThrottling { max_tokens, token_ratio_millis }))
}

/// One step: the time in milliseconds, an event, and what the call does then.
type Step<'a> = (u32, Event, &'a str);

/// Takes the steps, polls after each as long as attempts start, and compares what happens.
fn check_with(policy: HedgingPolicy, deadline: Option<u32>, throttle: &Throttle, steps: &[Step<'_>]) {
    let start = Instant::now();
    let mut state = HedgingState::new(policy, deadline.map(|ms| start + MS * ms), start);
    for &(ms, event, expected) in steps {
        let now = start + MS * ms;
        let mut done = vec![match event {
            Poll => String::new(),
            OtherOk => {
                throttle.on_success();
                String::new()
            }
            OtherFailed => {
                throttle.on_failure();
                String::new()
            }
            Headers(attempt) => match state.commit(attempt) {
                Some(others) => format!("cancel {others:?}"),
                None => "lost".to_owned(),
            },
            Ended(attempt, outcome) => match state.on_outcome(attempt, &outcome, throttle, now) {
                HedgingDecision::Continue => String::new(),
                HedgingDecision::Restart => "restart".to_owned(),
                HedgingDecision::End { cancel } => format!("end, cancel {cancel:?}"),
            },
        }];
        let last = loop {
            match state.poll(throttle, now) {
                HedgingStep::Start(attempt) => done.push(format!("start {attempt}")),
                HedgingStep::WaitUntil(at) => break format!("wait {}", (at - start).as_millis()),
                HedgingStep::Idle => break "idle".to_owned(),
                HedgingStep::Ended => break "ended".to_owned(),
            }
        };
        done.push(last);
        done.retain(|part| !part.is_empty());
        let done = done.join(", ");
        assert_eq!(done, expected, "{event:?} at {ms} ms in {steps:?}");
    }
}

fn check(policy: HedgingPolicy, steps: &[Step<'_>]) {
    check_with(policy, None, &Throttle::default(), steps);
}

#[test]
fn a6_hedges_start_at_intervals_up_to_max_attempts() {
    check(
        policy(),
        &[
            (0, Poll, "start 0, wait 500"),
            (1, Poll, "wait 500"),
            (499, Poll, "wait 500"),
            (500, Poll, "start 1, wait 1000"),
            (1000, Poll, "start 2, wait 1500"),
            (1500, Poll, "start 3, idle"),
            (9000, Poll, "idle"),
        ],
    );
    // A late poll moves the hedges after it.
    check(policy(), &[(0, Poll, "start 0, wait 500"), (700, Poll, "start 1, wait 1200")]);
    let at_once = HedgingPolicy { hedging_delay: Duration::ZERO, ..policy() };
    check(at_once, &[(0, Poll, "start 0, start 1, start 2, start 3, idle")]);
    let endless = HedgingPolicy { hedging_delay: Duration::MAX, ..policy() };
    check(endless, &[(0, Poll, "start 0, idle"), (900, non_fatal(0), "start 1, idle")]);
    for max_attempts in [0, 1] {
        let single = HedgingPolicy { max_attempts, ..policy() };
        check(single, &[(0, Poll, "start 0, idle"), (700, Poll, "idle")]);
    }
}

#[test]
fn a6_first_headers_commit_and_cancel_the_others() {
    let steps = [
        (0, Poll, "start 0, wait 500"),
        (500, Poll, "start 1, wait 1000"),
        (1000, Poll, "start 2, wait 1500"),
        (1100, Headers(1), "cancel [0, 2], idle"),
        (1100, Headers(1), "cancel [], idle"),
    ];
    let with = |more: &[Step<'_>]| check(policy(), &[&steps, more].concat());
    // The others are late; what the committed attempt says is the call's outcome, whatever it is.
    with(&[(1101, Headers(0), "lost, idle"), (1102, ok(2), "idle"), (1600, ok(1), "end, cancel [], ended")]);
    with(&[(1200, non_fatal(1), "end, cancel [], ended"), (1201, non_fatal(0), "ended")]);
    let unsent = Outcome::new(Code::Unavailable).progress(Progress::Unsent);
    with(&[(1200, Ended(1, unsent), "end, cancel [], ended")]);
    with(&[(1200, after(1, 10), "end, cancel [], ended")]);
}

#[test]
fn a6_ok_and_fatal_codes_end_the_call() {
    for end in [ok, fatal] {
        check(
            policy(),
            &[
                (0, Poll, "start 0, wait 500"),
                (500, Poll, "start 1, wait 1000"),
                (600, end(0), "end, cancel [1], ended"),
                (601, end(1), "ended"),
                (601, Headers(1), "lost, ended"),
                (1000, Poll, "ended"),
            ],
        );
    }
    // Without non-fatal codes every code is fatal, even with a pushback; OK is never a failure.
    let after = |code| Ended(0, Outcome::new(code).pushback(Pushback::After(MS)));
    let none = policy().non_fatal_codes::<Code>([]);
    check(none, &[(0, Poll, "start 0, wait 500"), (1, after(Code::Internal), "end, cancel [], ended")]);
    let all = policy().non_fatal_codes(Code::ALL);
    check(all, &[(0, Poll, "start 0, wait 500"), (1, after(Code::Ok), "end, cancel [], ended")]);
}

#[test]
fn a6_non_fatal_code_starts_the_next_hedge_at_once() {
    check(
        policy(),
        &[
            (0, Poll, "start 0, wait 500"),
            (200, non_fatal(0), "start 1, wait 700"),
            (700, Poll, "start 2, wait 1200"),
            (800, non_fatal(2), "start 3, idle"),
            (850, non_fatal(3), "idle"),
            (900, non_fatal(1), "end, cancel [], ended"),
        ],
    );
}

#[test]
fn a6_pushback_delays_the_next_hedge() {
    // The policy and the events of gRPC Java's test: a delay of 100 s, pushbacks of 101 s and 99 s.
    let java = HedgingPolicy { max_attempts: 5, hedging_delay: 100_000 * MS, ..policy() };
    check(
        java,
        &[
            (0, Poll, "start 0, wait 100000"),
            (100_000, Poll, "start 1, wait 200000"),
            (100_000, after(0, 101_000), "wait 201000"),
            (201_000, Poll, "start 2, wait 301000"),
            (201_000, after(1, 99_000), "wait 300000"),
            (300_000, Poll, "start 3, wait 400000"),
            (300_001, fatal(3), "end, cancel [2], ended"),
        ],
    );
    // The call waits even if no other attempt is under way.
    let steps =
        [(0, Poll, "start 0, wait 500"), (10, after(0, 90), "wait 100"), (100, Poll, "start 1, wait 600")];
    check(policy(), &steps);
    check(policy(), &[(0, Poll, "start 0, wait 500"), (10, after(0, 0), "start 1, wait 510")]);
    // A failure without pushback does not shorten the delay; the next pushback replaces it.
    let two = [
        (0, Poll, "start 0, wait 500"),
        (500, Poll, "start 1, wait 1000"),
        (600, after(0, 2000), "wait 2600"),
    ];
    check(policy(), &[&two[..], &[(700, non_fatal(1), "wait 2600")]].concat());
    check(
        policy(),
        &[&two[..], &[(700, after(1, 50), "wait 750"), (750, Poll, "start 2, wait 1250")]].concat(),
    );
    // Once it is over, failures count again.
    let more = [(2600, Poll, "start 2, wait 3100"), (2700, non_fatal(2), "start 3, idle")];
    check(policy(), &[&two[..], &more].concat());
    let last = HedgingPolicy { max_attempts: 1, ..policy() };
    check(last, &[(0, Poll, "start 0, idle"), (10, after(0, 90), "end, cancel [], ended")]);
}

#[test]
fn a6_pushback_not_to_retry_stops_further_hedges() {
    let two = [(0, Poll, "start 0, wait 500"), (500, Poll, "start 1, wait 1000"), (600, stop(0), "idle")];
    check(policy(), &[&two[..], &[(1000, Poll, "idle"), (1100, ok(1), "end, cancel [], ended")]].concat());
    check(policy(), &[&two[..], &[(1000, non_fatal(1), "end, cancel [], ended")]].concat());
    check(policy(), &[&two[..], &[(1000, after(1, 10), "end, cancel [], ended")]].concat());
    check(policy(), &[(0, Poll, "start 0, wait 500"), (10, stop(0), "end, cancel [], ended")]);
}

#[test]
fn a6_refused_hedge_starts_again_once_with_its_number() {
    let ended = |attempt, progress| Ended(attempt, Outcome::new(Code::Unavailable).progress(progress));
    check(
        policy(),
        &[
            (0, Poll, "start 0, wait 500"),
            (10, ended(0, Progress::Unsent), "restart, wait 500"),
            (20, ended(0, Progress::Unprocessed), "restart, wait 500"),
            (500, Poll, "start 1, wait 1000"),
            (510, ended(1, Progress::Unsent), "restart, wait 1000"),
            (520, ended(1, Progress::Unprocessed), "start 2, wait 1020"),
            (530, Headers(0), "cancel [2], idle"),
        ],
    );
    // One attempt was processed: a refusal is up to the policy.
    let steps = [
        (0, Poll, "start 0, wait 500"),
        (10, non_fatal(0), "start 1, wait 510"),
        (20, ended(1, Progress::Unprocessed), "start 2, wait 520"),
    ];
    check(policy(), &steps);
    let ok = Outcome::new(Code::Ok).progress(Progress::Unprocessed);
    check(policy(), &[(0, Poll, "start 0, wait 500"), (1, Ended(0, ok), "end, cancel [], ended")]);
    let fatal = Outcome::new(Code::Cancelled).progress(Progress::Unprocessed);
    check(policy(), &[(0, Poll, "start 0, wait 500"), (1, Ended(0, fatal), "restart, wait 500")]);
}

#[test]
fn a6_deadline_applies_to_all_hedges() {
    let check =
        |deadline, steps: &[Step<'_>]| check_with(policy(), Some(deadline), &Throttle::default(), steps);
    let two = [(0, Poll, "start 0, wait 500"), (500, Poll, "start 1, idle")];
    check(1000, &two);
    // An outcome may still bring the next start forward.
    check(1000, &[&two[..], &[(600, non_fatal(0), "start 2, idle")]].concat());
    check(
        1000,
        &[&two[..], &[(600, after(0, 400), "idle"), (700, after(1, 300), "end, cancel [], ended")]].concat(),
    );
    check(1000, &[&two[..], &[(600, after(0, 9), "wait 609"), (1000, Poll, "idle")]].concat());
    check(500, &[(0, Poll, "start 0, idle"), (500, non_fatal(0), "end, cancel [], ended")]);
    let unsent = Ended(0, Outcome::new(Code::Unavailable).progress(Progress::Unsent));
    check(
        500,
        &[(0, Poll, "start 0, idle"), (499, unsent, "restart, idle"), (500, unsent, "end, cancel [], ended")],
    );
    // The call fails by its deadline, not by a missing attempt.
    check(0, &[(0, Poll, "start 0, idle")]);
}

#[test]
fn a6_throttled_channel_sends_only_the_first_attempt() {
    let check = |throttle: &Throttle, steps: &[Step<'_>]| check_with(policy(), None, throttle, steps);
    // 4 tokens: more than half are left after one failure, not after two. Tokens that come back do not matter.
    check(
        &throttle(4, 800),
        &[
            (0, OtherFailed, "start 0, wait 500"),
            (10, OtherFailed, "wait 500"),
            (500, Poll, "idle"),
            (501, OtherOk, "idle"),
            (1000, Poll, "idle"),
            (1001, fatal(0), "end, cancel [], ended"),
        ],
    );
    // gRPC Java's test: the hedges themselves throttle; the first failure leaves 3 tokens.
    let low = throttle(4, 800);
    check(
        &low,
        &[
            (0, Poll, "start 0, wait 500"),
            (500, Poll, "start 1, wait 1000"),
            (600, non_fatal(0), "start 2, wait 1100"),
            (700, non_fatal(1), "idle"),
            (701, OtherOk, "idle"),
            (800, non_fatal(2), "end, cancel [], ended"),
        ],
    );
    assert_eq!(low.token_millis(), 1800);
    // A throttled call does not wait for the time that the server names.
    let steps = [(0, OtherFailed, "start 0, wait 500"), (9, after(0, 50), "end, cancel [], ended")];
    check(&throttle(4, 800), &steps);
    // Throttled by other calls while it waits: it ends when the attempt is due.
    check(
        &throttle(4, 800),
        &[
            (0, Poll, "start 0, wait 500"),
            (0, after(0, 50), "wait 50"),
            (49, OtherFailed, "wait 50"),
            (50, Poll, "ended"),
            (51, OtherOk, "ended"),
        ],
    );
}

#[test]
fn a6_outcomes_that_the_throttle_counts() {
    fn check(event: Event, expected: u64) {
        let throttle = throttle(10, 500);
        throttle.on_failure();
        let mut state = HedgingState::new(policy(), None, Instant::now());
        state.poll(&throttle, Instant::now());
        if let Ended(attempt, outcome) = event {
            state.on_outcome(attempt, &outcome, &throttle, Instant::now());
        }
        assert_eq!(throttle.token_millis(), expected, "{event:?}");
    }
    check(ok(0), 9500);
    check(non_fatal(0), 8000);
    check(after(0, 10), 8000);
    check(stop(0), 8000);
    check(Ended(0, Outcome::new(Code::NotFound).pushback(Pushback::Stop)), 8000);
    check(fatal(0), 9000);
    check(Ended(0, Outcome::new(Code::Unavailable).progress(Progress::Unsent)), 9000);
    check(Ended(0, Outcome::new(Code::Unavailable).progress(Progress::Unprocessed)), 9000);
    // Not under way: cancelled before, or never started.
    check(non_fatal(1), 9000);
    check(ok(1), 9000);
}

#[test]
fn messages_are_kept_while_an_attempt_may_follow() {
    let (start, throttle) = (Instant::now(), Throttle::default());
    let (non_fatal, refused) = (Outcome::new(Code::Unavailable), Progress::Unprocessed);
    let started = |attempts: u32| {
        let policy = HedgingPolicy { hedging_delay: Duration::ZERO, max_attempts: 3, ..policy() };
        let mut state = HedgingState::new(policy, None, start);
        (0..attempts)
            .for_each(|attempt| assert_eq!(state.poll(&throttle, start), HedgingStep::Start(attempt)));
        state
    };
    let mut state = started(3);
    assert!(state.needs_replay(), "one may be refused");
    state.on_outcome(0, &non_fatal.progress(refused), &throttle, start);
    assert!(!state.needs_replay(), "all attempts have started");
    assert_eq!(state.transparent_retries(), 1);
    let mut state = started(2);
    state.on_outcome(0, &non_fatal, &throttle, start);
    assert!(state.needs_replay(), "the third may start");
    state.on_outcome(1, &non_fatal.pushback(Pushback::Stop), &throttle, start);
    assert!(!state.needs_replay());
    let mut state = started(2);
    assert_eq!(state.commit(1), Some(vec![0]));
    assert!(!state.needs_replay());
}
