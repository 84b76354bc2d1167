//! One cell of a study of calls, as expressions see it.

use thalweg_measure::distribution::Latency;
use thalweg_measure::statistics::Ratio;

use crate::load::paired::{self, PairedWindow};

/// Figures of a cell.
pub(crate) struct CallsCell {
    /// Name for error texts.
    pub(crate) at: String,
    pub(crate) rate_per_s: f64,
    /// Number of measured operations.
    pub(crate) operations: u64,
    /// Latency; `None` for one-way streams.
    pub(crate) latency: Option<Latency>,
    /// Largest number of connections in the kernel's tables.
    pub(crate) connections: Option<u32>,
    /// Processor time per operation of client and server, ns; 0 if unknown.
    pub(crate) processor_ns: (f64, f64),
    pub(crate) windows: Vec<PairedWindow>,
}

impl CallsCell {
    /// Returns this cell's rate divided by another's, over windows of the same round.
    pub(crate) fn rate_over(&self, other: &Self) -> Option<Ratio> {
        paired::ratio(&self.windows, &other.windows, |window| window.rate_per_s)
    }

    /// Returns a figure by name, with times in ns.
    pub(crate) fn figure(&self, name: &str) -> Result<f64, String> {
        let latency = || self.latency.as_ref().ok_or_else(|| format!("{}: no latency", self.at));
        Ok(match name {
            "rate" => self.rate_per_s,
            "operations" => self.operations as f64,
            "connections" => {
                let connections = self.connections.map(f64::from);
                connections.ok_or("the kernel did not report the number of connections")?
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
