//! Condensed results of a comparison.

use serde_json::{Value, json};
use thalweg_measure::figures::short;

use super::compare::{Against, ComparedCell, StacksCompared};
use crate::load::noise::Floor;
use crate::load::{LabResults, condensed};

/// Returns the machine, stacks, noise floors as ratios, and cells. Cells have our figures and ratios ours ÷ theirs of
/// rates, with intervals and verdicts.
pub(super) fn condensed(results: &LabResults, comparison: &StacksCompared<'_>) -> String {
    let floor = |floor: &Floor| {
        let (kind, ratio) = (floor.kind, short(floor.rate.exp()));
        json!({"work": kind.work, "in_flight": kind.in_flight, "connections": kind.connections, "ratio": ratio})
    };
    let body = json!({
        "stacks": results.stacks,
        "noise": comparison.noise.floors.iter().map(floor).collect::<Vec<_>>(),
        "cells": comparison.cells.iter().map(cell).collect::<Vec<_>>(),
    });
    condensed::text(results, &results.settings.arguments, body)
}

fn cell(cell: &ComparedCell<'_>) -> Value {
    json!({
        "work": cell.kind.work,
        "in_flight": cell.kind.in_flight,
        "connections": cell.kind.connections,
        "transport": cell.transport,
        "size_bytes": cell.size,
        "rate_per_s": cell.ours.rate().map(short),
        "p50_ns": cell.ours.p50_ns(),
        "share_of_socket": cell.reference.map(|reference| short(reference.share.ratio)),
        "against": cell.against.iter().map(against).collect::<Vec<_>>(),
    })
}

fn against(against: &Against<'_>) -> Value {
    let mut figures = condensed::compared(against.rate);
    figures["client"] = json!(against.pair.client);
    figures["server"] = json!(against.pair.server);
    if let Some(replaced) = against.replaced {
        figures["replaced"] = condensed::compared(replaced);
    }
    figures
}
