//! What was measured at one cell of a study of calls.

use thalweg_measure::distribution::Latency;
use thalweg_measure::statistics::Ratio;

use crate::load::paired::{self, PairedWindow};

/// What was measured there.
pub(crate) struct CallsCell {
    /// Its name in reasons.
    pub(crate) at: String,
    pub(crate) rate_per_s: f64,
    /// How many operations its figures are of.
    pub(crate) operations: u64,
    /// None of streams one way.
    pub(crate) latency: Option<Latency>,
    /// The most that the kernel saw.
    pub(crate) connections: Option<u32>,
    /// Processor time of an operation, client's and server's, ns; 0 where it is not known.
    pub(crate) processor_ns: (f64, f64),
    pub(crate) windows: Vec<PairedWindow>,
}

impl CallsCell {
    /// How many times the rate of another cell this one has, by windows of the same round.
    pub(crate) fn rate_over(&self, other: &Self) -> Option<Ratio> {
        paired::ratio(&self.windows, &other.windows, |window| window.rate_per_s)
    }

    /// A figure by its name: times in ns.
    pub(crate) fn figure(&self, name: &str) -> Result<f64, String> {
        let latency = || self.latency.as_ref().ok_or_else(|| format!("{}: no latency", self.at));
        Ok(match name {
            "rate" => self.rate_per_s,
            "operations" => self.operations as f64,
            "connections" => {
                let seen = self.connections.map(f64::from);
                seen.ok_or("the kernel did not say how many connections there were")?
            }
            "client_ns" => self.processor_ns.0,
            "server_ns" => self.processor_ns.1,
            "mean" => latency()?.mean,
            "p50" => latency()?.p50 as f64,
            "p99" => latency()?.p99 as f64,
            "p99_9" => latency()?.p99_9 as f64,
            _ => return Err(format!("a cell has no `{name}`")),
        })
    }
}
