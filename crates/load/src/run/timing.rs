//! A distribution of times in a result.

use serde::{Deserialize, Serialize};
use thalweg_measure::distribution::{Distribution, Latency};
use thalweg_measure::histogram::Histogram;

/// Distribution of times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Number of times.
    pub count: u64,
    /// Times in ns.
    #[serde(flatten)]
    pub ns: Latency,
    /// Histogram with three digits, up to an hour.
    pub histogram: Histogram,
}

impl Timing {
    pub(crate) fn of(distribution: &Distribution) -> Option<Self> {
        Some(Self {
            count: distribution.len(),
            ns: distribution.latency()?,
            histogram: distribution.histogram(),
        })
    }

    /// Returns the 95th percentile in ns. In results of earlier versions it comes from the histogram.
    pub fn p95(&self) -> Option<u64> {
        self.ns.p95.or_else(|| Some(self.distribution()?.value_at(0.95)))
    }

    /// Returns the distribution, or `None` if its histogram was left out.
    pub fn distribution(&self) -> Option<Distribution> {
        Distribution::restored(&self.histogram, &self.ns)
    }
}
