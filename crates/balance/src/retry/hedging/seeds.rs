//! Hedged calls with random events.

use std::time::{Duration, Instant};

use super::*;
use crate::policy::mix;
use crate::retry::Progress;
use crate::retry::attempt::tests::random_outcome;
use crate::service_config::RetryThrottling;

const MS: Duration = Duration::from_millis(1);

/// Random events in virtual time: the bounds of gRFC A6 hold for every seed, and every call ends.
#[test]
fn hedges_stay_within_all_bounds_for_all_seeds() {
    for seed in 0..100_000 {
        let mut random = seed;
        let mut draw = |bound: u64| {
            random = mix(random);
            random % bound
        };
        let start = Instant::now();
        let delay = MS * [0, 100, 500][draw(3) as usize];
        let codes = [Code::Unavailable, Code::Aborted].into_iter().collect();
        let policy =
            HedgingPolicy { max_attempts: draw(7) as u32, hedging_delay: delay, non_fatal_codes: codes };
        let max_attempts = policy.max_attempts.max(1);
        let deadline = (draw(2) == 0).then(|| start + MS * (1 + draw(2000) as u32));
        let mut state = HedgingState::new(policy, deadline, start);
        let throttle = if draw(2) == 0 { Throttle::default() } else { throttle(1 + draw(12) as u32) };
        let (mut now, mut last_start, mut failed) = (start, None, false);
        let (mut under_way, mut started, mut committed, mut refused) = (Vec::new(), 0, None, 0);
        let mut has_ended = false;
        for _ in 0..200 {
            let step = state.poll(&throttle, now);
            match step {
                HedgingStep::Start(attempt) => {
                    assert_eq!(attempt, started, "seed {seed}");
                    assert!(committed.is_none() && !has_ended, "seed {seed}: started after the commit");
                    assert!(attempt == 0 || throttle.allows_attempt(), "seed {seed}: throttled");
                    let is_in_time = deadline.is_none_or(|deadline| now < deadline);
                    assert!(is_in_time, "seed {seed}: after the deadline");
                    let is_due = last_start.is_none_or(|last: Instant| now >= last + delay);
                    assert!(is_due || failed, "seed {seed}: too early");
                    started += 1;
                    under_way.push(attempt);
                    (last_start, failed) = (Some(now), false);
                    assert!(started <= max_attempts, "seed {seed}: too many attempts");
                    continue;
                }
                HedgingStep::WaitUntil(at) => assert!(at > now, "seed {seed}"),
                HedgingStep::Idle => assert!(!under_way.is_empty(), "seed {seed}: nothing to wait for"),
                HedgingStep::Ended => {
                    assert!(under_way.is_empty(), "seed {seed}");
                    has_ended = true;
                    break;
                }
            }
            if let HedgingStep::WaitUntil(at) = step
                && (under_way.is_empty() || draw(2) == 0)
            {
                now = at;
                continue;
            }
            now += MS * draw(100) as u32;
            let attempt = under_way[draw(under_way.len() as u64) as usize];
            if draw(10) == 0 {
                let others = state.commit(attempt).expect("it is under way");
                assert_eq!(sorted(others, attempt), sorted(under_way, attempt), "seed {seed}");
                (under_way, committed) = (vec![attempt], Some(attempt));
                continue;
            }
            let outcome = random_outcome(&mut draw);
            let could_replay = state.needs_replay();
            match state.on_outcome(attempt, &outcome, &throttle, now) {
                HedgingDecision::Restart => {
                    refused += u32::from(outcome.progress == Progress::Unprocessed);
                    assert!(outcome.progress != Progress::Processed && refused <= 1, "seed {seed}");
                    assert!(could_replay || outcome.progress == Progress::Unsent, "seed {seed}");
                    assert!(committed.is_none(), "seed {seed}: started again after the commit");
                }
                HedgingDecision::Continue => {
                    under_way.retain(|&other| other != attempt);
                    failed = true;
                    assert!(committed.is_none(), "seed {seed}");
                }
                HedgingDecision::End { cancel } => {
                    assert_eq!(sorted(cancel, attempt), sorted(under_way, attempt), "seed {seed}");
                    under_way = Vec::new();
                    committed = Some(attempt);
                }
            }
        }
        assert!(has_ended, "seed {seed}: the call never ends");
    }
}

/// Returns the attempts without one, in order.
fn sorted(mut attempts: Vec<u32>, without: u32) -> Vec<u32> {
    attempts.retain(|&attempt| attempt != without);
    attempts.sort_unstable();
    attempts
}

fn throttle(max_tokens: u32) -> Throttle {
    Throttle::new(Some(RetryThrottling { max_tokens, token_ratio_millis: 300 }))
}
