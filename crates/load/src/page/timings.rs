//! Section with the percentiles of all distributions.

use maud::{Markup, html};
use thalweg_measure::figures::time;
use thalweg_measure::page::parts::scrolled;

use super::figures::integer;
use crate::run::{LoadRun, Timing};

pub(super) fn section(run: &LoadRun) -> Option<Markup> {
    let rows: Vec<(&str, &str, &Timing)> = run.timings().collect();
    (!rows.is_empty()).then(|| scrolled(&table(&rows)))
}

fn table(rows: &[(&str, &str, &Timing)]) -> Markup {
    html! {
        table.timings {
            caption.unseen { "Latency percentiles" }
            thead {
                tr {
                    th scope="col" { "Time" }
                    @for name in ["count", "min", "mean", "p50", "p90", "p95", "p99", "p99.9", "p99.99", "max"] {
                        th scope="col" { (name) }
                    }
                }
            }
            tbody {
                @for (name, about, timing) in rows {
                    tr {
                        th scope="row" { (name) small { (about) } }
                        td { (integer(timing.count as f64)) }
                        @for ns in quantiles(timing) { td { (ns.map_or("–".to_owned(), time)) } }
                    }
                }
            }
        }
    }
}

fn quantiles(timing: &Timing) -> [Option<f64>; 9] {
    let ns = &timing.ns;
    let some = |ns: u64| Some(ns as f64);
    let [min, p50, p90, p99, p99_9, p99_99, max] =
        [ns.min, ns.p50, ns.p90, ns.p99, ns.p99_9, ns.p99_99, ns.max].map(some);
    [min, Some(ns.mean), p50, p90, timing.p95().and_then(some), p99, p99_9, p99_99, max]
}
