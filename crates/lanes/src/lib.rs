//! How many lanes a channel should have: a pure function of samples and time.
//!
//! ```text
//!             ticks that tell a load                      a trial is decided
//!   Steady ───────────────────────► Settling ──► Trying ─────────────────────► Settling ──► Steady
//!     ▲  another load, or a retry       ▲           │ the search wants another number
//!     └─────────────────────────────────┴───────────┘
//! ```
//!
//! **Signals** only say whether a trial is worth it; what is kept, trials decide. The one that matters is that a call
//! takes longer than the network's round trip: what is not the network's may be the lane's, the server's connection's
//! or nobody's, and only trying tells. Below [`PolicyConfig::late_share_min`] there is nothing to win, so a far network
//! is not probed at all. If the round trip is unknown it counts as nothing. A busy driver, late writes, a contended
//! lock and flow control are reasons of their own, for streams, whose messages do not wait for each other.
//!
//! **Measure.** Little's law gives latency for free: calls in flight over rate. A gain is that of the rate plus a fifth
//! of that of the latency (logarithms): callers who wait show a gain in rate, calls at a fixed rate one in latency, of
//! which 18 % count as much as 3 % of rate. A trial ends as soon as its gain differs from the threshold by two standard
//! errors; when it must end in doubt, more lanes are not kept, so noise does not walk the number up. How much ticks
//! differ by chance is known from one to the next, over all numbers of lanes (`measure`): four that happen to be alike
//! prove nothing. Calls that take long, of which few end in a tick, may end together: each number of lanes is looked at
//! for up to six times what a call takes, 10 s at most.
//!
//! **Search.** Lanes double while that pays; once more after a failure if much of a call's time is not the network's
//! (two lanes can stand in each other's way where three do not), and on through a dip, as long as twice as many are no
//! worse than the last that failed; then one look at the gap above the best or in the dip; then the fewest that lose at
//! most [`PolicyConfig::loss_max`] are sought by halving. A small gain over the first number is believed only if that
//! does no better a second time. What was found is looked at once more, for longer than a trial: lanes fall into step
//! and out of it, and the best of some trials is the one that had luck. If another number is then the better one beyond
//! doubt, the search goes on from there, twice at most. Afterwards it is left alone: a retry after 15 s, then 30 s, 60
//! s ... tries one other number once. Another load (rate, calls or latency by 1.4 and five standard errors) begins a
//! new search, the sooner the longer there was none. Calls that wait for a stream get lanes without a trial.
//!
//! **Calls that come by themselves** pile up where lanes are too few: while drivers have no pause, lanes that bring at
//! most their share of rate are kept though ever more calls are in flight. Once the pile is gone, a search for fewer
//! begins: what was measured meanwhile was the pile's.
//!
//! **Example.** 64 calls in flight, 50 µs away, 16 cores, a lane good for 83,000 calls/s: a call takes 0.77 ms, 94 % of
//! it not the network's. 2, 4, 8 and 16 lanes bring more each time, 125 ms a step. 12 are then found to do as well as
//! 16 within 3 %, 10 not: the channel stays at 11 or 12.

mod config;
mod measure;
mod reason;
mod sample;
mod search;
mod signals;
mod verdict;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use config::PolicyConfig;
pub use reason::{Figures, Reason, Signal, Trial};
pub use sample::{LaneSample, LaneState, Samples, share_waiting};

use measure::{Measured, Ticks};
use search::{Bounds, Goal, Outcome, Search, Step};
use signals::View;
use verdict::{Verdict, is_better, other_load, verdict};

/// Says when to open a lane and when to close one.
#[derive(Debug)]
pub struct Policy {
    config: PolicyConfig,
    phase: Phase,
    /// Of the number of lanes that there is now.
    ticks: Ticks,
    search: Option<Search>,
    /// What a search has led to, until it is seen whether that lasts.
    found: Option<Search>,
    /// How often that may still be thought better of.
    revisions_left: usize,
    /// The load that the number of lanes is right for.
    load: Option<Measured>,
    /// What to look for when the next load has been measured.
    next_goal: Goal,
    schedule: Schedule,
    idle_since: Option<Duration>,
    /// Streams that the peer allows on a connection, once calls had to wait for one.
    stream_limit: Option<usize>,
    /// The trial that ended last, until somebody asks.
    trial: Option<Trial>,
}

