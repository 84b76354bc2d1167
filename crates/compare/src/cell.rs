//! One load, measured in rounds.

use std::ops::Add;

use thalweg_load::scheduled;
use thalweg_measure::validity::{Cause, Validity};

use crate::figure::Figure;

/// Maximum relative difference of mean request sizes that still count as equal.
const REQUEST_SHARE_MAX: f64 = 0.01;

/// Figures of one round or interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures([Option<f64>; Figure::ALL.len()]);

/// Figures of one round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Round {
    /// Round number. Rounds of both sides with the same number are a pair if the sides were measured alternately.
    pub number: u32,
    /// The measured figures.
    pub figures: Figures,
    /// Call counts.
    pub calls: Calls,
    /// Intervals of the run, in order. They replace rounds if a side has only one run.
    pub intervals: Vec<Figures>,
    /// Reasons why the figures are not valid.
    pub not_valid: Validity,
}

/// Calls of a round, or flows of a scenario, by outcome. All 0 if not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Calls that ended with OK.
    pub ok: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Scheduled calls that never started.
    pub dropped: u64,
}

/// One load, with its rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The load's settings.
    pub conditions: Conditions,
    /// Whether a schedule determined when calls start (open loop).
    pub is_open: bool,
    /// Runs or windows.
    pub rounds: Vec<Round>,
    /// Mean request size in bytes, if known. Not a condition, because templates make it vary.
    pub request_bytes: Option<f64>,
}

/// Settings of a load, by name. Loads with equal conditions are one cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions(Vec<(String, String)>);

impl Figures {
    /// Returns the value, or `None` if it was not measured or is not positive (it has no ratio then).
    pub fn get(&self, figure: Figure) -> Option<f64> {
        self.0[figure.index()]
    }

    /// Sets a figure. Values that are not positive and finite count as not measured.
    pub fn with(mut self, figure: Figure, value: Option<f64>) -> Self {
        self.0[figure.index()] = value.filter(|value| *value > 0.0 && value.is_finite());
        self
    }
}

impl Calls {
    /// Returns the number of calls with any outcome.
    pub fn total(self) -> u64 {
        self.ok + self.failed + self.dropped
    }

    /// Returns the share of calls that failed or never started, or 0 if there are no calls.
    pub fn failed_share(self) -> f64 {
        (self.failed + self.dropped) as f64 / self.total().max(1) as f64
    }
}

impl Add for Calls {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            ok: self.ok + other.ok,
            failed: self.failed + other.failed,
            dropped: self.dropped + other.dropped,
        }
    }
}

impl Round {
    /// Returns whether something other than the server affected the figures. Failed or unfinished calls may be the
    /// server's fault. A client limit hides how much faster a server is, but not that it is slower.
    pub(crate) fn is_disturbed(&self) -> bool {
        let tells_of_server =
            |cause| matches!(cause, Cause::CallsFailed | Cause::NotMeasured | Cause::ClientLimit);
        self.not_valid.reasons.iter().any(|reason| !tells_of_server(reason.cause))
    }

    /// Returns whether the client was the limit.
    pub(crate) fn is_client_limit(&self) -> bool {
        self.not_valid.reasons.iter().any(|reason| reason.cause == Cause::ClientLimit)
    }
}

impl Cell {
    /// Returns the calls of all rounds.
    pub fn calls(&self) -> Calls {
        self.rounds.iter().map(|round| round.calls).fold(Calls::default(), Calls::add)
    }

    /// Returns the mean request sizes of both loads in bytes, if they differ.
    pub(crate) fn differing_request_sizes(&self, other: &Self) -> Option<(f64, f64)> {
        let (one, other) = (self.request_bytes?, other.request_bytes?);
        ((one - other).abs() > one.max(other) * REQUEST_SHARE_MAX).then_some((one, other))
    }

    /// Adds rounds of the same load, numbered after the existing ones.
    pub(crate) fn add(&mut self, mut other: Self) {
        let next = self.rounds.iter().map(|round| round.number + 1).max().unwrap_or(0);
        other.rounds.iter_mut().for_each(|round| round.number += next);
        self.rounds.extend(other.rounds);
    }

