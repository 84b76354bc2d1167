//! Measures of a JSON study, with JVM activity during its slowest calls.

use std::time::{Duration, SystemTime};

use super::jvm_log::{JvmLog, Meanwhile};
use super::scope::Scope;
use super::value::{Value, ValueResult};
use crate::echo::Protocol;
use crate::json::{
    Case, Cells, Cold, Endpoint, EndpointCell, JsonResults, Latencies, Purpose, ServerStart, WindowResult,
};

/// The publication's JVM server, and its maintained counterpart.
const ON_JVM: [&str; 2] = ["lognet", "spring"];
/// Error text for a measured endpoint without usable figures.
const UNUSABLE: &str = "none of its windows is valid; the study’s page has why";

/// All servers of a study, with their JVM log.
pub(super) struct Servers<'r> {
    results: &'r JsonResults,
    cells: Cells,
    log: Option<&'r JvmLog>,
}

impl<'r> Servers<'r> {
    pub(super) fn of(results: &'r JsonResults, log: Option<&'r JvmLog>) -> Self {
        Self { results, cells: Cells::of(results), log }
    }

    /// Returns the measure of this name, or `None` if a JSON study does not define it. Times are in ns.
    pub(super) fn measure(&self, name: &str, scope: &Scope<'_>) -> Option<ValueResult> {
        let both = || self.both(&scope.words("stack")?);
        Some(match name {
            "original" => match ON_JVM.map(|stack| self.both(stack)) {
                [Ok(_), _] => Ok(ON_JVM[0].into()),
                [_, Ok(_)] => Ok(ON_JVM[1].into()),
                [Err(reason), _] => Err(reason),
            },
            "grpc" => both().and_then(|[grpc, _]| figures(grpc)),
            "json" => both().and_then(|[_, json]| figures(json)),
            "first_calls" => both().and_then(|both| first_calls(both, &scope.words("part")?)),
            "servers" => {
                let of = self.cells.of_case(self.published()).filter_map(|cell| figures(cell).ok());
                Ok(of.collect())
            }
            "slowest" => self.slowest(),
            _ => return None,
        })
    }

    /// Returns the case of the published message.
    fn published(&self) -> Case {
        Case::plain(self.results.settings.published)
    }

    /// Returns the gRPC and JSON cells of the published message at this stack's server.
    fn both(&self, stack: &str) -> Result<[&EndpointCell; 2], String> {
        let at = |protocol| {
            let stack = stack.parse().map_err(|_| format!("unknown stack {stack}"))?;
            let endpoint = Endpoint { stack, protocol };
            self.cells.at(&endpoint, self.published()).ok_or_else(|| {
                let left_out = self.results.left_out.iter().find(|it| it.is_stack(endpoint.stack.name()));
                let left_out = left_out.map(|it| format!("{}: {}", it.what, it.reason));
                left_out.unwrap_or_else(|| format!("{endpoint} was not measured"))
            })
        };
        Ok([at(Protocol::Grpc)?, at(Protocol::JsonHttp1)?])
    }