/// How often what a search has found is thought better of.
const REVISIONS_MAX: usize = 2;

/// Slow calls may end together, and a few such ends are a matter of luck: a number of lanes is looked at for so many
/// times of a call, after what was under way has had so many to pass, but for no more ticks than this (10 s).
const TRIAL_LATENCIES: f64 = 6.0;
const SETTLE_LATENCIES: f64 = 1.5;
const SLOW_TICKS_MAX: usize = 400;

/// What to do about the lanes now.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Keep the lanes.
    Keep,
    /// Connect more lanes.
    Open {
        /// How many more.
        count: usize,
        /// Why.
        reason: Reason,
    },
    /// Give these no more calls, and close each when its last call has ended.
    Close {
        /// Their [ids](LaneSample::id).
        lanes: Vec<u64>,
        /// Why.
        reason: Reason,
    },
}

#[derive(Debug)]
enum Phase {
    /// The number of lanes is thought right, or the load is not known yet.
    Steady,
    /// Waits until there are so many lanes, and then for what was under way to pass.
    Settling { lanes: usize, is_trial: bool, connected_by: Duration, ticks_left: Option<usize> },
    /// Looks how so many lanes do.
    Trying { lanes: usize },
}

/// When to look again.
#[derive(Debug)]
struct Schedule {
    retry_at: Duration,
    retry: Duration,
    /// The next retry is for more lanes, not for fewer.
    retry_more: bool,
    search_at: Duration,
    search: Duration,
}

impl Policy {
    /// Creates the policy of a channel that has [`PolicyConfig::floor`] lanes.
    pub fn new(config: PolicyConfig) -> Self {
        let floor = config.floor.max(1);
        let config = PolicyConfig { floor, cap: config.cap.max(floor), ..config };
        Self {
            phase: Phase::Steady,
            ticks: Ticks::default(),
            search: None,
            found: None,
            revisions_left: 0,
            load: None,
            next_goal: Goal::More,
            schedule: Schedule {
                retry_at: Duration::ZERO,
                retry: Duration::from_millis(config.retry_ms),
                retry_more: true,
                search_at: Duration::ZERO,
                search: Duration::from_millis(config.search_ms),
            },
            idle_since: None,
            stream_limit: None,
            trial: None,
            config,
        }
    }

    /// What to do, from what the lanes did since the last call of this and the time since the channel began.
    pub fn decide(&mut self, samples: &Samples, now: Duration) -> Decision {
        let view = View::of(samples);
        let PolicyConfig { floor, cap, .. } = self.config;
        if view.live() < floor {
            self.forget_load();
            return self.go(floor, false, Reason::Floor { floor }, samples, &view, now);
        }
        if view.live() > cap {
            self.forget_load();
            return self.go(cap, false, Reason::Cap { cap }, samples, &view, now);
        }
        if view.in_flight == 0 && view.tick.calls == 0.0 {
            return self.idle(samples, &view, now);
        }
        if self.idle_since.take().is_some() {
            // The interval in which calls began again is not a whole one.
            return Decision::Keep;
        }
        if view.waiting > 0
            && let Some(decision) = self.stream_limit_met(samples, &view, now)
        {
            return decision;
        }
        let tick = Duration::from_millis(self.config.tick_ms);
        if samples.interval < tick / 2 || samples.interval > tick * 4 {
            // A process that was stopped says nothing about its lanes.
            return Decision::Keep;
        }
        match self.phase {
            Phase::Steady => self.steady(samples, &view, now),
            Phase::Settling { .. } => self.settling(samples, &view, now),
            Phase::Trying { lanes } => self.trying(lanes, samples, &view, now),
        }
    }

    /// What the trial showed that ended with the last decision, if one did.
    pub fn ended_trial(&mut self) -> Option<Trial> {
        self.trial.take()
    }

    /// Whether numbers of lanes are being tried, or the load is not known yet.
    #[cfg(test)]
    fn is_searching(&self) -> bool {
        self.search.is_some() || self.found.is_some() || self.load.is_none()
    }

    fn idle(&mut self, samples: &Samples, view: &View, now: Duration) -> Decision {
        let since = *self.idle_since.get_or_insert(now);
        let floor = self.config.floor;
        if now.saturating_sub(since) < Duration::from_millis(self.config.idle_ms) {
            return Decision::Keep;
        }
        self.forget_load();
        self.stream_limit = None;
        if view.live() == floor {
            return Decision::Keep;
        }
        self.go(floor, false, Reason::Idle, samples, view, now)
    }

