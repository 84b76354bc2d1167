//! Decides how many lanes a channel has: a pure function of samples and time.
//!
//! ```text
//!             ticks that tell a load                      a trial is decided
//!   Steady ───────────────────────► Settling ──► Trying ─────────────────────► Settling ──► Steady
//!     ▲  another load, or a retry       ▲           │ the search wants another number
//!     └─────────────────────────────────┴───────────┘
//! ```
//!
//! **Signals** only say whether a trial is worth it; trials decide what is kept. The main signal is a call that takes
//! longer than the network's round trip. The excess may be due to the lane, to the server's connection or to neither;
//! only a trial shows which. Below [`PolicyConfig::late_share_min`] nothing can be gained, so a distant network is not
//! probed at all. An unknown round trip counts as zero. A busy driver, late writes, a contended lock and flow control
//! are separate reasons. They serve streams, whose messages do not wait for each other.
//!
//! **Measure.** Latency follows from Little's law: calls in flight over rate. The gain is that of the rate plus a fifth
//! of that of the latency (logarithms). A closed loop shows a gain in rate, calls at a fixed rate one in latency. An 18
//! % gain in latency counts as much as a 3 % gain in rate. A trial ends as soon as its gain differs from the threshold
//! by two standard errors. If it ends undecided, more lanes are not kept, so noise does not push the number up. The
//! random variation between ticks is estimated over all numbers of lanes (`measure`), because four similar ticks prove
//! nothing. Slow calls, of which few end per tick, may end together. Each number of lanes is therefore observed for up
//! to six times a call's duration, at most 10 s.
//!
//! **Search.** The search has these steps:
//!
//! - Double the lanes while that pays. If much of a call's time is outside the network, continue once after a failure,
//!   because two lanes can interfere when three do not. Continue through a dip while twice as many lanes are no worse
//!   than the last failure.
//! - Try one number in the gap above the best, or in the dip.
//! - Find the fewest lanes that lose at most [`PolicyConfig::loss_max`], by bisection. A small gain over the first
//!   number counts only if that number does no better a second time.
//! - Measure the result again for longer than a trial. Lanes fall into and out of step, and the best of several trials
//!   may have been lucky. If another number is now significantly better, continue from there, at most twice.
//!
//! Then the number stays. A retry after 15 s, then 30 s, 60 s and so on tries one other number once. Another load
//! (rate, calls or latency by 1.4 and five standard errors) starts a new search, the sooner the longer ago the last one
//! was. Calls that wait for a stream get lanes without a trial.
//!
//! **Open-loop calls** pile up if there are too few lanes. While drivers are always busy, lanes that add at most their
//! share of rate are kept, even if more and more calls are in flight. Once the backlog is gone, a search for fewer
//! lanes starts, because the measurements were of the backlog.
//!
//! **Example.** 64 calls are in flight, 50 µs away, on 16 cores, with lanes that carry 83,000 calls/s. A call takes
//! 0.77 ms, 94 % of it outside the network. 2, 4, 8 and 16 lanes each add rate, at 125 ms a step. Then 12 lanes turn
//! out to be within 3 % of 16, and 10 not: the channel stays at 11 or 12.

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
pub use sample::{LaneSample, LaneState, Samples, distribute_waiting};

use measure::{Measurement, Ticks};
use search::{Search, SearchBounds, SearchGoal, SearchStep, TrialOutcome};
use signals::LaneTotals;
use verdict::{Verdict, changed_load_goal, is_better, verdict};

/// Decides when to open and when to close lanes.
#[derive(Debug)]
pub struct Policy {
    config: PolicyConfig,
    phase: Phase,
    /// Ticks with the current number of lanes.
    ticks: Ticks,
    search: Option<Search>,
    /// A finished search whose result is to be confirmed.
    unconfirmed: Option<Search>,
    /// Remaining revisions of that result.
    revisions_left: usize,
    /// The load for which the number of lanes was chosen.
    load: Option<Measurement>,
    /// Goal of the search for the next load.
    next_goal: SearchGoal,
    schedule: Schedule,
    idle_since: Option<Duration>,
    /// Streams per connection that the peer allows, once calls had to wait for one.
    stream_limit: Option<usize>,
    /// The last trial, until [`take_trial`](Self::take_trial) takes it.
    trial: Option<Trial>,
}

