//! Section with messages and bytes.

use maud::{Markup, html};
use thalweg_measure::figures::throughput;
use thalweg_measure::page::parts::scrolled;

use super::figures::integer;
use crate::run::LoadRun;

pub(super) fn section(run: &LoadRun) -> Option<Markup> {
    let seconds = run.duration_ns as f64 / 1e9;
    let rows = [
        ("sent", run.messages_sent, run.bytes_sent),
        ("received", run.messages_received, run.bytes_received),
    ];
    (seconds > 0.0 && run.messages_sent + run.messages_received > 0).then(|| {
        scrolled(&html! {
            table {
                caption.unseen { "Messages and bytes" }
                thead {
                    tr {
                        th scope="col" { "Messages" }
                        @for name in ["count", "per second", "per call", "bytes", "bytes per second"] {
                            th scope="col" { (name) }
                        }
                    }
                }
                tbody {
                    @for (name, messages, bytes) in rows {
                        tr {
                            th scope="row" { (name) }
                            td { (integer(messages as f64)) }
                            td { (integer(messages as f64 / seconds)) }
                            td { (integer(messages as f64 / run.calls().max(1) as f64)) }
                            td { (integer(bytes as f64)) }
                            td { (throughput(bytes as f64 / seconds)) }
                        }
                    }
                }
            }
        })
    })
}