    /// Calls wait for a stream: enough lanes for all of them, without a trial. They can't be had otherwise.
    fn stream_limit_met(&mut self, samples: &Samples, view: &View, now: Duration) -> Option<Decision> {
        self.stream_limit = view.stream_limit.map(|limit| limit.max(1));
        let needed = self.needed_for_streams(view.in_flight);
        if needed <= view.live() {
            return None;
        }
        self.forget_load();
        self.next_goal = Goal::More;
        Some(self.go(needed, false, Reason::StreamLimit { waiting: view.waiting }, samples, view, now))
    }

    fn needed_for_streams(&self, in_flight: usize) -> usize {
        let needed = self.stream_limit.map_or(1, |limit| in_flight.div_ceil(limit));
        needed.clamp(self.config.floor, self.config.cap)
    }

    fn steady(&mut self, samples: &Samples, view: &View, now: Duration) -> Decision {
        if view.connecting > 0 {
            // A lane broke, and is being replaced.
            self.ticks.clear();
            return Decision::Keep;
        }
        let config = self.patient(self.load.or_else(|| self.ticks.measured(self.config.spread_min)));
        self.ticks.push(view.tick, config.steady_ticks_max, config.spread_min);
        if self.ticks.len() < config.change_ticks || now < self.schedule.search_at {
            return Decision::Keep;
        }
        let Some(lately) = self.ticks.measured_last(config.change_ticks, config.spread_min) else {
            return Decision::Keep;
        };
        let Some(all) = self.ticks.measured(config.spread_min) else { return Decision::Keep };
        let Some(load) = self.load else {
            // All that is tried is compared with this.
            let is_precise = all.rate_error <= config.error_max || self.ticks.len() >= config.up_ticks_max;
            return if is_precise {
                self.begin(self.next_goal, all, samples, view, now)
            } else {
                Decision::Keep
            };
        };
        if let Some(goal) = other_load(&config, &lately, &load).or_else(|| other_load(&config, &all, &load)) {
            // These ticks may be of both loads.
            self.forget_load();
            self.next_goal = goal;
            return Decision::Keep;
        }
        if self.found.is_some() {
            let is_precise =
                all.rate_error <= config.error_max / 2.0 || self.ticks.len() >= config.up_ticks_max;
            let is_due = self.ticks.len() >= config.confirm_ticks && is_precise;
            return if is_due { self.confirm(all, samples, view, now) } else { Decision::Keep };
        }
        if now >= self.schedule.retry_at && self.ticks.len() >= 2 * config.change_ticks {
            return self.retry(samples, view, now);
        }
        Decision::Keep
    }

    /// Whether what a search has found lasts: lanes fall into step and out of it, and the best of several trials is the
    /// one that had luck.
    fn confirm(&mut self, measured: Measured, samples: &Samples, view: &View, now: Duration) -> Decision {
        let Some(mut search) = self.found.take() else { return Decision::Keep };
        self.load = Some(measured);
        let config = self.config;
        let (bounds, _) = self.bounds(&search, view);
        let is_better = |one: &Measured, other: &Measured| is_better(&config, one, other);
        let is_worse = search.revise(view.ready, measured, is_better, &bounds);
        let Some(revisions_left) = self.revisions_left.checked_sub(1).filter(|_| is_worse) else {
            return Decision::Keep;
        };
        self.search = Some(search);
        self.revisions_left = revisions_left;
        self.step(samples, view, now)
    }

    /// After a long time of the same, another look at more lanes, or at fewer.
    fn retry(&mut self, samples: &Samples, view: &View, now: Duration) -> Decision {
        self.schedule.retry_at = now + self.schedule.retry;
        let Some(measured) = self.ticks.measured(self.config.spread_min) else { return Decision::Keep };
        let more =
            self.most(&measured) > view.ready && view.limit(&self.config, view.ready, &measured).is_some();
        let fewer = self.needed_for_streams(view.in_flight) < view.ready;
        let goal = match (more, fewer) {
            (true, true) if self.schedule.retry_more => Goal::RetryMore,
            (_, true) => Goal::RetryLess,
            (true, false) => Goal::RetryMore,
            (false, false) => return Decision::Keep,
        };
        self.schedule.retry_more = goal == Goal::RetryLess;
        self.begin(goal, measured, samples, view, now)
    }

