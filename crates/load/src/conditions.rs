//! Conditions on the figures of a run.

use std::fmt;
use std::str::FromStr;

use thalweg_measure::figures::time;

use crate::run::{ConditionResult, LoadRun, RunNote, Timing};

/// A condition on a figure, such as `p99<5ms`, `errors<0.1%` or `rate>10000`.
///
/// ```
/// use thalweg_load::Condition;
///
/// let conditions = Condition::parse_all("p99 < 5ms, errors<0.1%,rate>10000")?;
/// assert_eq!(conditions[0].to_string(), "p99<5ms");
/// # Ok::<(), thalweg_load::ConditionError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    text: String,
    figure: Figure,
    comparison: Comparison,
    bound: f64,
}

/// An invalid condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid condition `{condition}`: {why}; examples: p95<5ms, wait.p99<1ms, errors<0.1%, rate>10000, dropped<=0"
)]
pub struct ConditionError {
    condition: String,
    why: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Figure {
    Time(Part, Quantile),
    /// Share of failed calls, 0..1.
    Errors,
    Rate,
    Calls,
    Late,
    Dropped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Latency,
    Service,
    Wait,
    First,
    Reply,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Quantile {
    Min,
    Mean,
    /// The percentage of calls that take at most this long, between 0 and 100.
    Percentile(f64),
    Max,
}

/// Note on conditions of a run whose figures may be the client's.
const NOT_VALID: &str =
    "the run is NOT VALID: passed or failed conditions may be due to the client, not the server";

const P50: Quantile = Quantile::Percentile(50.0);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Less,
    AtMost,
    More,
    AtLeast,
}

impl Condition {
    /// Parses comma-separated conditions.
    ///
    /// # Errors
    ///
    /// If one is invalid.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, ConditionError> {
        text.split(',').map(str::trim).filter(|condition| !condition.is_empty()).map(str::parse).collect()
    }

    /// Checks the condition on a run.
    pub fn check(&self, run: &LoadRun) -> ConditionResult {
        let figure = self.figure.of(run);
        let is_met = figure.is_some_and(|figure| match self.comparison {
            Comparison::Less => figure < self.bound,
            Comparison::AtMost => figure <= self.bound,
            Comparison::More => figure > self.bound,
            Comparison::AtLeast => figure >= self.bound,
        });
        let figure = figure.map_or_else(|| "none".to_owned(), |figure| self.figure.formatted(figure));
        ConditionResult { condition: self.text.clone(), figure, is_met }
    }
}

impl LoadRun {
    /// Stores the results of conditions. Adds a note if the run is not valid.
    pub fn set_condition_results(&mut self, conditions: Vec<ConditionResult>) {
        self.conditions = conditions;
        if !self.conditions.is_empty() && !self.is_valid() {
            self.notes.push(RunNote::new(NOT_VALID));
        }
    }
}

impl Figure {
    fn of(self, run: &LoadRun) -> Option<f64> {
        match self {
            Self::Time(part, quantile) => {
                let timing: Option<&Timing> = match part {
                    Part::Latency => run.latency.as_ref(),
                    Part::Service => run.service.as_ref(),
                    Part::Wait => run.wait.as_ref(),
                    Part::First => run.first_message.as_ref(),
                    Part::Reply => run.reply.as_ref(),
                };
                quantile.of(timing?)
            }
            // With no finished call, the share is unknown.
            Self::Errors => (run.calls() > 0).then(|| run.failed_share()),
            Self::Rate => Some(run.rate_per_s),
            Self::Calls => Some(run.ok as f64),
            Self::Late => Some(run.late as f64),
            Self::Dropped => Some(run.dropped as f64),
        }
    }

    fn formatted(self, figure: f64) -> String {
        match self {
            Self::Time(..) => time(figure),
            Self::Errors => format!("{:.4} %", figure * 100.0),
            Self::Rate => format!("{figure:.1}/s"),
            _ => format!("{figure}"),
        }
    }
}

