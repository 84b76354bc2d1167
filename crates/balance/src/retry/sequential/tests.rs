use std::time::{Duration, Instant};

use super::*;
use crate::policy::mix;
use crate::retry::Progress::{self, Unprocessed, Unsent};
use crate::retry::attempt::tests::random_outcome;
use crate::service_config::RetryThrottling;

const MS: Duration = Duration::from_millis(1);

/// The example of gRFC A6.
fn policy() -> RetryPolicy {
    RetryPolicy::new(4, [Code::Unavailable]).backoff(100 * MS, 1000 * MS, 2.0)
}

fn unavailable() -> Outcome {
    Outcome::new(Code::Unavailable)
}

fn after(ms: u32) -> Outcome {
    unavailable().pushback(Pushback::After(MS * ms))
}

fn throttle(max_tokens: u32, token_ratio_millis: u32) -> Throttle {
    Throttle::new(Some(RetryThrottling { max_tokens, token_ratio_millis }))
}

/// One step: the time in milliseconds when an attempt ends, its outcome, and the decision in words.
type Step = (u32, Outcome, &'static str);

/// Takes the steps with a jitter of 0, and compares the decisions. Returns the state.
fn check_with(mut state: RetryState, start: Instant, throttle: &Throttle, steps: &[Step]) -> RetryState {
    for &(ms, outcome, expected) in steps {
        let decision = match state.on_outcome(&outcome, throttle, 0.5, start + MS * ms) {
            RetryDecision::Restart => "restart".to_owned(),
            RetryDecision::Retry { at } => format!("retry at {}", (at - start).as_millis()),
            RetryDecision::Stop => "stop".to_owned(),
        };
        assert_eq!(decision, expected, "{outcome:?} at {ms} ms in {steps:?}");
    }
    state
}

fn check(policy: Option<RetryPolicy>, steps: &[Step]) -> RetryState {
    check_with(RetryState::new(policy, None), Instant::now(), &Throttle::default(), steps)
}

#[test]
fn stopped_retries_have_a_reason() {
    let check = |state: RetryState, throttle: &Throttle, outcome: Outcome, expected: Option<StopReason>| {
        let mut state = state;
        assert_eq!(state.on_outcome(&outcome, throttle, 0.5, Instant::now()), RetryDecision::Stop);
        assert_eq!(state.stop_reason(), expected, "{outcome:?}");
    };
    let state = |deadline| RetryState::new(Some(policy()), deadline);
    let (free, used_up) = (Throttle::default(), throttle(1, 100));
    let soon = Some(Instant::now() + Duration::from_secs(1));
    let mut last = state(None);
    for _ in 0..3 {
        assert_ne!(last.on_outcome(&unavailable(), &free, 0.5, Instant::now()), RetryDecision::Stop);
    }
    check(last, &free, unavailable(), Some(StopReason::AllFailed(4)));
    check(state(None), &used_up, unavailable(), Some(StopReason::Throttled));
    check(state(None), &free, unavailable().pushback(Pushback::Stop), Some(StopReason::PushedBack));
    check(state(soon), &free, after(2000), Some(StopReason::TooLate));
    check(state(None), &free, Outcome::new(Code::NotFound), None);
    check(RetryState::new(None, None), &free, unavailable(), None);
    let mut committed = state(None);
    committed.commit();
    check(committed, &free, unavailable(), None);
}

#[test]
fn a6_retries_back_off_exponentially_until_max_attempts() {
    let state = check(
        Some(policy()),
        &[
            (10, unavailable(), "retry at 110"),
            (120, unavailable(), "retry at 320"),
            (330, unavailable(), "retry at 730"),
            (740, unavailable(), "stop"),
        ],
    );
    assert_eq!((state.previous_attempts(), state.transparent_retries()), (3, 0));
    // The maximum applies before the jitter.
    let long = policy().backoff(100 * MS, 250 * MS, 2.0);
    let steps = [
        (0, unavailable(), "retry at 100"),
        (0, unavailable(), "retry at 200"),
        (0, unavailable(), "retry at 250"),
    ];
    check(Some(long), &steps);
}

#[test]
fn a6_jitter_is_a_fifth_of_the_backoff() {
    let start = Instant::now();
    for (random_unit, expected) in [(0.0, [80, 160, 320]), (1.0, [120, 240, 480])] {
        let mut state = RetryState::new(Some(policy()), None);
        for ms in expected {
            let decision = state.on_outcome(&unavailable(), &Throttle::default(), random_unit, start);
            assert_eq!(decision, RetryDecision::Retry { at: start + MS * ms });
        }
    }
}

#[test]
fn a6_outcomes_that_end_the_call() {
    for code in Code::ALL {
        let expected = if code == Code::Unavailable { "retry at 100" } else { "stop" };
        check(Some(policy()), &[(0, Outcome::new(code), expected)]);
        check(None, &[(0, Outcome::new(code), "stop")]);
    }
    // OK is not a failure, even if a policy lists it.
    check(Some(RetryPolicy::new(4, [Code::Ok])), &[(0, Outcome::new(Code::Ok), "stop")]);
    // Later attempts end by the same rules.
    let steps = [(0, unavailable(), "retry at 100"), (150, Outcome::new(Code::Internal), "stop")];
    check(Some(policy()), &steps);
    for max_attempts in [0, 1] {
        check(Some(RetryPolicy { max_attempts, ..policy() }), &[(0, unavailable(), "stop")]);
    }
}

#[test]
fn a6_pushback_delays_exactly_and_resets_the_backoff() {
    let policy = RetryPolicy { max_attempts: 7, ..policy() };
    check(
        Some(policy.clone()),
        &[
            (0, unavailable(), "retry at 100"),
            (100, unavailable(), "retry at 300"),
            (300, after(4567), "retry at 4867"),
            (4867, unavailable(), "retry at 4967"),
            (4967, unavailable(), "retry at 5167"),
            (5167, after(0), "retry at 5167"),
            (5167, after(1000), "stop"),
        ],
    );
    check(Some(policy.clone()), &[(0, unavailable().pushback(Pushback::Stop), "stop")]);
    // grpc-go and gRPC C++: a pushback does not make a code retryable.
    let internal = Outcome::new(Code::Internal).pushback(Pushback::After(MS));
    check(Some(policy), &[(0, internal, "stop")]);
}

#[test]
fn a6_refused_attempt_is_retried_once_at_once_and_uncounted() {
    let (refused, unsent) = (unavailable().progress(Unprocessed), unavailable().progress(Unsent));
    let state = check(
        Some(policy()),
        &[
            (0, unsent, "restart"),
            (1, unsent, "restart"),
            (2, refused, "restart"),
            (3, refused, "retry at 103"),
            (103, unsent, "restart"),
            (104, refused, "retry at 304"),
            (305, unavailable(), "retry at 705"),
            (705, unsent, "restart"),
            (706, unavailable(), "stop"),
        ],
    );
    assert_eq!((state.previous_attempts(), state.transparent_retries()), (3, 5));
    // After an attempt that was processed a refusal is up to the policy.
    check(Some(policy()), &[(0, unavailable(), "retry at 100"), (100, refused, "retry at 300")]);
    // Without a policy, and with codes other than the policy's.
    check(
        None,
        &[(0, unsent, "restart"), (0, refused, "restart"), (0, unsent, "restart"), (1, refused, "stop")],
    );
    let internal = Outcome::new(Code::Internal).progress(Unprocessed);
    check(Some(policy()), &[(0, internal, "restart"), (0, internal, "stop")]);
}

/// grpc-go's test of statistics: a refused attempt, a pushback of 10 ms, a success.
#[test]
fn refused_then_pushed_back_then_ok() {
    let refused = unavailable().progress(Unprocessed);
    let steps =
        [(0, refused, "restart"), (5, after(10), "retry at 15"), (16, Outcome::new(Code::Ok), "stop")];
    let state = check(Some(policy()), &steps);
    assert_eq!((state.previous_attempts(), state.transparent_retries()), (1, 1));
}

#[test]
fn a6_committed_call_is_not_retried() {
    let unsent = unavailable().progress(Unsent);
    for outcome in [unavailable(), after(0), unavailable().progress(Unprocessed), unsent] {
        let mut state = RetryState::new(Some(policy()), None);
        state.commit();
        assert!(!state.needs_replay());
        check_with(state, Instant::now(), &Throttle::default(), &[(0, outcome, "stop")]);
    }
    // A buffer that overflows during a backoff commits the call to the attempt that follows.
    let mut state = check(Some(policy()), &[(0, unavailable(), "retry at 100")]);
    state.commit();
    check_with(state, Instant::now(), &Throttle::default(), &[(100, unavailable(), "stop")]);
}

#[test]
fn messages_are_kept_while_an_attempt_may_follow() {
    fn check(policy: Option<RetryPolicy>, outcomes: &[Outcome], expected: &[bool]) {
        let mut state = RetryState::new(policy, None);
        let mut needs = vec![state.needs_replay()];
        for outcome in outcomes {
            state.on_outcome(outcome, &Throttle::default(), 0.5, Instant::now());
            needs.push(state.needs_replay());
        }
        assert_eq!(needs, expected, "{outcomes:?}");
    }
    let refused = unavailable().progress(Unprocessed);
    check(None, &[refused], &[true, false]);
    check(None, &[unavailable().progress(Unsent), refused], &[true, true, false]);
    let [a, b, c] = [unavailable(); 3];
    check(Some(policy()), &[a, b, c], &[true, true, true, false]);
    check(Some(policy()), &[refused, a, b, c], &[true, true, true, true, false]);
}

#[test]
fn a6_deadline_applies_to_all_attempts() {
    let start = Instant::now();
    let check = |steps: &[Step]| {
        let state = RetryState::new(Some(policy()), Some(start + 301 * MS));
        check_with(state, start, &Throttle::default(), steps);
    };
    check(&[(0, unavailable(), "retry at 100"), (100, unavailable(), "retry at 300")]);
    check(&[(0, unavailable(), "retry at 100"), (101, unavailable(), "stop")]);
    check(&[(0, after(300), "retry at 300")]);
    check(&[(0, after(301), "stop")]);
    check(&[(300, unavailable().progress(Unsent), "restart"), (301, unavailable().progress(Unsent), "stop")]);
    // A pushback beyond the clock's range means no retry.
    let endless = unavailable().pushback(Pushback::After(Duration::MAX));
    check_with(RetryState::new(Some(policy()), None), start, &Throttle::default(), &[(0, endless, "stop")]);
}

/// grpc-go's test of throttling, with the same bucket: 10 tokens, ratio 0.5. Each call has at most four attempts.
#[test]
fn throttled_channel_does_not_retry() {
    let throttle = throttle(10, 500);
    // Failed attempts of each call before its success, attempts that were made, and tokens after it in thousandths.
    let calls = [
        (0, 1, 10_000),
        (2, 3, 8500),
        (2, 3, 7000),
        (9, 2, 5000),
        (9, 1, 4000),
        (0, 1, 4500),
        (0, 1, 5000),
        (0, 1, 5500),
        (0, 1, 6000),
        (0, 1, 6500),
        (1, 2, 6000),
        (9, 1, 5000),
    ];
    for (at, (failures, attempts, tokens)) in calls.into_iter().enumerate() {
        let mut state = RetryState::new(Some(policy()), None);
        let mut made = 0;
        loop {
            made += 1;
            let outcome = if made > failures { Outcome::new(Code::Ok) } else { unavailable() };
            if state.on_outcome(&outcome, &throttle, 0.5, Instant::now()) == RetryDecision::Stop {
                break;
            }
        }
        assert_eq!((made, throttle.token_millis()), (attempts, tokens), "call {at}");
    }
}

#[test]
fn a6_failures_that_the_throttle_counts() {
    fn check(policy: Option<&RetryPolicy>, outcome: Outcome, is_committed: bool, expected: u64) {
        let throttle = throttle(10, 500);
        let mut state = RetryState::new(policy.cloned(), None);
        state.is_committed = is_committed;
        state.on_outcome(&outcome, &throttle, 0.5, Instant::now());
        assert_eq!(throttle.token_millis(), expected, "{policy:?} {outcome:?} {is_committed}");
    }
    let (policy, internal) = (policy(), Outcome::new(Code::Internal));
    check(Some(&policy), unavailable(), false, 9000);
    check(Some(&policy), unavailable(), true, 9000);
    check(Some(&policy), after(5), false, 9000);
    check(Some(&policy), unavailable().pushback(Pushback::Stop), false, 9000);
    check(Some(&policy), internal.pushback(Pushback::Stop), false, 9000);
    check(None, internal.pushback(Pushback::Stop), false, 9000);
    // Malformed requests, calls without a policy and transparent retries say nothing about the server's load.
    check(Some(&policy), internal, false, 10_000);
    check(None, unavailable(), false, 10_000);
    check(Some(&policy), unavailable().progress(Unsent), false, 10_000);
    check(Some(&policy), unavailable().progress(Unprocessed), false, 10_000);
    // Half of the tokens are too few, even for a retry that the server asks for.
    let few = throttle(2, 1);
    check_with(RetryState::new(Some(policy), None), Instant::now(), &few, &[(0, after(5), "stop")]);
    few.on_success();
    assert_eq!(few.token_millis(), 1001);
}

/// Random outcomes in virtual time: the bounds of gRFC A6 hold for every seed.
#[test]
fn retries_stay_within_all_bounds_for_all_seeds() {
    let start = Instant::now();
    for seed in 0..100_000 {
        let mut random = seed;
        let mut draw = |bound: u64| {
            random = mix(random);
            random % bound
        };
        let max_attempts = draw(6) as u32;
        let policy = RetryPolicy::new(max_attempts, [Code::Unavailable, Code::Aborted]);
        let policy = (draw(8) > 0).then_some(policy);
        let deadline = (draw(2) == 0).then(|| start + MS * draw(3000) as u32);
        let mut state = RetryState::new(policy.clone(), deadline);
        let throttle = if draw(2) == 0 { Throttle::default() } else { throttle(1 + draw(12) as u32, 300) };
        let (mut now, mut attempts, mut refused, mut is_committed) = (start, 1, 0, false);
        for _ in 0..40 {
            now += MS * draw(50) as u32;
            if draw(12) == 0 {
                state.commit();
                is_committed = true;
            }
            let outcome = random_outcome(&mut draw);
            let could_replay = state.needs_replay();
            match state.on_outcome(&outcome, &throttle, draw(1001) as f64 / 1000.0, now) {
                RetryDecision::Stop => break,
                RetryDecision::Restart => {
                    assert!(outcome.progress != Progress::Processed, "seed {seed}");
                    refused += u32::from(outcome.progress == Unprocessed);
                }
                RetryDecision::Retry { at } => {
                    attempts += 1;
                    let delay = at - now;
                    match outcome.pushback {
                        Pushback::After(asked) => assert_eq!(delay, asked, "seed {seed}"),
                        Pushback::Stop => panic!("seed {seed}: retried although the server forbade it"),
                        Pushback::None => assert!((80 * MS..=1200 * MS).contains(&delay), "seed {seed}"),
                    }
                    assert!(
                        policy.as_ref().is_some_and(|policy| policy.retryable_codes.contains(outcome.code))
                    );
                    assert!(throttle.allows_attempt(), "seed {seed}");
                    now = at;
                }
            }
            assert!(!is_committed, "seed {seed}: retried after the commit");
            assert!(could_replay || outcome.progress == Unsent, "seed {seed}: its messages were dropped");
            assert!(
                deadline.is_none_or(|deadline| now < deadline),
                "seed {seed}: retried after the deadline"
            );
            assert!(refused <= 1 && attempts <= max_attempts.max(1), "seed {seed}: too many attempts");
            assert_eq!(state.previous_attempts(), attempts - 1, "seed {seed}");
        }
    }
}
