//! A load under some conditions, measured in rounds.

use std::ops::Add;

use thalweg_load::scheduled;
use thalweg_measure::validity::{Cause, Validity};

use crate::figure::Figure;

/// Requests whose mean lengths differ by more than this share are others.
const REQUEST_SHARE_MAX: f64 = 0.01;

/// What was measured once, or in one of several rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures([Option<f64>; Figure::ALL.len()]);

/// Figures with their round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Round {
    /// Where both sides were measured in turns, those of the same number are a pair.
    pub number: u32,
    /// What was found.
    pub figures: Figures,
    /// How its calls went.
    pub calls: Calls,
    /// Parts of a run, one after the other: they stand in for rounds where a run is alone.
    pub intervals: Vec<Figures>,
    /// Why its figures must not be used.
    pub not_valid: Validity,
}

/// Calls of a round, or flows of a scenario, by outcome. All 0 if they were not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Calls that ended with OK.
    pub ok: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Calls that the schedule had and that never started.
    pub dropped: u64,
}

/// A load under some conditions.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// What was asked for.
    pub conditions: Conditions,
    /// A schedule said when calls were to begin.
    pub is_open: bool,
    /// Runs, or windows.
    pub rounds: Vec<Round>,
    /// Bytes of a request on average, where that is known: not one of the conditions, as templates make them differ.
    pub request_bytes: Option<f64>,
}

/// What was asked for, by name. Loads with the same conditions are one cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions(Vec<(String, String)>);

impl Figures {
    /// Its value; `None` where it was not measured. Values that are not above zero are none: of them there is no ratio.
    pub fn get(&self, figure: Figure) -> Option<f64> {
        self.0[figure.index()]
    }

    /// The same with this value.
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
    /// Returns whether something other than the server shaped its figures. Calls that failed, or that never ended, may
    /// be the server's. A client that is the limit hides how much faster a server is, but not that it is slower.
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

    /// What two loads' requests have on average, in bytes, where they are not the same.
    pub(crate) fn other_requests(&self, other: &Self) -> Option<(f64, f64)> {
        let (one, other) = (self.request_bytes?, other.request_bytes?);
        ((one - other).abs() > one.max(other) * REQUEST_SHARE_MAX).then_some((one, other))
    }

    /// Adds further rounds of the same load; each run's rounds count on from those that are there.
    pub(crate) fn add(&mut self, mut other: Self) {
        let next = self.rounds.iter().map(|round| round.number + 1).max().unwrap_or(0);
        other.rounds.iter_mut().for_each(|round| round.number += next);
        self.rounds.extend(other.rounds);
    }

    /// Returns the parts of all runs.
    pub(crate) fn intervals(&self) -> impl Iterator<Item = &Figures> {
        self.rounds.iter().flat_map(|round| &round.intervals)
    }
}

impl Conditions {
    /// In the order in which they are shown.
    pub fn new(conditions: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        Self(conditions.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// By name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// In which they differ: the name, and both values; `none` where one has no such condition.
    pub fn differences(&self, other: &Self) -> Vec<(String, String, String)> {
        let names = self.iter().chain(other.iter().filter(|(name, _)| self.get(name).is_none()));
        let both = names.map(|(name, _)| (name, self.get(name), other.get(name)));
        let text = |value: Option<&str>| value.unwrap_or("none").to_owned();
        both.filter(|(_, one, other)| one != other)
            .map(|(name, one, other)| (name.to_owned(), text(one), text(other)))
            .collect()
    }

    /// Those that all have, and of each what it has besides.
    pub(crate) fn divided(all: &[&Self]) -> (Self, Vec<Self>) {
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

    /// What a schedule counts, and a share of failed ones is of.
    pub(crate) fn unit(&self) -> &'static str {
        if self.get("type") == Some("scenario") { "flow" } else { "call" }
    }

    /// In a line: values that speak for themselves alone, and others with their names.
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
    fn what_all_have_is_told_apart() {
        let load =
            |method: &str| Conditions::new([("method", method.to_owned()), ("in flight", "8".to_owned())]);
        let (one, other) = (load("a.B/C"), load("a.B/D"));
        let (common, own) = Conditions::divided(&[&one, &other]);
        assert_eq!(common.line(), "8 in flight");
        assert_eq!(own.iter().map(Conditions::line).collect::<Vec<_>>(), ["a.B/C", "a.B/D"]);
        assert_eq!(Conditions::divided(&[]), (Conditions::default(), Vec::new()));
    }

    #[test]
    fn what_has_no_ratio_is_no_value() {
        let figures = Figures::default().with(Figure::Rate, Some(0.0)).with(Figure::P50, Some(7.0));
        assert_eq!((figures.get(Figure::Rate), figures.get(Figure::P50)), (None, Some(7.0)));
    }
}
