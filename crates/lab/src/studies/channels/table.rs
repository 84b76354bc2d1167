//! The table of a channels study: what every study of calls has, and what was counted and watched apart.

use super::analyse::Channels;
use super::findings::{StackVerdict, several};
use crate::load::table::{RATIO, WindowsTable, measured, windows};
use crate::load::{Idle, Strategy, SystemCalls};

/// What a channels study has besides: ratios of a load, and what was counted and watched apart, stand with every window
/// of their point.
pub(super) fn table<'a>(channels: &'a Channels<'_>, verdicts: &'a [StackVerdict]) -> WindowsTable<'a> {
    // Bare sockets take no part: there is nothing to that a rate could stand beside.
    let mut table = windows(|_| None);
    table.column("strategy", |window| window.strategy.map(Strategy::name));
    table.column("round_trip_ns", |window| Some(window.point.round_trip.as_nanos().to_string()));
    measured(&mut table, "lanes_at_the_end", |it| Some(it.lanes.last()?.lanes.to_string()));
    table.figures(
        move |window| several(verdicts, channels.cell(window)?)?.over_one.ratio,
        &[
            ("rate_over_one_connection", RATIO[0]),
            ("rate_over_one_connection_low", RATIO[1]),
            ("rate_over_one_connection_high", RATIO[2]),
        ],
    );
    table.figures::<SystemCalls>(
        move |window| channels.cell(window)?.system_calls,
        &[
            ("system_calls_client_per_operation", |it| Some(format!("{:.4}", it.client_per_operation))),
            ("system_calls_server_per_operation", |it| Some(format!("{:.4}", it.server_per_operation))),
        ],
    );
    table.figures::<&Idle>(
        move |window| Some(&channels.cell(window)?.wire?.all),
        &[
            ("wire_idle_share", |idle| Some(format!("{:.4}", idle.share))),
            ("wire_gaps", |idle| Some(idle.gaps.to_string())),
            ("wire_gap_p50_ns", |idle| Some(idle.p50_ns.to_string())),
            ("wire_gap_p99_ns", |idle| Some(idle.p99_ns.to_string())),
            ("wire_gap_max_ns", |idle| Some(idle.max_ns.to_string())),
        ],
    );
    table
}
