//! Evaluates one set of samples.

use std::time::Duration;

use super::config::PolicyConfig;
use super::measure::{Measurement, Tick};
use super::reason::Signal;
use super::sample::{LaneState, Samples};

/// All lanes together.
#[derive(Debug)]
pub(super) struct LaneTotals {
    pub(super) ready: usize,
    pub(super) connecting: usize,
    pub(super) in_flight: usize,
    pub(super) waiting: usize,
    pub(super) tick: Tick,
    /// Streams per connection that the peer allows, known if calls wait for one.
    pub(super) stream_limit: Option<usize>,
    round_trip: Option<Duration>,
    pub(super) busy_share: f64,
    write_delay: Duration,
    contended_share: f64,
    flow_share: f64,
}

impl LaneTotals {
    pub(super) fn of(samples: &Samples) -> Self {
        let lanes = &samples.lanes;
        let seconds = samples.interval.as_secs_f64();
        let count = |state| lanes.iter().filter(|lane| lane.state == state).count();
        let ready = || lanes.iter().filter(|lane| lane.state == LaneState::Ready);
        let mean_of = |of: &dyn Fn(&super::LaneSample) -> f64| {
            ready().map(of).sum::<f64>() / ready().count().max(1) as f64
        };
        let share = |time: Duration| time.as_secs_f64() / seconds.max(1e-9);
        let sum = |of: fn(&super::LaneSample) -> u64| lanes.iter().map(of).fold(0, u64::saturating_add);
        let completed = sum(|lane| lane.completed);
        let in_flight = sum(|lane| lane.in_flight as u64) as usize;
        let waiting = ready().map(|lane| lane.waiting_for_stream).fold(0, usize::saturating_add);
        let limited = ready().filter(|lane| lane.waiting_for_stream > 0);
        let means =
            lanes.iter().map(|lane| lane.in_flight_mean).filter(|mean| mean.is_finite() && *mean > 0.0);
        let mean: f64 = means.sum();
        let tick = Tick {
            seconds,
            calls: completed as f64,
            in_flight: if mean > 0.0 { mean } else { in_flight as f64 },
        };
        Self {
            ready: count(LaneState::Ready),
            connecting: count(LaneState::Connecting),
            in_flight,
            waiting,
            tick,
            stream_limit: limited.map(|lane| lane.in_flight.saturating_sub(lane.waiting_for_stream)).min(),
            round_trip: lanes.iter().filter_map(|lane| lane.round_trip).min(),
            busy_share: mean_of(&|lane| share(lane.busy)),
            write_delay: Duration::from_secs_f64(mean_of(&|lane| lane.write_delay.as_secs_f64()).min(1e6)),
            contended_share: sum(|lane| lane.contended) as f64 / completed.max(1) as f64,
            flow_share: mean_of(&|lane| share(lane.flow_blocked)),
        }
    }

    /// Returns the number of lanes that accept calls or soon will.
    pub(super) fn live(&self) -> usize {
        self.ready + self.connecting
    }

    /// Returns the network's round trip, or zero if unknown.
    pub(super) fn round_trip(&self) -> Duration {
        self.round_trip.unwrap_or_default()
    }

    /// Returns the signal that `lanes`, measured as `measured`, are the limit.
    pub(super) fn limiting_signal(
        &self,
        config: &PolicyConfig,
        lanes: usize,
        measured: &Measurement,
    ) -> Option<Signal> {
        let latency = measured.latency_s();
        let late = self.excess_latency_share(measured);
        let is_few = measured.in_flight <= config.few_calls_max as f64 + 0.5;
        if is_few && late < config.late_share_few_min {
            return None;
        }
        if late >= config.late_share_min {
            return Some(self.strongest_signal(config, latency).unwrap_or(Signal::Late { share: late }));
        }
        // For streams whose messages do not wait for each other, the round trip says nothing.
        if self.ready == lanes { self.strongest_signal(config, latency) } else { None }
    }

    /// Returns the share of a call's time outside the network. With an unknown round trip, only trials can tell.
    pub(super) fn excess_latency_share(&self, measured: &Measurement) -> f64 {
        1.0 - self.round_trip().as_secs_f64() / measured.latency_s().max(1e-9)
    }

    /// Returns the lanes' own signal that is furthest above its threshold.
    fn strongest_signal(&self, config: &PolicyConfig, latency_s: f64) -> Option<Signal> {
        let write_share = self.write_delay.as_secs_f64() / latency_s.max(1e-9);
        let signals = [
            (self.busy_share / config.busy_share_min, Signal::Busy { share: self.busy_share }),
            (write_share / config.write_share_min, Signal::WriteDelay { share: write_share }),
            (
                self.contended_share / config.contended_share_min,
                Signal::Contended { share: self.contended_share },
            ),
            (self.flow_share / config.flow_share_min, Signal::FlowBlocked { share: self.flow_share }),
        ];
        let above = signals.into_iter().filter(|(strength, _)| *strength >= 1.0);
        above.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, signal)| signal)
    }
}
