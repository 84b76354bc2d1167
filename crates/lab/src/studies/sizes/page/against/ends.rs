//! Gains of replacing both ends of a stack with ours, or one.

use maud::{Markup, html};

use super::heat;
use crate::studies::sizes::compare::{ComparedCell, Ends, StacksCompared};

/// Returns a table with three ratios per cell, each to the peer's own client with its own server.
pub(super) fn table(comparison: &StacksCompared<'_>, ends: Ends<'_>) -> Markup {
    let Ends { both, client, server } = ends;
    html! {
        table.heat.replaced {
            caption { "Rates divided by those of " (both) " at both ends, with the 95 % interval" }
            thead {
                tr {
                    th scope="col" { "Calls" }
                    th scope="col" { "Size" }
                    th scope="col" { "Both ends ours" small { (comparison.ours) " ÷ " (both) } }
                    th scope="col" { "Our client" small { (client) " ÷ " (both) } }
                    th scope="col" { "Our server" small { (server) " ÷ " (both) } }
                }
            }
            tbody {
                @for (kind, transport) in comparison.lines() {
                    @for (index, cell) in comparison.line(kind, transport).enumerate() {
                        tr {
                            @if index == 0 {
                                th scope="rowgroup" rowspan=(comparison.line(kind, transport).count()) {
                                    (kind.label()) " " small { (transport) }
                                }
                            }
                            td { (cell.size) }
                            @for gain in ends.gains(cell) { (heat::field(gain, has_failed(cell, ends), None)) }
                        }
                    }
                }
            }
        }
    }
}

fn has_failed(cell: &ComparedCell<'_>, Ends { both, client, server }: Ends<'_>) -> bool {
    let theirs = [both, client, server].map(|pair| cell.against(pair).map_or(0, |it| it.theirs.excluded()));
    cell.ours.excluded() + theirs.iter().sum::<usize>() > 0
}
