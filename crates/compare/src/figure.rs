//! Figures that are compared.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use thalweg_measure::figures::{grouped, time};

/// A figure of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(into = "&'static str")]
pub enum Figure {
    /// Calls that ended with OK, or messages of streams, per second.
    Rate,
    /// Mean latency.
    Mean,
    /// Median latency.
    P50,
    /// 90th percentile of latency.
    P90,
    /// 95th percentile of latency.
    P95,
    /// 99th percentile of latency.
    P99,
    /// CPU time of the client per call.
    ClientCpu,
    /// CPU time of the server per call.
    ServerCpu,
}

/// A name that matches no figure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown figure `{0}`; use rate, mean, p50, p90, p95, p99, client-cpu or server-cpu")]
pub struct UnknownFigure(String);

impl Figure {
    /// All figures, in report order.
    pub const ALL: [Self; 8] = [
        Self::Rate,
        Self::Mean,
        Self::P50,
        Self::P90,
        Self::P95,
        Self::P99,
        Self::ClientCpu,
        Self::ServerCpu,
    ];

    /// Returns the name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::ClientCpu => "client-cpu",
            Self::ServerCpu => "server-cpu",
        }
    }

    /// Returns the name in tables.
    pub fn label(self) -> &'static str {
        match self {
            Self::Mean => "mean latency",
            Self::ClientCpu => "client CPU per call",
            Self::ServerCpu => "server CPU per call",
            Self::Rate | Self::P50 | Self::P90 | Self::P95 | Self::P99 => self.name(),
        }
    }

    /// Returns whether a higher value is better.
    pub fn higher_is_better(self) -> bool {
        self == Self::Rate
    }

    /// Formats a value with its unit.
    pub fn format(self, value: f64) -> String {
        if self.higher_is_better() { format!("{}/s", grouped(value)) } else { time(value) }
    }

    pub(crate) fn index(self) -> usize {
        self as usize
    }
}

impl From<Figure> for &'static str {
    fn from(figure: Figure) -> Self {
        figure.name()
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Figure {
    type Err = UnknownFigure;

    fn from_str(name: &str) -> Result<Self, UnknownFigure> {
        let figure = Self::ALL.into_iter().find(|figure| figure.name() == name);
        figure.ok_or_else(|| UnknownFigure(name.to_owned()))
    }
}