    /// Returns the slowest calls of JVM servers, slowest first: up to `OF_KIND` first calls and as many warm ones. Each
    /// has the JVM's activity at the time, if it was logged.
    fn slowest(&self) -> ValueResult {
        /// Most calls listed of each window.
        const OF_WINDOW: usize = 3;
        const OF_KIND: usize = 8;
        let is_of = |it: &&WindowResult| {
            ON_JVM.contains(&it.window.endpoint.stack.name())
                && it.window.case == self.published()
                && matches!(it.window.purpose, Purpose::Latency | Purpose::Cold)
        };
        let mut all = Vec::new();
        for result in self.results.windows.iter().filter(is_of) {
            let Some(load) = result.valid() else { continue };
            let began = humantime::parse_rfc3339(&load.started).ok();
            let is_first = result.window.purpose == Purpose::Cold;
            for spike in load.spikes.iter().take(OF_WINDOW) {
                let took = Duration::from_nanos(spike.took_ns);
                let mut slow = vec![
                    ("way", Value::Words(result.window.endpoint.to_string())),
                    ("is_first", is_first.into()),
                    ("took", (spike.took_ns as f64).into()),
                    ("at", (spike.at_ns as f64).into()),
                ];
                if let Some((log, began)) = self.log.zip(began) {
                    let ended = began + Duration::from_nanos(spike.at_ns);
                    let meanwhile = log.within(ended - took, ended);
                    let window = Duration::from_nanos(load.duration_ns);
                    slow.extend([
                        ("pauses", Value::Number(meanwhile.pauses as f64)),
                        ("paused", (meanwhile.paused.as_nanos() as f64).into()),
                        ("compiled", (meanwhile.compiled as f64).into()),
                        ("at_work", is_at_work(&meanwhile, took).into()),
                        ("by_chance", by_chance(log, began, window, took).into()),
                    ]);
                }
                all.push((spike.took_ns, is_first, slow));
            }
        }
        all.sort_by_key(|&(took_ns, ..)| std::cmp::Reverse(took_ns));
        let mut counts = [0; 2];
        all.retain(|&(_, is_first, _)| {
            let counts = &mut counts[usize::from(is_first)];
            *counts += 1;
            *counts <= OF_KIND
        });
        if all.is_empty() {
            return Err("no calls of a server on the JVM were measured".to_owned());
        }
        Ok(all.into_iter().map(|(.., slow)| Value::from(slow)).collect())
    }
}

/// Returns gRPC's time divided by JSON's for a part of the first calls, paired by server start.
fn first_calls([grpc, json]: [&EndpointCell; 2], part: &str) -> ValueResult {
    let part: fn(&ServerStart) -> f64 = match part {
        "request" => |start| start.request,
        "response" => |start| start.response,
        _ => |start| start.all,
    };
    let ratio = measured(json)?.0.ratio(measured(grpc)?.0, part);
    ratio.map(Value::Ratio).ok_or_else(|| UNUSABLE.to_owned())
}

/// Returns the first calls and the warm calls of an endpoint.
fn measured(cell: &EndpointCell) -> Result<(&Cold, &Latencies), String> {
    let both = cell.cold.as_ref().zip(cell.latency.as_ref());
    both.ok_or_else(|| format!("{}: {UNUSABLE}", cell.endpoint))
}

/// Returns mean times of an endpoint's first calls and warm calls.
fn figures(cell: &EndpointCell) -> ValueResult {
    let (cold, warm) = measured(cell)?;
    let number = |value: f64| Value::Number(value);
    Ok([
        ("server", Value::Words(cell.endpoint.stack.to_string())),
        ("protocol", cell.endpoint.protocol.title().into()),
        ("calls", number(cold.calls as f64)),
        ("very_first", number(cold.first_ns as f64)),
        ("first_all", number(cold.next.mean)),
        ("first_request", number(cold.request())),
        ("first_response", number(cold.response())),
        ("warm_all", number(warm.all.mean)),
        ("warm_request", number(warm.request())),
        ("warm_response", number(warm.response())),
        ("warm_p99", number(warm.all.p99 as f64)),
        ("warm_max", number(warm.all.max as f64)),
        ("warm_calls", number(warm.calls as f64)),
    ]
    .into())
}

/// Returns whether pauses took at least a tenth of the span, or methods were compiled.
fn is_at_work(meanwhile: &Meanwhile, span: Duration) -> bool {
    meanwhile.compiled > 0 || meanwhile.paused * 10 >= span
}

/// Returns the share of equally long spans, spread over the window, in which the JVM was active.
fn by_chance(log: &JvmLog, began: SystemTime, window: Duration, span: Duration) -> f64 {
    const SPANS: u32 = 200;
    let step = window.saturating_sub(span) / SPANS;
    let at_work = (0..SPANS)
        .map(|number| began + step * number)
        .filter(|&from| is_at_work(&log.within(from, from + span), span))
        .count();
    at_work as f64 / f64::from(SPANS)
}