/// Maximum revisions of a search's result.
const REVISIONS_MAX: usize = 2;

/// Slow calls may end together, so a few ends are a matter of luck. A number of lanes settles for 1.5 times a call's
/// duration. It is observed for 6 times, but at most for this many ticks (10 s).
const TRIAL_LATENCIES: f64 = 6.0;
const SETTLE_LATENCIES: f64 = 1.5;
const SLOW_TICKS_MAX: usize = 400;

/// A decision about the lanes.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Keep the lanes.
    Keep,
    /// Connect more lanes.
    Open {
        /// Number of additional lanes.
        count: usize,
        /// Why.
        reason: Reason,
    },
    /// Send no more calls to these lanes, and close each after its last call.
    Close {
        /// Their [ids](LaneSample::id).
        lanes: Vec<u64>,
        /// Why.
        reason: Reason,
    },
}

#[derive(Debug)]
enum Phase {
    /// The number of lanes is considered right, or the load is not known yet.
    Steady,
    /// Waits for this number of lanes, and then for the previous calls to end.
    Settling { lanes: usize, is_trial: bool, connected_by: Duration, ticks_left: Option<usize> },
    /// Measures this number of lanes.
    Trying { lanes: usize },
}

/// When to try again.
#[derive(Debug)]
struct Schedule {
    retry_at: Duration,
    retry: Duration,
    /// Whether the next retry is for more lanes, not for fewer.
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
            unconfirmed: None,
            revisions_left: 0,
            load: None,
            next_goal: SearchGoal::More,
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

    /// Changes [`PolicyConfig::cap`], at least the floor. The next decision closes lanes beyond it.
    pub fn set_cap(&mut self, cap: usize) {
        self.config.cap = cap.max(self.config.floor);
    }

    /// Decides what to do, from what the lanes did since the last call and the time since the channel was created.
    pub fn decide(&mut self, samples: &Samples, now: Duration) -> Decision {
        let view = LaneTotals::of(samples);
        let PolicyConfig { floor, cap, .. } = self.config;
        if view.live() < floor {
            self.reset_load();
            return self.change_lanes(floor, false, Reason::Floor { floor }, samples, &view, now);
        }
        if view.live() > cap {
            self.reset_load();
            return self.change_lanes(cap, false, Reason::Cap { cap }, samples, &view, now);
        }
        if view.in_flight == 0 && view.tick.calls == 0.0 {
            return self.idle(samples, &view, now);
        }
        if self.idle_since.take().is_some() {
            // The interval in which calls resumed is incomplete.
            return Decision::Keep;
        }
        if view.waiting > 0
            && let Some(decision) = self.open_for_stream_limit(samples, &view, now)
        {
            return decision;
        }
        let tick = Duration::from_millis(self.config.tick_ms);
        if samples.interval < tick / 2 || samples.interval > tick * 4 {
            // Samples of a suspended process are meaningless.
            return Decision::Keep;
        }
        match self.phase {
            Phase::Steady => self.steady(samples, &view, now),
            Phase::Settling { .. } => self.settling(samples, &view, now),
            Phase::Trying { lanes } => self.trying(lanes, samples, &view, now),
        }
    }

    /// Returns the result of the trial that ended with the last decision, if any.
    pub fn take_trial(&mut self) -> Option<Trial> {
        self.trial.take()
    }

    /// Returns whether a search is in progress, or the load is not known yet.
    #[cfg(test)]
    fn is_searching(&self) -> bool {
        self.search.is_some() || self.unconfirmed.is_some() || self.load.is_none()
    }