    /// Returns the intervals of all runs.
    pub(crate) fn intervals(&self) -> impl Iterator<Item = &Figures> {
        self.rounds.iter().flat_map(|round| &round.intervals)
    }
}

impl Conditions {
    /// Creates conditions from pairs of name and value, in display order.
    pub fn new(conditions: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        Self(conditions.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// Returns the pairs of name and value, in display order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the conditions that differ: the name and both values, or `none` for a missing one.
    pub fn differences(&self, other: &Self) -> Vec<(String, String, String)> {
        let names = self.iter().chain(other.iter().filter(|(name, _)| self.get(name).is_none()));
        let both = names.map(|(name, _)| (name, self.get(name), other.get(name)));
        let text = |value: Option<&str>| value.unwrap_or("none").to_owned();
        both.filter(|(_, one, other)| one != other)
            .map(|(name, one, other)| (name.to_owned(), text(one), text(other)))
            .collect()
    }

    /// Returns the conditions that all loads share, and the remaining ones of each load.
    pub(crate) fn split_common(all: &[&Self]) -> (Self, Vec<Self>) {
        let is_common = |pair: &&(String, String)| all.iter().all(|one| one.0.contains(pair));
        let common: Vec<_> =
            all.first().map(|one| one.0.iter().filter(is_common).cloned().collect()).unwrap_or_default();
        let own = |one: &&Self| Self(one.0.iter().filter(|pair| !common.contains(pair)).cloned().collect());
        let own = all.iter().map(own).collect();
        (Self(common), own)
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Returns the unit that a schedule counts and of which a share may fail.
    pub(crate) fn unit(&self) -> &'static str {
        if self.get("type") == Some("scenario") { "flow" } else { "call" }
    }

    /// Returns the conditions on one line. Self-explanatory values are shown without their names.
    pub fn line(&self) -> String {
        let part = |(name, value): (&str, &str)| match name {
            "method" | "call" | "size" | "transport" | "stack" => value.to_owned(),
            "loop" => format!("{value} loop"),
            "type" => value.replace('-', " "),
            "in flight" => format!("{value} in flight"),
            "connections" if value == "1" => "1 connection".to_owned(),
            "connections" => format!("{value} connections"),
            "schedule" => scheduled(value, self.unit()),
            _ => format!("{name} {value}"),
        };
        self.iter().map(part).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_differ_by_name() {
        let one = Conditions::new([("method", "a.B/C".to_owned()), ("in flight", "64".to_owned())]);
        let other = Conditions::new([("method", "a.B/C".to_owned()), ("schedule", "100".to_owned())]);
        let named = |name: &str, one: &str, other: &str| (name.to_owned(), one.to_owned(), other.to_owned());
        assert_eq!(
            one.differences(&other),
            [named("in flight", "64", "none"), named("schedule", "none", "100")]
        );
        assert_eq!(one.differences(&one), []);
        assert_eq!(one.line(), "a.B/C, 64 in flight");
    }

    #[test]
    fn shared_conditions_are_split_from_differing_ones() {
        let load =
            |method: &str| Conditions::new([("method", method.to_owned()), ("in flight", "8".to_owned())]);
        let (one, other) = (load("a.B/C"), load("a.B/D"));
        let (common, own) = Conditions::split_common(&[&one, &other]);
        assert_eq!(common.line(), "8 in flight");
        assert_eq!(own.iter().map(Conditions::line).collect::<Vec<_>>(), ["a.B/C", "a.B/D"]);
        assert_eq!(Conditions::split_common(&[]), (Conditions::default(), Vec::new()));
    }

    #[test]
    fn values_without_a_ratio_count_as_not_measured() {
        let figures = Figures::default().with(Figure::Rate, Some(0.0)).with(Figure::P50, Some(7.0));
        assert_eq!((figures.get(Figure::Rate), figures.get(Figure::P50)), (None, Some(7.0)));
    }
}