impl Quantile {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "min" => Self::Min,
            "mean" => Self::Mean,
            "median" => P50,
            "max" => Self::Max,
            _ => {
                let percent = name.strip_prefix('p')?;
                let is_plain = percent.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
                let percent: f64 = percent.parse().ok().filter(|_| is_plain)?;
                (percent > 0.0 && percent < 100.0).then_some(Self::Percentile(percent))?
            }
        })
    }

    /// Returns `None` if the histogram is needed but absent.
    fn of(self, timing: &Timing) -> Option<f64> {
        let ns = &timing.ns;
        Some(match self {
            Self::Min => ns.min as f64,
            Self::Mean => ns.mean,
            Self::Percentile(percent) => {
                let known =
                    [(50.0, ns.p50), (90.0, ns.p90), (99.0, ns.p99), (99.9, ns.p99_9), (99.99, ns.p99_99)];
                match known.iter().find(|(known, _)| (known - percent).abs() < 1e-9) {
                    Some((_, ns)) => *ns as f64,
                    None => timing.distribution()?.value_at(percent / 100.0) as f64,
                }
            }
            Self::Max => ns.max as f64,
        })
    }
}

impl FromStr for Figure {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let (part, quantile) = match name.split_once('.') {
            Some((part @ ("latency" | "service" | "wait" | "first" | "reply"), quantile)) => (part, quantile),
            _ => ("latency", name),
        };
        let part = match part {
            "service" => Part::Service,
            "wait" => Part::Wait,
            "first" => Part::First,
            "reply" => Part::Reply,
            _ => Part::Latency,
        };
        if let Some(quantile) = Quantile::parse(quantile) {
            return Ok(Self::Time(part, quantile));
        }
        match name {
            "errors" => Ok(Self::Errors),
            "rate" => Ok(Self::Rate),
            "calls" => Ok(Self::Calls),
            "late" => Ok(Self::Late),
            "dropped" => Ok(Self::Dropped),
            _ => Err(format!(
                "unknown figure `{name}`: min, mean, max and percentiles such as p50, p95 and p99.9, between p0 \
                 and p100, of latency, service., wait., first. and reply.; errors, rate, calls, late, dropped"
            )),
        }
    }
}

impl FromStr for Condition {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, ConditionError> {
        let error = |why: String| ConditionError { condition: text.to_owned(), why };
        let at = text.find(['<', '>']).ok_or_else(|| error("expected < or >".to_owned()))?;
        let (name, rest) = text.split_at(at);
        let (comparison, bound) = match (rest.as_bytes()[0], rest[1..].strip_prefix('=')) {
            (b'<', None) => (Comparison::Less, &rest[1..]),
            (b'<', Some(bound)) => (Comparison::AtMost, bound),
            (_, None) => (Comparison::More, &rest[1..]),
            (_, Some(bound)) => (Comparison::AtLeast, bound),
        };
        let figure: Figure = name.trim().parse().map_err(error)?;
        let bound = bound.trim();
        let number = |text: &str| {
            let number =
                text.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
            number.ok_or_else(|| error(format!("`{text}` is not a number")))
        };
        let bound_number = match figure {
            Figure::Time(..) => humantime::parse_duration(bound)
                .map(|time| time.as_nanos() as f64)
                .map_err(|_| error(format!("expected a time such as 5ms, found `{bound}`")))?,
            Figure::Errors => match bound.strip_suffix('%') {
                Some(percent) => number(percent)? / 100.0,
                None => number(bound)?,
            },
            _ => number(bound)?,
        };
        let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        Ok(Self { text, figure, comparison, bound: bound_number })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use thalweg_measure::distribution::Distribution;
    use thalweg_measure::histogram::Histogram;
    use thalweg_measure::validity::{Cause, Reason, Validity};

    use super::*;

