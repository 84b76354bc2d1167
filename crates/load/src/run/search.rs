//! Result of a search for a rate.

use serde::{Deserialize, Serialize};

/// Search for the highest rate that meets conditions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// Conditions.
    pub conditions: Vec<String>,
    /// Highest rate that meets them, in calls per second, or flows in a scenario. `null` if none of the tried rates
    /// does.
    pub found_per_s: Option<f64>,
    /// Tried rates, in order.
    pub tries: Vec<Try>,
}

/// A tried rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Try {
    /// Scheduled calls per second; flows in a scenario.
    pub rate_per_s: f64,
    /// Calls per second that ended with OK; successful flows in a scenario.
    pub reached_per_s: f64,
    /// Whether all conditions were met.
    #[serde(rename = "is_kept")]
    pub is_met: bool,
    /// Figures of the conditions, or why the rate was not reached.
    pub figures: Vec<String>,
}
