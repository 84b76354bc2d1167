//! Condensed results of a JSON study.

use serde_json::{Value, json};
use thalweg_measure::figures::short;

use super::analysis::JsonAnalysis;
use super::case::Case;
use super::cells::{Cells, EndpointCell};
use super::endpoint::Endpoint;
use super::noise::CaseFloor;
use crate::load::condensed;

/// Returns times, stages, rates and processor times of each endpoint and case, with their ratios to ours.
pub(super) fn condensed(study: &JsonAnalysis<'_>) -> String {
    let results = study.results;
    let body = json!({
        "stacks": results.stacks,
        "noise_ratio": short(study.cells.noise.largest().exp()),
        "noise": study.cells.noise.floors.iter().map(floor).collect::<Vec<_>>(),
        "answer": study.answer,
        "doubts": study.doubts.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "cells": study.cells.all.iter().map(|it| cell(&study.cells, it)).collect::<Vec<_>>(),
    });
    condensed::text(results, &results.settings.arguments, body)
}

fn floor(floor: &CaseFloor) -> Value {
    json!({
        "of": floor.of,
        "message": floor.case.shape,
        "noise_ratio": short(floor.log().exp()),
        "pairs": floor.ratio.pairs,
    })
}

fn cell(cells: &Cells, cell: &EndpointCell) -> Value {
    let Case { shape, round_trip_ns, rate_bit_per_s, new_connection, gzip } = cell.case;
    let ours = Endpoint::ours(cell.endpoint.protocol);
    let compared = cells.at(&ours, cell.case).filter(|_| cell.endpoint != ours);
    let views =
        cells.at(&Endpoint::views(cell.endpoint.protocol), cell.case).filter(|_| !cell.endpoint.is_views());
    let grpc = cells.at(&Endpoint::reference(), cell.case).filter(|_| cell.endpoint != Endpoint::reference());
    json!({
        "server": cell.endpoint.stack,
        "protocol": cell.endpoint.protocol,
        "message": shape,
        "round_trip_ns": round_trip_ns,
        "network_bit_per_s": rate_bit_per_s,
        "new_connection_per_call": new_connection,
        "gzip": gzip,
        "latency": cell.latency.as_ref().map(|latency| json!({
            "calls": latency.calls,
            "p50_ns": latency.all.p50, "p90_ns": latency.all.p90, "p95_ns": latency.all.p95, "p99_ns": latency.all.p99,
            "p99_9_ns": latency.all.p99_9, "max_ns": latency.all.max, "mean_ns": short(latency.all.mean),
            "request_mean_ns": short(latency.request()), "response_mean_ns": short(latency.response()),
            "stages_mean_ns": latency.stages.iter()
                .map(|stage| (stage.name.clone(), json!(short(stage.mean))))
                .collect::<serde_json::Map<_, _>>(),
            "body_bytes": [latency.bodies.0, latency.bodies.1],
            "times_grpc": grpc.map(|grpc| condensed::compared(cells.latency_ratio(cell, grpc))),
        })),
        "rate": cell.rate.as_ref().map(|rate| json!({
            "per_s": short(rate.per_s),
            "server_cpu_ns": rate.cpu_ns.map(|cpu| short(cpu.1)),
            "client_cpu_ns": rate.cpu_ns.map(|cpu| short(cpu.0)),
            "ours_over_it": compared.map(|ours| condensed::compared(cells.rate_ratio(ours, cell))),
            "views_over_it": views.map(|views| condensed::compared(cells.rate_ratio(views, cell))),
        })),
        "cold": cell.cold.as_ref().map(|cold| json!({
            "starts": cold.starts.len(), "first_ns": cold.first_ns, "calls": cold.calls,
            "mean_ns": short(cold.next.mean), "max_ns": cold.next.max,
        })),
    })
}
