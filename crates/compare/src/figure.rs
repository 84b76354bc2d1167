//! What is compared.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use thalweg_measure::figures::{grouped, time};

/// A figure that loads have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(into = "&'static str")]
pub enum Figure {
    /// Calls that ended with OK, or messages of streams, each second.
    Rate,
    /// Mean latency.
    Mean,
    /// Median latency.
    P50,
    /// 90 % are no longer.
    P90,
    /// 95 % are no longer.
    P95,
    /// 99 % are no longer.
    P99,
    /// Processor time of the client for a call.
    ClientCpu,
    /// Processor time of the server for a call.
    ServerCpu,
}

/// A name that is no figure's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown figure `{0}`: rate, mean, p50, p90, p95, p99, client-cpu, server-cpu")]
pub struct UnknownFigure(String);

impl Figure {
    /// All, in the order of reports.
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

    /// The name on the command line and in JSON.
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

    /// The name in tables.
    pub fn label(self) -> &'static str {
        match self {
            Self::Mean => "mean latency",
            Self::ClientCpu => "client CPU per call",
            Self::ServerCpu => "server CPU per call",
            Self::Rate | Self::P50 | Self::P90 | Self::P95 | Self::P99 => self.name(),
        }
    }

    /// Whether more of it is better.
    pub fn is_good(self) -> bool {
        self == Self::Rate
    }

    /// With its unit.
    pub fn shown(self, value: f64) -> String {
        if self.is_good() { format!("{}/s", grouped(value)) } else { time(value) }
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
