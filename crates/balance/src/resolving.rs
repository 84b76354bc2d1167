//! When a channel resolves its name again.

use std::time::{Duration, Instant};

use crate::backoff::{CONNECTION_BACKOFF, with_jitter};

/// The resolutions of one name.
///
/// ```text
///   poll ──► Resolve ──on_result(ok)──► nothing to do before a request, or the refresh period
///                    ──on_result(failed)──► again after 1 s × 1.6^n, ±20 %, at most 2 minutes
/// ```
///
/// Resolvers that watch a name and report changes themselves need none of this.
#[derive(Clone, Debug)]
pub struct Resolving {
    min_interval: Duration,
    refresh_period: Option<Duration>,
    failures: u32,
    state: ResolvingState,
}

/// Result of [`Resolving::poll`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResolvingStep {
    /// A resolution starts. [`Resolving::on_result`] ends it.
    Resolve,
    /// The next resolution starts then, or earlier after a request.
    WaitUntil(Instant),
    /// A resolution is under way, or the next one needs a request.
    Idle,
}

#[derive(Clone, Copy, Debug)]
enum ResolvingState {
    /// Before the first resolution.
    Unresolved,
    UnderWay {
        is_requested: bool,
    },
    /// After a resolution. `None` is never.
    Waiting {
        next_at: Option<Instant>,
        on_request_at: Option<Instant>,
    },
}

impl Resolving {
    /// Default minimum interval: 30 s, as in grpc-go and gRPC C++.
    pub const MIN_INTERVAL: Duration = Duration::from_secs(30);
    /// Period of refreshes where they are worth it: 30 s, the usual lifetime of a record in a cluster's DNS.
    pub const REFRESH_PERIOD: Duration = Duration::from_secs(30);

    /// Creates the state of a name that is to be resolved at once.
    pub fn new() -> Self {
        let min_interval = Self::MIN_INTERVAL;
        Self { min_interval, refresh_period: None, failures: 0, state: ResolvingState::Unresolved }
    }

    /// Sets the minimum interval from a successful resolution to the next one; 30 s by default. A failed resolution is
    /// repeated earlier.
    pub fn min_interval(mut self, interval: Duration) -> Self {
        self.min_interval = interval;
        self
    }

    /// Sets the period, with ±20 % jitter, after which a name is resolved again without a request; none by default, as
    /// in gRPC. It is never shorter than the minimum interval.
    ///
    /// Without it a channel whose connections are all well never learns of a new server. A policy that spreads calls
    /// over all endpoints should set it, to [`REFRESH_PERIOD`](Self::REFRESH_PERIOD). A policy that stays on one
    /// endpoint gains nothing. It would even reconnect each time if the name gives another address each time.
    pub fn refresh_period(mut self, period: Option<Duration>) -> Self {
        self.refresh_period = period;
        self
    }

    /// Requests a resolution, since a connection was lost or could not be made. It starts after the minimum interval.
    /// During a resolution, a request asks for another one, since the result may be older than the request. After a
    /// failure it changes nothing: the backoff applies.
    pub fn request(&mut self) {
        match &mut self.state {
            ResolvingState::Unresolved => {}
            ResolvingState::UnderWay { is_requested } => *is_requested = true,
            ResolvingState::Waiting { next_at, on_request_at } => *next_at = *on_request_at,
        }
    }

    /// Starts over: the name is to be resolved at once. For a resolver that reports a change, and for a resolution that
    /// will not end.
    pub fn restart(&mut self) {
        self.state = ResolvingState::Unresolved;
    }

    /// Ends a resolution. It failed if the resolver reports an error, or if the policy cannot use the result, such as
    /// an empty list. `random_unit` is uniform in 0..1.
    pub fn on_result(&mut self, is_ok: bool, random_unit: f64, now: Instant) {
        let is_requested = matches!(self.state, ResolvingState::UnderWay { is_requested: true });
        self.failures = if is_ok { 0 } else { self.failures.saturating_add(1) };
        let (next_at, on_request_at) = if is_ok {
            let period =
                self.refresh_period.map(|period| with_jitter(period, random_unit).max(self.min_interval));
            (period.and_then(|period| now.checked_add(period)), now.checked_add(self.min_interval))
        } else {
            let at = now.checked_add(CONNECTION_BACKOFF.delay(self.failures, random_unit));
            (at, at)
        };
        self.state = ResolvingState::Waiting { next_at, on_request_at };
        if is_requested {
            self.request();
        }
    }