    fn settling(&mut self, samples: &Samples, view: &View, now: Duration) -> Decision {
        let ticks_max = self.config.up_ticks_max.max(self.slow_ticks(self.load, SETTLE_LATENCIES));
        let Phase::Settling { lanes, is_trial, connected_by, ticks_left } = &mut self.phase else {
            unreachable!("only called in this phase")
        };
        if view.ready != *lanes || view.connecting > 0 {
            if now < *connected_by {
                return Decision::Keep;
            }
            let reason = Reason::NotConnected { lanes: view.connecting };
            let ready = view.ready.max(self.config.floor);
            self.end_search(now);
            return self.go(ready, false, reason, samples, view, now);
        }
        let left = ticks_left.get_or_insert_with(|| {
            let latency = view.tick.in_flight / view.tick.calls.max(1.0);
            (3.0 * latency).min(ticks_max as f64) as usize
        });
        if *left > 0 {
            *left -= 1;
            return Decision::Keep;
        }
        self.ticks.clear();
        self.phase = if *is_trial { Phase::Trying { lanes: *lanes } } else { Phase::Steady };
        Decision::Keep
    }

    fn trying(&mut self, lanes: usize, samples: &Samples, view: &View, now: Duration) -> Decision {
        if view.ready != lanes || view.connecting > 0 {
            // A lane broke: what is measured now is not this number.
            self.ticks.clear();
            let connected_by = now + self.connect_time(view);
            self.phase = Phase::Settling { lanes, is_trial: true, connected_by, ticks_left: None };
            return Decision::Keep;
        }
        let Some((best_lanes, best)) = self.search.as_ref().map(Search::best) else {
            self.phase = Phase::Steady;
            return Decision::Keep;
        };
        let config = self.patient(Some(best));
        self.ticks.push(view.tick, config.up_ticks_max, config.spread_min);
        let Some(measured) = self.ticks.measured(config.spread_min) else { return Decision::Keep };
        match verdict(&config, (lanes, best_lanes), &self.ticks, &measured, &best, view.busy_share) {
            Verdict::Undecided => Decision::Keep,
            Verdict::OtherLoad(goal) => {
                self.end_search(now);
                self.forget_load();
                self.next_goal = goal;
                Decision::Keep
            }
            Verdict::Ended(outcome) => {
                self.trial = Some(Trial {
                    is_kept: outcome == Outcome::Better,
                    tried: Figures::of(lanes, &measured),
                    best: Figures::of(best_lanes, &best),
                });
                if let Some(search) = &mut self.search {
                    search.learn(lanes, measured, outcome);
                }
                self.step(samples, view, now)
            }
        }
    }

    fn begin(
        &mut self,
        goal: Goal,
        measured: Measured,
        samples: &Samples,
        view: &View,
        now: Duration,
    ) -> Decision {
        self.load = Some(measured);
        self.search = Some(Search::new(goal, view.ready, measured));
        // A steady load's lanes are not to come and go.
        let is_retry = matches!(goal, Goal::RetryMore | Goal::RetryLess);
        self.revisions_left = if is_retry { 0 } else { REVISIONS_MAX };
        self.step(samples, view, now)
    }

    /// The next step of the search.
    fn step(&mut self, samples: &Samples, view: &View, now: Duration) -> Decision {
        let Some(search) = &self.search else { return Decision::Keep };
        let (bounds, signal) = self.bounds(search, view);
        let (lanes, best) = search.best();
        let figures = Figures::of(lanes, &best);
        match search.next(&bounds) {
            Step::Try(lanes) => {
                let reason = match signal {
                    Some(signal) if lanes > search.top().0 => Reason::Limited { signal, figures },
                    _ if lanes < figures.lanes => Reason::Fewer { figures },
                    _ => Reason::Between { figures },
                };
                self.go(lanes, true, reason, samples, view, now)
            }
            Step::Done(lanes) => {
                let known = search.known(lanes).unwrap_or(best);
                let tried = view.ready;
                let tried_calls_per_s = self.ticks.measured(0.0).map_or(0.0, |tried| tried.calls_per_s);
                self.load = Some(known);
                self.found = self.end_search(now);
                let reason =
                    Reason::Settled { tried, tried_calls_per_s, figures: Figures::of(lanes, &known) };
                self.go(lanes, false, reason, samples, view, now)
            }
        }
    }

