//! Table of a channels study: the common columns and its own.

use super::analyse::Channels;
use super::findings::{StackVerdict, several};
use crate::load::table::{WindowColumns, windows};
use crate::load::{IdleGaps, Strategy, SystemCalls};

/// Adds the study's own columns. Ratios of a load, and separate counts and observations, are repeated for each window
/// of their point.
pub(super) fn table<'a>(channels: &'a Channels<'_>, verdicts: &'a [StackVerdict]) -> WindowColumns<'a> {
    // Bare sockets take no part, so there is no reference rate.
    windows(|_| None)
        .plain("strategy", |window| window.strategy.map(Strategy::name))
        .plain("round_trip_ns", |window| Some(window.point.round_trip.as_nanos()))
        .plain("lanes_at_the_end", |window| Some(window.measured()?.lanes.last()?.lanes))
        .plain_ratio("rate_over_one_connection", move |window| {
            several(verdicts, channels.cell(window)?)?.over_one.ratio
        })
        .plain_figures::<SystemCalls>(
            move |window| channels.cell(window)?.system_calls,
            &[
                ("system_calls_client_per_operation", |it| Some(format!("{:.4}", it.client_per_operation))),
                ("system_calls_server_per_operation", |it| Some(format!("{:.4}", it.server_per_operation))),
            ],
        )
        .plain_figures::<&IdleGaps>(
            move |window| Some(&channels.cell(window)?.wire?.all),
            &[
                ("wire_idle_share", |idle| Some(format!("{:.4}", idle.share))),
                ("wire_gaps", |idle| Some(idle.gaps.to_string())),
                ("wire_gap_p50_ns", |idle| Some(idle.p50_ns.to_string())),
                ("wire_gap_p99_ns", |idle| Some(idle.p99_ns.to_string())),
                ("wire_gap_max_ns", |idle| Some(idle.max_ns.to_string())),
            ],
        )
}