    /// Returns what happens next, unless there is a request before that.
    pub fn poll(&mut self, now: Instant) -> ResolvingStep {
        match self.state {
            ResolvingState::Waiting { next_at: Some(at), .. } if at > now => {
                return ResolvingStep::WaitUntil(at);
            }
            ResolvingState::Waiting { next_at: None, .. } | ResolvingState::UnderWay { .. } => {
                return ResolvingStep::Idle;
            }
            ResolvingState::Unresolved | ResolvingState::Waiting { .. } => {}
        }
        self.state = ResolvingState::UnderWay { is_requested: false };
        ResolvingStep::Resolve
    }
}

impl Default for Resolving {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::mix;

    const SECOND: Duration = Duration::from_secs(1);

    #[derive(Clone, Copy, Debug)]
    enum Event {
        Poll,
        Request,
        Ok,
        Failed,
    }

    use Event::{Failed, Ok, Poll, Request};

    /// Takes the steps, each at a time in milliseconds and with a jitter of 0, polls after each, and compares.
    fn check(mut resolving: Resolving, steps: &[(u32, Event, &str)]) {
        let start = Instant::now();
        for &(ms, event, expected) in steps {
            let now = start + SECOND / 1000 * ms;
            match event {
                Poll => {}
                Request => resolving.request(),
                Ok => resolving.on_result(true, 0.5, now),
                Failed => resolving.on_result(false, 0.5, now),
            }
            let step = match resolving.poll(now) {
                ResolvingStep::Resolve => "resolve".to_owned(),
                ResolvingStep::WaitUntil(at) => format!("wait {}", (at - start).as_millis()),
                ResolvingStep::Idle => "idle".to_owned(),
            };
            assert_eq!(step, expected, "{event:?} at {ms} ms in {steps:?}");
        }
    }

    #[test]
    fn name_is_resolved_at_once_and_then_on_request() {
        let steps = [
            (0, Poll, "resolve"),
            (1, Poll, "idle"),
            (20, Ok, "idle"),
            (999_000, Poll, "idle"),
            (999_000, Request, "resolve"),
            (999_010, Ok, "idle"),
        ];
        check(Resolving::new(), &steps);
        check(Resolving::default(), &[(0, Request, "resolve"), (5, Ok, "idle")]);
    }

    /// grpc-go: requests within 30 s of a result wait, and become one resolution.
    #[test]
    fn requests_wait_for_the_minimum_interval() {
        check(
            Resolving::new(),
            &[
                (0, Poll, "resolve"),
                (1000, Ok, "idle"),
                (2000, Request, "wait 31000"),
                (9000, Request, "wait 31000"),
                (31_000, Poll, "resolve"),
                (31_000, Ok, "idle"),
                (61_000, Request, "resolve"),
            ],
        );
        let short = Resolving::new().min_interval(2 * SECOND);
        check(short, &[(0, Poll, "resolve"), (0, Ok, "idle"), (500, Request, "wait 2000")]);
        let none = Resolving::new().min_interval(Duration::ZERO);
        check(none, &[(0, Poll, "resolve"), (0, Ok, "idle"), (0, Request, "resolve")]);
        let never = Resolving::new().min_interval(Duration::MAX);
        check(never, &[(0, Poll, "resolve"), (0, Ok, "idle"), (9_000_000, Request, "idle")]);
    }

    #[test]
    fn request_during_a_resolution_asks_for_another() {
        let steps =
            [(0, Poll, "resolve"), (10, Request, "idle"), (20, Ok, "wait 30020"), (30_020, Poll, "resolve")];
        check(Resolving::new(), &[&steps[..], &[(30_030, Ok, "idle")]].concat());
        check(Resolving::new(), &[(0, Poll, "resolve"), (10, Request, "idle"), (20, Failed, "wait 1020")]);
    }

    #[test]
    fn failures_back_off_exponentially_until_a_success() {
        check(
            Resolving::new(),
            &[
                (0, Poll, "resolve"),
                (0, Failed, "wait 1000"),
                (500, Request, "wait 1000"),
                (1000, Poll, "resolve"),
                (1000, Failed, "wait 2600"),
                (2600, Poll, "resolve"),
                (2600, Failed, "wait 5160"),
                (5160, Poll, "resolve"),
                (5160, Ok, "idle"),
                (5160, Request, "wait 35160"),
                (35_160, Poll, "resolve"),
                (35_160, Failed, "wait 36160"),
            ],
        );
    }

