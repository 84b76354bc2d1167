//! Rate limits of the endpoints of a balanced channel.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use thalweg_engine::ConnectivityState;
use thalweg_engine::policy::{Decision, EndpointView, Pick, PickArgs, Picker, Policy};

/// Number of calls that an endpoint may start in a period, which begins with its first call.
#[derive(Clone, Debug)]
pub(super) struct RateLimit {
    calls: u64,
    period: Duration,
    current: Arc<Mutex<Period>>,
}

/// The current period.
#[derive(Debug)]
struct Period {
    /// `None` before the first call.
    ends: Option<Instant>,
    left: u64,
}

impl RateLimit {
    pub(super) fn new(calls: u64, period: Duration) -> Self {
        Self { calls, period, current: Arc::new(Mutex::new(Period { ends: None, left: 0 })) }
    }

    /// Counts a call at `now`.
    ///
    /// # Errors
    /// Returns the end of the period if no call is left in it.
    fn start(&self, now: Instant) -> Result<(), Instant> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let ends = match current.ends {
            Some(ends) if now < ends => ends,
            _ => {
                // A period beyond the end of time never ends.
                let Some(ends) = now.checked_add(self.period) else { return Ok(()) };
                *current = Period { ends: Some(ends), left: self.calls };
                ends
            }
        };
        match current.left.checked_sub(1) {
            Some(left) => {
                current.left = left;
                Ok(())
            }
            None => Err(ends),
        }
    }
}

/// A policy whose calls observe the [`RateLimit`] of each endpoint. If the chosen endpoint has no call left, another
/// ready one takes the call; if none has, the call waits.
#[derive(Debug)]
pub(super) struct RateLimited(pub(super) Box<dyn Policy>);

impl Policy for RateLimited {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn decide(&mut self, endpoints: &[EndpointView<'_>], now: Instant) -> Decision {
        let mut decision = self.0.decide(endpoints, now);
        let limits: Vec<_> = endpoints.iter().map(|view| view.endpoint.get::<RateLimit>().cloned()).collect();
        if limits.iter().any(Option::is_some) {
            let is_ready = |view: &EndpointView<'_>| view.state == ConnectivityState::Ready;
            let ready = (0..endpoints.len()).filter(|&at| is_ready(&endpoints[at])).collect();
            let now = || tokio::time::Instant::now().into_std();
            decision.picker = Arc::new(LimitedPicker { picker: decision.picker, limits, ready, now });
        }
        decision
    }
}

#[derive(Debug)]
struct LimitedPicker {
    picker: Arc<dyn Picker>,
    /// By position.
    limits: Vec<Option<RateLimit>>,
    /// Positions of the endpoints that were ready.
    ready: Vec<usize>,
    now: fn() -> Instant,
}

impl LimitedPicker {
    fn start(&self, at: usize) -> Result<(), Instant> {
        self.limits.get(at).and_then(Option::as_ref).map_or(Ok(()), |limit| limit.start((self.now)()))
    }
}

impl Picker for LimitedPicker {
    fn pick(&self, call: &PickArgs<'_>) -> Pick {
        let pick = self.picker.pick(call);
        let Pick::Endpoint(chosen) = pick else { return pick };
        let Err(mut free_at) = self.start(chosen) else { return pick };
        // Starting with another endpoint each time.
        let (before, after) = self.ready.split_at(call.turn as usize % self.ready.len().max(1));
        for &other in after.iter().chain(before) {
            match self.start(other) {
                Ok(()) => return Pick::Endpoint(other),
                Err(ends) => free_at = free_at.min(ends),
            }
        }
        Pick::QueueUntil(free_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn period_starts_with_a_call() {
        let (limit, start) = (RateLimit::new(2, Duration::from_secs(10)), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let check = |seconds, expected: Result<(), u64>| {
            assert_eq!(limit.start(at(seconds)), expected.map_err(at), "after {seconds} s");
        };
        check(5, Ok(()));
        check(14, Ok(()));
        check(14, Err(15));
        check(15, Ok(()));
        check(100, Ok(()));
        check(109, Ok(()));
        check(109, Err(110));
        let endless = RateLimit::new(1, Duration::MAX);
        assert_eq!(endless.start(start).and(endless.start(start)), Ok(()));
    }

    /// Chooses the first endpoint.
    #[derive(Debug)]
    struct First;

    impl Picker for First {
        fn pick(&self, _: &PickArgs<'_>) -> Pick {
            Pick::Endpoint(0)
        }
    }

    #[test]
    fn calls_go_to_endpoints_with_calls_left() {
        let limit = |calls| Some(RateLimit::new(calls, Duration::from_secs(10)));
        let check = |limits: Vec<Option<RateLimit>>, ready: &[usize], expected: &[Option<usize>]| {
            let picker =
                LimitedPicker { picker: Arc::new(First), limits, ready: ready.to_vec(), now: Instant::now };
            for (turn, expected) in (0..).zip(expected) {
                let picked = match picker.pick(&PickArgs::new(turn, &|_| 0)) {
                    Pick::Endpoint(at) => Some(at),
                    Pick::QueueUntil(_) => None,
                    other => panic!("{other:?}"),
                };
                assert_eq!(picked, *expected, "call {turn}");
            }
        };
        check(vec![limit(1), limit(2)], &[0, 1], &[Some(0), Some(1), Some(1), None]);
        check(vec![limit(1), limit(2)], &[0], &[Some(0), None]);
        check(vec![limit(1), None], &[0, 1], &[Some(0), Some(1), Some(1)]);
    }
}
