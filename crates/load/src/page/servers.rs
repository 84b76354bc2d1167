//! Section with the calls to each server.

use maud::{Markup, html};
use thalweg_measure::figures::{percent, time};
use thalweg_measure::page::parts::scrolled;

use super::figures::integer;
use crate::run::{LoadRun, ServerRun};

/// Returns the section if several servers were called.
pub(super) fn section(run: &LoadRun) -> Option<Markup> {
    run.balanced().next()?;
    Some(scrolled(&html! {
        table.timings {
            caption.unseen { "Calls by server" }
            thead {
                tr {
                    th scope="col" { "Server" }
                    @for name in ["calls", "share", "calls/s", "failed", "retries", "hedges", "p50", "p99", "max"] {
                        th scope="col" { (name) }
                    }
                }
            }
            tbody {
                @for (server, share, rate) in run.balanced() {
                    tr {
                        th scope="row" {
                            (server.server)
                            @if let Some(why) = &server.not_connected { ", not connected: " (why) }
                        }
                        td { (integer(server.calls as f64)) }
                        td { (percent(share)) }
                        td { (integer(rate)) }
                        td { (server.failed.map_or("–".to_owned(), |failed| integer(failed as f64))) }
                        td { (integer(server.attempts.all_retries() as f64)) }
                        td { (integer(server.attempts.hedges as f64)) }
                        @for figure in times(server) { td { (figure) } }
                    }
                }
            }
        }
    }))
}

fn times(server: &ServerRun) -> [String; 3] {
    match server.times() {
        Some(times) => times.map(|ns| time(ns as f64)),
        None => ["–"; 3].map(str::to_owned),
    }
}