    #[test]
    fn backoff_is_at_most_two_minutes_with_jitter() {
        let (start, mut resolving) = (Instant::now(), Resolving::new());
        let mut waits = |random_unit| {
            resolving.on_result(false, random_unit, start);
            match resolving.poll(start) {
                ResolvingStep::WaitUntil(at) => (at - start).as_secs(),
                step => panic!("{step:?}"),
            }
        };
        // 1.6^10 = 109.95, 1.6^11 = 175.9
        let delays: Vec<u64> = (0..13).map(|_| waits(0.5)).collect();
        assert_eq!(delays, [1, 1, 2, 4, 6, 10, 16, 26, 42, 68, 109, 120, 120]);
        assert_eq!((waits(0.0), waits(1.0)), (96, 144));
    }

    #[test]
    fn refresh_resolves_without_a_request() {
        let minute = || Resolving::new().refresh_period(Some(60 * SECOND));
        let steps = [
            (0, Poll, "resolve"),
            (0, Ok, "wait 60000"),
            (60_000, Poll, "resolve"),
            (60_000, Failed, "wait 61000"),
            (61_000, Poll, "resolve"),
            (61_000, Ok, "wait 121000"),
        ];
        check(minute(), &steps);
        // A request comes first, and the period starts again.
        let steps = [
            (0, Poll, "resolve"),
            (0, Ok, "wait 60000"),
            (10_000, Request, "wait 30000"),
            (30_000, Poll, "resolve"),
            (30_000, Ok, "wait 90000"),
            (70_000, Request, "resolve"),
        ];
        check(minute(), &steps);
        // The minimum interval applies to refreshes, too.
        let often = Resolving::new().refresh_period(Some(SECOND));
        check(often, &[(0, Poll, "resolve"), (0, Ok, "wait 30000"), (1, Request, "wait 30000")]);
        let endless = Resolving::new().refresh_period(Some(Duration::MAX));
        check(endless, &[(0, Poll, "resolve"), (0, Ok, "idle"), (0, Request, "wait 30000")]);
    }

    #[test]
    fn refresh_has_jitter() {
        for (random_unit, seconds) in [(0.0, 80), (0.5, 100), (1.0, 120)] {
            let (start, mut resolving) =
                (Instant::now(), Resolving::new().refresh_period(Some(100 * SECOND)));
            resolving.on_result(true, random_unit, start);
            assert_eq!(resolving.poll(start), ResolvingStep::WaitUntil(start + seconds * SECOND));
        }
    }

    /// Random events in virtual time: resolutions keep their distance, and no request is forgotten.
    #[test]
    fn resolutions_keep_their_distance_for_all_seeds() {
        for seed in 0..20_000 {
            let mut random = seed;
            let mut draw = |bound: u64| {
                random = mix(random);
                random % bound
            };
            let min_interval = SECOND * draw(40) as u32;
            let refresh_period = (draw(2) == 0).then(|| SECOND * draw(90) as u32);
            let mut resolving = Resolving::new().min_interval(min_interval).refresh_period(refresh_period);
            let mut now = Instant::now();
            let (mut last, mut is_requested, mut is_under_way) = (None, true, false);
            for _ in 0..200 {
                now += SECOND / 10 * draw(100) as u32;
                match resolving.poll(now) {
                    ResolvingStep::Resolve => {
                        assert!(!is_under_way, "seed {seed}: two at once");
                        if let Some((at, was_ok)) = last {
                            let distance = if was_ok { min_interval } else { SECOND / 10 * 8 };
                            assert!(now - at >= distance, "seed {seed}: {:?} after the last", now - at);
                        }
                        (is_under_way, is_requested) = (true, false);
                    }
                    ResolvingStep::WaitUntil(at) => {
                        assert!(!is_under_way && at > now, "seed {seed}");
                        let wait_max = if is_requested { min_interval } else { SECOND * 144 };
                        let is_failed = last.is_some_and(|(_, was_ok)| !was_ok);
                        assert!(is_failed || at - now <= wait_max, "seed {seed}: {:?}", at - now);
                    }
                    ResolvingStep::Idle => assert!(is_under_way || !is_requested, "seed {seed}: forgotten"),
                }
                match draw(4) {
                    0 => {
                        resolving.request();
                        is_requested = true;
                    }
                    1 | 2 if is_under_way => {
                        let is_ok = draw(3) > 0;
                        resolving.on_result(is_ok, draw(1001) as f64 / 1000.0, now);
                        (last, is_under_way) = (Some((now, is_ok)), false);
                    }
                    _ => {}
                }
            }
        }
    }
}