    fn idle(&mut self, samples: &Samples, view: &LaneTotals, now: Duration) -> Decision {
        let since = *self.idle_since.get_or_insert(now);
        let floor = self.config.floor;
        if now.saturating_sub(since) < Duration::from_millis(self.config.idle_ms) {
            return Decision::Keep;
        }
        self.reset_load();
        self.stream_limit = None;
        if view.live() == floor {
            return Decision::Keep;
        }
        self.change_lanes(floor, false, Reason::Idle, samples, view, now)
    }

    /// Opens enough lanes for calls that wait for a stream, without a trial, because nothing else can serve them.
    fn open_for_stream_limit(
        &mut self,
        samples: &Samples,
        view: &LaneTotals,
        now: Duration,
    ) -> Option<Decision> {
        self.stream_limit = view.stream_limit.map(|limit| limit.max(1));
        let needed = self.needed_for_streams(view.in_flight);
        if needed <= view.live() {
            return None;
        }
        self.reset_load();
        self.next_goal = SearchGoal::More;
        Some(self.change_lanes(
            needed,
            false,
            Reason::StreamLimit { waiting: view.waiting },
            samples,
            view,
            now,
        ))
    }

    fn needed_for_streams(&self, in_flight: usize) -> usize {
        let needed = self.stream_limit.map_or(1, |limit| in_flight.div_ceil(limit));
        needed.clamp(self.config.floor, self.config.cap)
    }

