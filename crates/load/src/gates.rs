//! What a run is expected to keep to.

use std::fmt;
use std::str::FromStr;

use thalweg_lab::figures::time;
use thalweg_lab::record::Latency;

use crate::run::{Judged, LoadRun, SCHEMA, Timing};

/// One condition, such as `p99<5ms`, `errors<0.1%` or `rate>10000`.
///
/// ```
/// use thalweg_load::Gate;
///
/// let gates = Gate::parse_all("p99 < 5ms, errors<0.1%,rate>10000")?;
/// assert_eq!(gates[0].to_string(), "p99<5ms");
/// # Ok::<(), thalweg_load::GateError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    text: String,
    figure: Figure,
    comparison: Comparison,
    bound: f64,
}

/// What was written is no condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{gate}` is no condition: {why} (p99<5ms, wait.p99<1ms, errors<0.1%, rate>10000, dropped<=0)")]
pub struct GateError {
    gate: String,
    why: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Figure {
    Time(Part, Quantile),
    /// The share of calls that failed, 0..1.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantile {
    Min,
    Mean,
    P50,
    P90,
    P99,
    P999,
    P9999,
    Max,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Less,
    AtMost,
    More,
    AtLeast,
}

impl Gate {
    /// Conditions with commas between them.
    ///
    /// # Errors
    ///
    /// For what is none.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, GateError> {
        text.split(',').map(str::trim).filter(|gate| !gate.is_empty()).map(str::parse).collect()
    }

    /// What a run must keep to so that it is no worse than an earlier one by more than `margin` (0.1: a tenth): mean,
    /// p50 and p99 of the latency, the share of failed calls, and of a closed loop the rate, which a schedule gives.
    ///
    /// # Errors
    ///
    /// Says what of the two makes them no pair.
    pub fn against(baseline: &LoadRun, run: &LoadRun, margin: f64) -> Result<Vec<Self>, String> {
        for (what, one, other) in [
            ("schema", baseline.schema.as_str(), SCHEMA),
            ("method", &baseline.method, &run.method),
            ("loop", &baseline.loop_kind, &run.loop_kind),
        ] {
            if one != other {
                return Err(format!("the baseline has another {what}: {one}, and not {other}"));
            }
        }
        let (most, least) = (1.0 + margin, 1.0 - margin);
        let mut gates = Vec::new();
        let mut gate =
            |figure: Figure, comparison: Comparison, before: Option<f64>, factor: f64, name: &str| {
                let Some(before) = before else { return };
                let (bound, sign) =
                    (before * factor, if comparison == Comparison::AtMost { "<=" } else { ">=" });
                let (shown, was) = (figure.shown(bound), figure.shown(before));
                gates.push(Self {
                    text: format!("{name}{sign}{shown} (baseline {was})"),
                    figure,
                    comparison,
                    bound,
                });
            };
        for (quantile, name) in [(Quantile::Mean, "mean"), (Quantile::P50, "p50"), (Quantile::P99, "p99")] {
            let figure = Figure::Time(Part::Latency, quantile);
            gate(figure, Comparison::AtMost, figure.of(baseline), most, name);
        }
        gate(Figure::Errors, Comparison::AtMost, Figure::Errors.of(baseline), most, "errors");
        if baseline.schedule.is_none() {
            gate(Figure::Rate, Comparison::AtLeast, Figure::Rate.of(baseline), least, "rate");
        }
        Ok(gates)
    }

    /// What it says of a run.
    pub fn judge(&self, run: &LoadRun) -> Judged {
        let figure = self.figure.of(run);
        let is_kept = figure.is_some_and(|figure| match self.comparison {
            Comparison::Less => figure < self.bound,
            Comparison::AtMost => figure <= self.bound,
            Comparison::More => figure > self.bound,
            Comparison::AtLeast => figure >= self.bound,
        });
        let figure = figure.map_or_else(|| "none".to_owned(), |figure| self.figure.shown(figure));
        Judged { gate: self.text.clone(), figure, is_kept }
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
                timing.map(|timing| quantile.of(&timing.ns))
            }
            // Nothing that ended is nothing that went well.
            Self::Errors => (run.calls() > 0).then(|| run.failed_share()),
            Self::Rate => Some(run.rate_per_s),
            Self::Calls => Some(run.ok as f64),
            Self::Late => Some(run.late as f64),
            Self::Dropped => Some(run.dropped as f64),
        }
    }

    fn shown(self, figure: f64) -> String {
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
            "p50" | "median" => Self::P50,
            "p90" => Self::P90,
            "p99" => Self::P99,
            "p99.9" => Self::P999,
            "p99.99" => Self::P9999,
            "max" => Self::Max,
            _ => return None,
        })
    }

    fn of(self, ns: &Latency) -> f64 {
        match self {
            Self::Min => ns.min as f64,
            Self::Mean => ns.mean,
            Self::P50 => ns.p50 as f64,
            Self::P90 => ns.p90 as f64,
            Self::P99 => ns.p99 as f64,
            Self::P999 => ns.p99_9 as f64,
            Self::P9999 => ns.p99_99 as f64,
            Self::Max => ns.max as f64,
        }
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
                "there is no figure `{name}`: min, mean, p50, p90, p99, p99.9, p99.99 and max of latency, service., \
                 wait., first. and reply.; errors, rate, calls, late, dropped"
            )),
        }
    }
}

impl FromStr for Gate {
    type Err = GateError;

    fn from_str(text: &str) -> Result<Self, GateError> {
        let error = |why: String| GateError { gate: text.to_owned(), why };
        let at = text.find(['<', '>']).ok_or_else(|| error("it has neither < nor >".to_owned()))?;
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
            number.ok_or_else(|| error(format!("`{text}` is no number")))
        };
        let bound_number = match figure {
            Figure::Time(..) => humantime::parse_duration(bound)
                .map(|time| time.as_nanos() as f64)
                .map_err(|_| error(format!("`{bound}` is no time, such as 5ms")))?,
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

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read() {
        let check = |text: &str, figure: Figure, comparison: Comparison, bound: f64| {
            let gate: Gate = text.parse().unwrap();
            assert_eq!((gate.figure, gate.comparison), (figure, comparison), "{text}");
            assert!((gate.bound - bound).abs() < 1e-9, "{text}");
        };
        check("p99<5ms", Figure::Time(Part::Latency, Quantile::P99), Comparison::Less, 5e6);
        check("p99.9 <= 1s", Figure::Time(Part::Latency, Quantile::P999), Comparison::AtMost, 1e9);
        check("wait.max<100us", Figure::Time(Part::Wait, Quantile::Max), Comparison::Less, 1e5);
        check("errors<0.1%", Figure::Errors, Comparison::Less, 0.001);
        check("errors<=0", Figure::Errors, Comparison::AtMost, 0.0);
        check("rate>=10000", Figure::Rate, Comparison::AtLeast, 10_000.0);
        for (text, expected) in [
            ("p99", "neither < nor >"),
            ("p98<5ms", "there is no figure `p98`"),
            ("p99<5", "is no time"),
            ("rate>fast", "is no number"),
            ("errors<-1", "is no number"),
        ] {
            let error = text.parse::<Gate>().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
