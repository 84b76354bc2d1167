//! Condensed results of a channels study.

use serde_json::{Value, json};
use thalweg_measure::figures::short;

use super::analyse::Channels;
use super::findings::StackVerdict;
use super::numbers::{Adaptive, Best, BestNumbers, LoadRow};
use crate::load::gathered::MergedCell;
use crate::load::verdict::JudgedRatio;
use crate::load::{LabResults, condensed};

/// Returns rates of all points with intervals. For each load it adds the best number, its gain over one connection,
/// and the adaptive channel's share of its rate.
pub(super) fn condensed(results: &LabResults, channels: &Channels<'_>, verdicts: &[StackVerdict]) -> String {
    let loads = |verdict: &StackVerdict| {
        let BestNumbers { rows, .. } = &verdict.numbers;
        rows.iter().map(|row| load(verdict, row)).collect::<Vec<_>>()
    };
    let body = json!({
        "stacks": results.stacks,
        "noise_ratio": short(channels.noise.exp()),
        "points": channels.points().map(point).collect::<Vec<_>>(),
        "loads": verdicts.iter().flat_map(loads).collect::<Vec<_>>(),
    });
    condensed::text(results, &results.settings.arguments, body)
}

fn point(cell: &MergedCell<'_>) -> Value {
    let interval = cell.rate_interval();
    json!({
        "work": cell.point.work,
        "round_trip_ns": cell.point.round_trip.as_nanos() as u64,
        "in_flight": cell.point.in_flight,
        "client": cell.pair.map(|pair| &pair.client),
        "server": cell.pair.map(|pair| &pair.server),
        "strategy": cell.strategy,
        "windows": cell.valid().count(),
        "rate_per_s": short(cell.rate_per_s()),
        "low": interval.map(|interval| short(interval.low)),
        "high": interval.map(|interval| short(interval.high)),
    })
}

fn load(verdict: &StackVerdict, row: &LoadRow) -> Value {
    let BestNumbers { stack: (client, server), call, round_trip, .. } = &verdict.numbers;
    let best = match &row.best {
        Best::Only | Best::One => Some(1),
        Best::Several(several) => Some(several.connections),
        Best::CannotTell => None,
    };
    let adaptive = |Adaptive { of, share }: &Adaptive| compared(share, *of);
    json!({
        "work": call.name(),
        "round_trip_ns": round_trip.as_nanos() as u64,
        "in_flight": row.in_flight,
        "client": client,
        "server": server,
        "best": best,
        "several_over_one": row.most_informative().map(|several| compared(&several.over_one, several.connections)),
        "adaptive_over_best": row.adaptive.as_ref().map(adaptive),
    })
}

/// Returns a comparison with the fixed number of `connections`.
fn compared(compared: &JudgedRatio, connections: u32) -> Value {
    let mut value = condensed::compared(*compared);
    value["connections"] = json!(connections);
    value
}