    fn steady(&mut self, samples: &Samples, view: &LaneTotals, now: Duration) -> Decision {
        if view.connecting > 0 {
            // A broken lane is being replaced.
            self.ticks.clear();
            return Decision::Keep;
        }
        let config =
            self.config_for_slow_calls(self.load.or_else(|| self.ticks.measure(self.config.spread_min)));
        self.ticks.push(view.tick, config.steady_ticks_max, config.spread_min);
        if self.ticks.len() < config.change_ticks || now < self.schedule.search_at {
            return Decision::Keep;
        }
        let Some(recent) = self.ticks.measure_last(config.change_ticks, config.spread_min) else {
            return Decision::Keep;
        };
        let Some(all) = self.ticks.measure(config.spread_min) else { return Decision::Keep };
        let Some(load) = self.load else {
            // All trials are compared with this.
            let is_precise = all.rate_error <= config.error_max || self.ticks.len() >= config.up_ticks_max;
            return if is_precise {
                self.begin(self.next_goal, all, samples, view, now)
            } else {
                Decision::Keep
            };
        };
        if let Some(goal) =
            changed_load_goal(&config, &recent, &load).or_else(|| changed_load_goal(&config, &all, &load))
        {
            // These ticks may contain both loads.
            self.reset_load();
            self.next_goal = goal;
            return Decision::Keep;
        }
        if self.unconfirmed.is_some() {
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

    /// Checks the result of a search again. Lanes fall into and out of step, and the best of several trials may have
    /// been lucky.
    fn confirm(
        &mut self,
        measured: Measurement,
        samples: &Samples,
        view: &LaneTotals,
        now: Duration,
    ) -> Decision {
        let Some(mut search) = self.unconfirmed.take() else { return Decision::Keep };
        self.load = Some(measured);
        let config = self.config;
        let (bounds, _) = self.bounds(&search, view);
        let is_better = |one: &Measurement, other: &Measurement| is_better(&config, one, other);
        let is_worse = search.revise(view.ready, measured, is_better, &bounds);
        let Some(revisions_left) = self.revisions_left.checked_sub(1).filter(|_| is_worse) else {
            return Decision::Keep;
        };
        self.search = Some(search);
        self.revisions_left = revisions_left;
        self.advance_search(samples, view, now)
    }

    /// Tries more or fewer lanes after a long time of steady load.
    fn retry(&mut self, samples: &Samples, view: &LaneTotals, now: Duration) -> Decision {
        self.schedule.retry_at = now + self.schedule.retry;
        let Some(measured) = self.ticks.measure(self.config.spread_min) else { return Decision::Keep };
        let more = self.lanes_max(&measured) > view.ready
            && view.limiting_signal(&self.config, view.ready, &measured).is_some();
        let fewer = self.needed_for_streams(view.in_flight) < view.ready;
        let goal = match (more, fewer) {
            (true, true) if self.schedule.retry_more => SearchGoal::RetryMore,
            (_, true) => SearchGoal::RetryLess,
            (true, false) => SearchGoal::RetryMore,
            (false, false) => return Decision::Keep,
        };
        self.schedule.retry_more = goal == SearchGoal::RetryLess;
        self.begin(goal, measured, samples, view, now)
    }

    fn settling(&mut self, samples: &Samples, view: &LaneTotals, now: Duration) -> Decision {
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
            return self.change_lanes(ready, false, reason, samples, view, now);
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

    fn trying(&mut self, lanes: usize, samples: &Samples, view: &LaneTotals, now: Duration) -> Decision {
        if view.ready != lanes || view.connecting > 0 {
            // A lane broke, so the measurement is not of this number.
            self.ticks.clear();
            let connected_by = now + self.connect_time(view);
            self.phase = Phase::Settling { lanes, is_trial: true, connected_by, ticks_left: None };
            return Decision::Keep;
        }
        let Some((best_lanes, best)) = self.search.as_ref().map(Search::best) else {
            self.phase = Phase::Steady;
            return Decision::Keep;
        };
        let config = self.config_for_slow_calls(Some(best));
        self.ticks.push(view.tick, config.up_ticks_max, config.spread_min);
        let Some(measured) = self.ticks.measure(config.spread_min) else { return Decision::Keep };
        match verdict(&config, (lanes, best_lanes), &self.ticks, &measured, &best, view.busy_share) {
            Verdict::Undecided => Decision::Keep,
            Verdict::OtherLoad(goal) => {
                self.end_search(now);
                self.reset_load();
                self.next_goal = goal;
                Decision::Keep
            }
            Verdict::Ended(outcome) => {
                self.trial = Some(Trial {
                    is_kept: outcome == TrialOutcome::Better,
                    tried: Figures::of(lanes, &measured),
                    best: Figures::of(best_lanes, &best),
                });
                if let Some(search) = &mut self.search {
                    search.record_trial(lanes, measured, outcome);
                }
                self.advance_search(samples, view, now)
            }
        }
    }

    fn begin(
        &mut self,
        goal: SearchGoal,
        measured: Measurement,
        samples: &Samples,
        view: &LaneTotals,
        now: Duration,
    ) -> Decision {
        self.load = Some(measured);
        self.search = Some(Search::new(goal, view.ready, measured));
        // The lanes of a steady load should not fluctuate.
        let is_retry = matches!(goal, SearchGoal::RetryMore | SearchGoal::RetryLess);
        self.revisions_left = if is_retry { 0 } else { REVISIONS_MAX };
        self.advance_search(samples, view, now)
    }

    /// Takes the next step of the search.
    fn advance_search(&mut self, samples: &Samples, view: &LaneTotals, now: Duration) -> Decision {
        let Some(search) = &self.search else { return Decision::Keep };
        let (bounds, signal) = self.bounds(search, view);
        let (lanes, best) = search.best();
        let figures = Figures::of(lanes, &best);
        match search.next_step(&bounds) {
            SearchStep::Try(lanes) => {
                let reason = match signal {
                    Some(signal) if lanes > search.highest().0 => Reason::Limited { signal, figures },
                    _ if lanes < figures.lanes => Reason::Fewer { figures },
                    _ => Reason::Between { figures },
                };
                self.change_lanes(lanes, true, reason, samples, view, now)
            }
            SearchStep::Done(lanes) => {
                let measurement = search.measurement_of(lanes).unwrap_or(best);
                let tried = view.ready;
                let tried_calls_per_s = self.ticks.measure(0.0).map_or(0.0, |tried| tried.calls_per_s);
                self.load = Some(measurement);
                self.unconfirmed = self.end_search(now);
                let reason =
                    Reason::Settled { tried, tried_calls_per_s, figures: Figures::of(lanes, &measurement) };
                self.change_lanes(lanes, false, reason, samples, view, now)
            }
        }
    }

    /// Returns the bounds of the search, and the signal for more lanes than were tried.
    fn bounds(&self, search: &Search, view: &LaneTotals) -> (SearchBounds, Option<Signal>) {
        let (top, measured) = search.highest();
        let signal = view.limiting_signal(&self.config, top, &measured);
        let bounds = SearchBounds {
            lanes_min: self.needed_for_streams(view.in_flight),
            lanes_max: self.lanes_max(&measured),
            more_may_help: signal.is_some(),
            far_more_may_help: view.excess_latency_share(&measured) >= self.config.late_share_far_min,
            loss_max: self.config.loss_max,
            latency_weight: self.config.latency_weight,
        };
        (bounds, signal)
    }

    fn end_search(&mut self, now: Duration) -> Option<Search> {
        let search = self.search.take()?;
        let config = &self.config;
        let schedule = &mut self.schedule;
        if matches!(search.goal, SearchGoal::RetryMore | SearchGoal::RetryLess) {
            schedule.retry = (schedule.retry * 2).min(Duration::from_millis(config.retry_ms_max));
        } else {
            // A load that keeps changing is not always followed.
            let is_soon_again = now < schedule.search_at + Duration::from_millis(config.search_again_ms);
            let doubled = (schedule.search * 2).min(Duration::from_millis(config.search_ms_max));
            schedule.search = if is_soon_again { doubled } else { Duration::from_millis(config.search_ms) };
            schedule.retry = Duration::from_millis(config.retry_ms);
        }
        schedule.retry_at = now + schedule.retry;
        schedule.search_at = now + schedule.search;
        Some(search)
    }

    fn reset_load(&mut self) {
        self.search = None;
        self.unconfirmed = None;
        self.load = None;
        self.ticks.clear();
        self.phase = Phase::Steady;
    }

    /// Returns the configuration for calls of this duration: each number of lanes is observed for several calls' time.
    fn config_for_slow_calls(&self, measured: Option<Measurement>) -> PolicyConfig {
        let config = self.config;
        let ticks = self.slow_ticks(measured, TRIAL_LATENCIES);
        let factor = ticks as f64 / config.up_ticks_max as f64;
        PolicyConfig {
            error_max: config.error_max * factor.max(1.0).sqrt(),
            up_ticks_max: config.up_ticks_max.max(ticks),
            down_ticks_max: config.down_ticks_max.max(ticks),
            steady_ticks_max: config.steady_ticks_max.max(ticks),
            ..config
        }
    }

    /// Returns the ticks that this many consecutive calls take if they are slow, otherwise 0.
    fn slow_ticks(&self, measured: Option<Measurement>, latencies: f64) -> usize {
        let tick_s = self.config.tick_ms as f64 / 1_000.0;
        let latency_ticks = measured.map_or(0.0, |measured| measured.slow_ticks(tick_s));
        ((latencies * latency_ticks) as usize).min(SLOW_TICKS_MAX)
    }

    /// Returns the maximum useful number of lanes: one per call in flight.
    fn lanes_max(&self, measured: &Measurement) -> usize {
        // A caller has no call in flight just after a response: 16 callers have 15 in flight.
        let calls = (measured.in_flight * 1.1 + 0.4) as usize;
        calls.clamp(self.config.floor, self.config.cap)
    }

    fn connect_time(&self, view: &LaneTotals) -> Duration {
        Duration::from_millis(self.config.connect_ms_max) + 10 * view.round_trip()
    }

    /// Opens or closes lanes to reach this number.
    fn change_lanes(
        &mut self,
        lanes: usize,
        is_trial: bool,
        reason: Reason,
        samples: &Samples,
        view: &LaneTotals,
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
        // Unconnected lanes first, then the newest.
        let mut closable: Vec<_> =
            samples.lanes.iter().filter(|lane| lane.state != LaneState::Draining).collect();
        closable.sort_by_key(|lane| (lane.state == LaneState::Ready, std::cmp::Reverse(lane.id)));
        let lanes = closable.iter().take(live - lanes).map(|lane| lane.id).collect();
        Decision::Close { lanes, reason }
    }
}
