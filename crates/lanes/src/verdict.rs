//! Judges ticks: whether a trial is better, and whether the load has changed.

use super::config::PolicyConfig;
use super::measure::{Measurement, Ticks};
use super::search::{SearchGoal, TrialOutcome};

pub(super) enum Verdict {
    Undecided,
    Ended(TrialOutcome),
    /// The load has changed, so the trial says nothing.
    OtherLoad(SearchGoal),
}

/// Returns the goal of a new search, if the load has changed.
pub(super) fn changed_load_goal(
    config: &PolicyConfig,
    recent: &Measurement,
    before: &Measurement,
) -> Option<SearchGoal> {
    let (rate, latency) = recent.gains_over(before);
    let in_flight = rate - latency;
    let error = recent.rate_error.hypot(before.rate_error);
    let in_flight_error = recent.in_flight_error.hypot(before.in_flight_error);
    let factor = config.change_factor.ln();
    let is_significant = |gain: f64, error: f64| gain.abs() > factor.max(config.change_sigmas * error);
    if !is_significant(rate, error) && !is_significant(in_flight, in_flight_error) {
        return None;
    }
    Some(if rate < -factor || in_flight < -factor { SearchGoal::Less } else { SearchGoal::More })
}

/// Maximum gain, as a logarithm, of twice the lanes beyond twice the calls, by chance.
const BACKLOG_GAIN_MAX: f64 = 0.15;

/// Returns the verdict on a trial, if it is clear yet.
pub(super) fn verdict(
    config: &PolicyConfig,
    (lanes, best_lanes): (usize, usize),
    ticks: &Ticks,
    tried: &Measurement,
    best: &Measurement,
    busy_share: f64,
) -> Verdict {
    if ticks.len() < config.ticks_min {
        return Verdict::Undecided;
    }
    let (gain, error) = tried.gain_over(best, config.latency_weight);
    let (rate, latency) = tried.gains_over(best);
    let in_flight_error = tried.in_flight_error.hypot(best.in_flight_error);
    let uncertainty = config.sigmas * error;
    let factor = config.change_factor.ln().max(config.change_sigmas * in_flight_error);
    let in_flight = rate - latency;
    let is_more = lanes > best_lanes;
    // Calls arrive faster than busy drivers can take them, and pile up. Lanes that add no more than their share are
    // kept.
    let is_backlog = is_more
        && busy_share >= config.busy_share_min
        && rate - config.gain_min > uncertainty
        && rate < (lanes as f64 / best_lanes as f64).ln() + BACKLOG_GAIN_MAX;
    if in_flight > factor && !is_backlog {
        // Or there are too few lanes for open-loop calls.
        let is_too_few = lanes < best_lanes && rate < factor;
        return if is_too_few {
            Verdict::Ended(TrialOutcome::NotBetter)
        } else {
            Verdict::OtherLoad(SearchGoal::More)
        };
    }
    // Open-loop calls have caught up, so measurements of the backlog are no longer valid.
    if in_flight < -factor {
        return Verdict::OtherLoad(SearchGoal::Less);
    }
    // More calls without shorter latency are due to more load, not to more lanes.
    let is_earned = latency > rate / 2.0 || is_backlog;
    let gain = if is_backlog { rate } else { gain };
    let ended = |outcome| Verdict::Ended(outcome);
    if is_more {
        let is_last = ticks.len() >= config.up_ticks_max;
        // The next trial is compared with a better one.
        let is_precise = is_last || tried.rate_error <= config.error_max;
        let margin = gain - config.gain_min;
        return match margin {
            _ if margin > uncertainty && is_earned && is_precise => ended(TrialOutcome::Better),
            _ if margin < -uncertainty => ended(TrialOutcome::NotBetter),
            _ if is_last && margin > 0.0 && gain > uncertainty && is_earned => ended(TrialOutcome::Better),
            _ if is_last && margin > 0.0 && is_earned => ended(TrialOutcome::InDoubt),
            _ if is_last => ended(TrialOutcome::NotBetter),
            _ => Verdict::Undecided,
        };
    }
    let margin = gain + config.loss_max;
    let is_last = ticks.len() >= config.down_ticks_max;
    match margin {
        _ if gain > uncertainty && is_earned => ended(TrialOutcome::Better),
        _ if margin.abs() > uncertainty || is_last => ended(TrialOutcome::NotBetter),
        _ => Verdict::Undecided,
    }
}

/// Returns whether one number of lanes is significantly better than another.
pub(super) fn is_better(config: &PolicyConfig, one: &Measurement, other: &Measurement) -> bool {
    let (gain, error) = one.gain_over(other, config.latency_weight);
    gain - config.gain_min > config.sigmas * error
}