    /// What the search is to keep to, and the signal for more lanes than were tried.
    fn bounds(&self, search: &Search, view: &View) -> (Bounds, Option<Signal>) {
        let (top, measured) = search.top();
        let signal = view.limit(&self.config, top, &measured);
        let bounds = Bounds {
            least: self.needed_for_streams(view.in_flight),
            most: self.most(&measured),
            more_may_help: signal.is_some(),
            far_more_may_help: view.late_share(&measured) >= self.config.late_share_far_min,
            loss_max: self.config.loss_max,
            latency_weight: self.config.latency_weight,
        };
        (bounds, signal)
    }

    fn end_search(&mut self, now: Duration) -> Option<Search> {
        let search = self.search.take()?;
        let config = &self.config;
        let schedule = &mut self.schedule;
        if matches!(search.goal, Goal::RetryMore | Goal::RetryLess) {
            schedule.retry = (schedule.retry * 2).min(Duration::from_millis(config.retry_ms_max));
        } else {
            // A load that is another one all the time is not followed all the time.
            let is_again = now < schedule.search_at + Duration::from_millis(config.search_again_ms);
            let doubled = (schedule.search * 2).min(Duration::from_millis(config.search_ms_max));
            schedule.search = if is_again { doubled } else { Duration::from_millis(config.search_ms) };
            schedule.retry = Duration::from_millis(config.retry_ms);
        }
        schedule.retry_at = now + schedule.retry;
        schedule.search_at = now + schedule.search;
        Some(search)
    }

    fn forget_load(&mut self) {
        self.search = None;
        self.found = None;
        self.load = None;
        self.ticks.clear();
        self.phase = Phase::Steady;
    }

    /// The configuration for calls that take as long as these: each number of lanes is looked at for some calls' time.
    fn patient(&self, measured: Option<Measured>) -> PolicyConfig {
        let config = self.config;
        let ticks = self.slow_ticks(measured, TRIAL_LATENCIES);
        let slower = ticks as f64 / config.up_ticks_max as f64;
        PolicyConfig {
            error_max: config.error_max * slower.max(1.0).sqrt(),
            up_ticks_max: config.up_ticks_max.max(ticks),
            down_ticks_max: config.down_ticks_max.max(ticks),
            steady_ticks_max: config.steady_ticks_max.max(ticks),
            ..config
        }
    }

    /// As many ticks as so many calls take, one after the other, if they are slow ones; nothing otherwise.
    fn slow_ticks(&self, measured: Option<Measured>, latencies: f64) -> usize {
        let tick_s = self.config.tick_ms as f64 / 1_000.0;
        let latency_ticks = measured.map_or(0.0, |measured| measured.slow_ticks(tick_s));
        ((latencies * latency_ticks) as usize).min(SLOW_TICKS_MAX)
    }

    /// More lanes than calls in flight are of no use.
    fn most(&self, measured: &Measured) -> usize {
        // A caller who has just been answered has none for a moment: 16 callers have 15 in flight.
        let calls = (measured.in_flight * 1.1 + 0.4) as usize;
        calls.clamp(self.config.floor, self.config.cap)
    }

    fn connect_time(&self, view: &View) -> Duration {
        Duration::from_millis(self.config.connect_ms_max) + 10 * view.round_trip()
    }

    /// Opens and closes lanes until there are so many.
    fn go(
        &mut self,
        lanes: usize,
        is_trial: bool,
        reason: Reason,
        samples: &Samples,
        view: &View,
        now: Duration,
    ) -> Decision {
        self.ticks.clear();
        let live = view.live();
        if lanes == live && view.connecting == 0 && !is_trial {
            self.phase = Phase::Steady;
            return Decision::Keep;
        }
        let connected_by = now + self.connect_time(view);
        self.phase = Phase::Settling { lanes, is_trial, connected_by, ticks_left: None };
        if lanes > live {
            return Decision::Open { count: lanes - live, reason };
        }
        if lanes == live {
            return Decision::Keep;
        }
        // Those that are not connected first, then the youngest.
        let mut closable: Vec<_> =
            samples.lanes.iter().filter(|lane| lane.state != LaneState::Draining).collect();
        closable.sort_by_key(|lane| (lane.state == LaneState::Ready, std::cmp::Reverse(lane.id)));
        let lanes = closable.iter().take(live - lanes).map(|lane| lane.id).collect();
        Decision::Close { lanes, reason }
    }
}
