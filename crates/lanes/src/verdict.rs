//! Judges ticks: whether a trial is better, and whether the load has changed.

use super::config::PolicyConfig;
use super::measure::{Measured, Ticks};
use super::search::{Goal, Outcome};

pub(super) enum Verdict {
    Undecided,
    Ended(Outcome),
    /// The load has changed, so the trial says nothing.
    OtherLoad(Goal),
}

/// Returns the goal of a new search, if the load has changed.
pub(super) fn other_load(config: &PolicyConfig, lately: &Measured, before: &Measured) -> Option<Goal> {
    let (rate, latency) = lately.gains_over(before);
    let in_flight = rate - latency;
    let error = lately.rate_error.hypot(before.rate_error);
    let in_flight_error = lately.in_flight_error.hypot(before.in_flight_error);
    let factor = config.change_factor.ln();
    let is_other = |gain: f64, error: f64| gain.abs() > factor.max(config.change_sigmas * error);
    if !is_other(rate, error) && !is_other(in_flight, in_flight_error) {
        return None;
    }
    Some(if rate < -factor || in_flight < -factor { Goal::Less } else { Goal::More })
}

/// Maximum gain, as a logarithm, of twice the lanes beyond twice the calls, by chance.
const BACKLOG_GAIN_MAX: f64 = 0.15;

/// Returns the verdict on a trial, if it is clear yet.
pub(super) fn verdict(
    config: &PolicyConfig,
    (lanes, best_lanes): (usize, usize),
    ticks: &Ticks,
    tried: &Measured,
    best: &Measured,
    busy_share: f64,
) -> Verdict {
    if ticks.len() < config.ticks_min {
        return Verdict::Undecided;
    }
    let (gain, error) = tried.gain_over(best, config.latency_weight);
    let (rate, latency) = tried.gains_over(best);
    let in_flight_error = tried.in_flight_error.hypot(best.in_flight_error);
    let doubt = config.sigmas * error;
    let factor = config.change_factor.ln().max(config.change_sigmas * in_flight_error);
    let in_flight = rate - latency;
    let is_more = lanes > best_lanes;
    // Calls arrive faster than busy drivers can take them, and pile up. Lanes that add no more than their share are
    // kept.
    let is_backlog = is_more
        && busy_share >= config.busy_share_min
        && rate - config.gain_min > doubt
        && rate < (lanes as f64 / best_lanes as f64).ln() + BACKLOG_GAIN_MAX;
    if in_flight > factor && !is_backlog {
        // Or there are too few lanes for open-loop calls.
        let is_too_few = lanes < best_lanes && rate < factor;
        return if is_too_few { Verdict::Ended(Outcome::NotBetter) } else { Verdict::OtherLoad(Goal::More) };
    }
    // Open-loop calls have caught up, so measurements of the backlog are no longer valid.
    if in_flight < -factor {
        return Verdict::OtherLoad(Goal::Less);
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
            _ if margin > doubt && is_earned && is_precise => ended(Outcome::Better),
            _ if margin < -doubt => ended(Outcome::NotBetter),
            _ if is_last && margin > 0.0 && gain > doubt && is_earned => ended(Outcome::Better),
            _ if is_last && margin > 0.0 && is_earned => ended(Outcome::InDoubt),
            _ if is_last => ended(Outcome::NotBetter),
            _ => Verdict::Undecided,
        };
    }
    let margin = gain + config.loss_max;
    let is_last = ticks.len() >= config.down_ticks_max;
    match margin {
        _ if gain > doubt && is_earned => ended(Outcome::Better),
        _ if margin.abs() > doubt || is_last => ended(Outcome::NotBetter),
        _ => Verdict::Undecided,
    }
}

/// Returns whether one number of lanes is significantly better than another.
pub(super) fn is_better(config: &PolicyConfig, one: &Measured, other: &Measured) -> bool {
    let (gain, error) = one.gain_over(other, config.latency_weight);
    gain - config.gain_min > config.sigmas * error
}