    #[test]
    fn conditions_are_parsed() {
        let check = |text: &str, figure: Figure, comparison: Comparison, bound: f64| {
            let condition: Condition = text.parse().unwrap();
            assert_eq!((condition.figure, condition.comparison), (figure, comparison), "{text}");
            assert!((condition.bound - bound).abs() < 1e-9, "{text}");
        };
        check("p99<5ms", Figure::Time(Part::Latency, Quantile::Percentile(99.0)), Comparison::Less, 5e6);
        let percentile = |part, percent| Figure::Time(part, Quantile::Percentile(percent));
        check("p95<10ms", percentile(Part::Latency, 95.0), Comparison::Less, 1e7);
        check("service.p75<=1ms", percentile(Part::Service, 75.0), Comparison::AtMost, 1e6);
        check("reply.median<1ms", percentile(Part::Reply, 50.0), Comparison::Less, 1e6);
        check("p0.1<1ms", percentile(Part::Latency, 0.1), Comparison::Less, 1e6);
        check("p99.9 <= 1s", percentile(Part::Latency, 99.9), Comparison::AtMost, 1e9);
        check("wait.max<100us", Figure::Time(Part::Wait, Quantile::Max), Comparison::Less, 1e5);
        check("errors<0.1%", Figure::Errors, Comparison::Less, 0.001);
        check("errors<=0", Figure::Errors, Comparison::AtMost, 0.0);
        check("rate>=10000", Figure::Rate, Comparison::AtLeast, 10_000.0);
        for (text, expected) in [
            ("p99", "expected < or >"),
            ("p100<5ms", "unknown figure `p100`"),
            ("p0<5ms", "unknown figure `p0`"),
            ("p<5ms", "unknown figure `p`"),
            ("p9.9.9<5ms", "unknown figure `p9.9.9`"),
            ("p1e1<5ms", "unknown figure `p1e1`"),
            ("p-5<5ms", "unknown figure `p-5`"),
            ("p99<5", "expected a time"),
            ("rate>fast", "is not a number"),
            ("errors<-1", "is not a number"),
        ] {
            let error = text.parse::<Condition>().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    /// A run with latencies of 1, 2 … 1000 ms.
    fn run() -> LoadRun {
        let mut latencies = Distribution::new();
        (1..=1000).for_each(|ms| latencies.record(ms * 1_000_000));
        LoadRun { ok: 1000, latency: Timing::of(&latencies), ..LoadRun::of_tests() }
    }

    #[test]
    fn any_percentile_is_computed_from_histogram() {
        let check = |run: &LoadRun, condition: &str, is_met: bool| {
            let result = condition.parse::<Condition>().unwrap().check(run);
            assert_eq!((result.condition.as_str(), result.is_met), (condition, is_met), "{}", result.figure);
        };
        let mut run = run();
        // The histogram is exact to three digits.
        check(&run, "p95<=951ms", true);
        check(&run, "p95<949ms", false);
        check(&run, "p75>749ms", true);
        check(&run, "p75>751ms", false);
        check(&run, "p99.95>998ms", true);
        check(&run, "p0.1<3ms", true);
        check(&run, "service.p95<1h", false);
        // Without a histogram only the stored percentiles are known.
        run.latency.as_mut().unwrap().histogram = Histogram::default();
        check(&run, "p99<992ms", true);
        check(&run, "p95<1h", false);
    }

    #[test]
    fn conditions_on_invalid_run_add_note() {
        let conditions = Condition::parse_all("p99<2s,calls>1").unwrap();
        let check = |conditions: &[Condition], reasons: Vec<Reason>, expected: &[&str]| {
            let mut run = LoadRun { not_valid: Validity { reasons }, ..run() };
            run.set_condition_results(conditions.iter().map(|condition| condition.check(&run)).collect());
            let notes: Vec<&str> = run.notes.iter().map(|note| note.text.as_str()).collect();
            assert_eq!((run.conditions.len(), &notes[..]), (conditions.len(), expected));
        };
        let busy = || vec![Reason::new(Cause::ClientLimit, "busy")];
        check(&conditions, busy(), &[NOT_VALID]);
        check(&conditions, Vec::new(), &[]);
        check(&[], busy(), &[]);
    }
}
