//! `thalweg.load/3`: a load on BenchmarkService.

use thalweg_load::record::{LaneRule, LoadResult, LoadSettings, MessageOwnership, Note};
use thalweg_measure::size::ByteSize;
use thalweg_measure::validity::{Cause, Reason};

use super::load_run::{cpu_ns_per_finished_call, timed};
use super::side_input::SideInput;
use crate::cell::{Calls, Cell, Conditions, Round};
use crate::figure::Figure;

impl SideInput {
    /// Converts a run to one round, without intervals.
    pub(crate) fn of_benchmark(result: &LoadResult) -> Self {
        Self {
            cells: vec![cell_of_benchmark(result, 0, None)],
            machine: None,
            versions: None,
            notes: Vec::new(),
        }
    }
}

/// Converts the run to a cell with one round of this number.
pub(super) fn cell_of_benchmark(result: &LoadResult, number: u32, server_cpu_ns: Option<f64>) -> Cell {
    let client_cpu = result
        .client_cpu_per_call
        .map(|cpu| cpu_ns_per_finished_call(cpu, result.messages, result.error_count()));
    let cause = |note: &Note| if note.is_client_limit() { Cause::ClientLimit } else { Cause::Reported };
    let invalidating = result.notes.iter().filter(|note| note.invalidates);
    let figures = timed(result.latency_ns)
        .with(Figure::Rate, Some(result.rate_per_s))
        .with(Figure::ClientCpu, client_cpu)
        .with(Figure::ServerCpu, server_cpu_ns);
    Cell {
        conditions: conditions(&result.settings),
        is_open: false,
        rounds: vec![Round {
            number,
            figures,
            calls: Calls { ok: result.messages, failed: result.error_count(), dropped: 0 },
            intervals: Vec::new(),
            not_valid: invalidating.map(|note| Reason::new(cause(note), note.text.clone())).collect(),
        }],
        request_bytes: None,
    }
}

fn conditions(settings: &LoadSettings) -> Conditions {
    let mut conditions = vec![
        ("call", settings.call.name().to_owned()),
        ("size", ByteSize(settings.size_bytes).to_string()),
        ("in flight", settings.in_flight.to_string()),
        ("connections", settings.connections.to_string()),
    ];
    if settings.lanes != LaneRule::Fixed {
        conditions.push(("lanes", settings.lanes.name().to_owned()));
    }
    if settings.message_ownership != MessageOwnership::default() {
        conditions.push(("messages", settings.message_ownership.name().to_owned()));
    }
    if let Some(method) = &settings.method {
        conditions.push(("method", method.path.clone()));
    }
    if let Some(echo) = settings.echo {
        conditions.push(("echo", format!("{} by {}", echo.shape, echo.protocol.name())));
    }
    if let Some(bare) = settings.bare {
        conditions.push(("bare client", format!("{}, {} active", bare.wire.name(), bare.active)));
    }
    Conditions::new(conditions)
}
