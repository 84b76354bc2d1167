//! What a comparison adds to the page: noise floor, tables of ratios, costs, and the matrix of clients and servers.

mod data;
mod ends;
mod heat;

use maud::{Markup, html};
use thalweg_measure::figures::{bound, percent, ratio_figure, ratio_text};
use thalweg_measure::page::parts::{choices, folded, scrolled};

use crate::load::noise::{AaCell, Floor};
use crate::load::verdict::MARGIN;
use crate::load::{LabResults, stacks};
use crate::stack::Pair;
use crate::studies::sizes::compare::findings::{Loss, contrasts, losses, verdicts};
use crate::studies::sizes::compare::{Comparison, Tally};

/// With a floor above this share, real differences are called none.
const FLOOR_HIGH: f64 = 0.2;
/// Losses beyond this many are folded away.
const LOSSES_OPEN: usize = 6;

/// A card for each peer: the middle ratio, from where to where, and how many cells have which verdict.
pub(super) fn cards(comparison: &Comparison) -> Markup {
    html! {
        @for pair in &comparison.peers { (card(comparison, pair)) }
    }
}

fn card(comparison: &Comparison, pair: &Pair) -> Markup {
    let tally = comparison.tally(pair);
    let middle =
        comparison.middle(pair).map_or("–".to_owned(), |middle| format!("{} ×", ratio_figure(middle)));
    let ratios: Vec<f64> =
        comparison.against(pair).filter_map(|(_, it)| Some(it.rate.ratio?.ratio)).collect();
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let most = ratios.iter().copied().fold(0.0, f64::max);
    let range = if ratios.is_empty() {
        "never measured beside ours".to_owned()
    } else {
        format!(
            "{pair}’s rate, in the middle of {} cases; from {} to {} ×",
            ratios.len(),
            ratio_figure(least),
            ratio_figure(most)
        )
    };
    html! {
        div.card {
            h2 { "Compared with " (pair) }
            p.figure { (middle) }
            p { (bound(&range)) }
            (bar(tally))
            p { (verdicts(tally)) }
        }
    }
}

/// `10 %`
fn margin() -> String {
    percent(MARGIN - 1.0)
}

/// The verdicts as a bar.
fn bar(tally: Tally) -> Markup {
    let parts = [
        ("faster", tally.faster),
        ("same", tally.no_difference),
        ("open", tally.cannot_tell),
        ("slower", tally.slower),
    ];
    html! {
        div.bar-of-verdicts aria-hidden="true" {
            @for (class, count) in parts.into_iter().filter(|(_, count)| *count > 0) {
                i class=(class) style={ "flex:" (count) } {}
            }
        }
    }
}

/// All sections of the comparison.
pub(super) fn sections(results: &LabResults, comparison: &Comparison) -> Markup {
    html! {
        section #noise {
            h2 { "Noise floor: the smallest difference that this study can see" }
            (noise(comparison))
        }
        (against(results, comparison))
        (closer(&comparison.ours))
        @if !comparison.mixed.is_empty() && comparison.ends().is_empty() { (matrix()) }
        script type="application/json" id="against-data" { (data::json(comparison)) }
    }
}

fn noise(comparison: &Comparison) -> Markup {
    let floors = &comparison.noise.floors;
    if floors.is_empty() {
        return html! {
            p.about {
                "Ours was not measured against itself, so there is no noise floor: only the intervals decide what is \
                 a difference."
            }
        };
    }
    html! {
        p.about { (bound(&noise_in_words(comparison))) }
        (scrolled(&html! {
            table.floors {
                thead {
                    tr {
                        @for head in ["Kind of call", "Floor of rates", "Floor of medians"] {
                            th scope="col" { (head) }
                        }
                        th.words scope="col" { "Ours ÷ ours, with interval" }
                    }
                }
                tbody {
                    @for floor in floors { (floor_row(floor)) }
                }
            }
        }))
    }
}

fn noise_in_words(comparison: &Comparison) -> String {
    let floors = &comparison.noise.floors;
    let cells: usize = floors.iter().map(|floor| floor.cells.len()).sum();
    let largest = floors.iter().map(|floor| floor.rate).fold(0.0, f64::max).exp() - 1.0;
    let is_loud = if largest > FLOOR_HIGH {
        " That is a lot: the machine was not idle, and real differences may be hidden. Repeat the study on an idle \
         machine."
    } else {
        ""
    };
    let is_borrowed = if comparison.lines().iter().all(|&(kind, _)| comparison.noise.is_measured(kind)) {
        ""
    } else {
        " Call types without a row here use the largest floor of their kind: lone calls, calls in flight or streams."
    };
    format!(
        "First, thalweg was measured against itself, in {cells} cells, interleaved like the \
         others. The results differ by up to {}: a ratio closer to 1 than the noise floor of its call type is not \
         a difference, even if its interval excludes 1.{is_loud}{is_borrowed}",
        percent(largest)
    )
}

fn floor_row(floor: &Floor) -> Markup {
    let of_cell = |cell: &AaCell| {
        let rate = cell.rate.map_or("no pair of windows".to_owned(), ratio_text);
        let excluded = match cell.excluded {
            0 => String::new(),
            count => format!(", {count} windows left out"),
        };
        format!("{} {}: {rate}{excluded}", cell.size, cell.transport)
    };
    let cells: Vec<String> = floor.cells.iter().map(of_cell).collect();
    let figure =
        |log: f64| if log > 0.0 { format!("± {}", percent(log.exp() - 1.0)) } else { "–".to_owned() };
    html! {
        tr {
            th scope="row" { (floor.kind.label()) }
            td { (figure(floor.rate)) }
            td { (figure(floor.median)) }
            td.words { (bound(&cells.join(" · "))) }
        }
    }
}

fn against(results: &LabResults, comparison: &Comparison) -> Markup {
    let ours = &comparison.ours;
    let peers = comparison.peers.iter().map(|pair| (pair.to_string(), pair.to_string()));
    html! {
        section #against {
            h2 { "Compared with other stacks" }
            (stacks::list(&results.stacks, &results.left_out))
            (losses_block(comparison))
            div.controls {
                (choices("Compared with", "peer", peers))
                ul.key aria-label="Colours" {
                    li { i.faster { "▲" } (ours) " is faster" }
                    li { i.same { "=" } "no difference beyond " (margin()) }
                    li { i { "?" } "cannot tell" }
                    li { i.slower { "▼" } (ours) " is slower" }
                }
            }
            @for pair in &comparison.peers { (peer(results, comparison, pair)) }
            p.hint {
                "Each field is a rate of " (ours) " divided by the peer’s, 2.0 being twice as many operations per \
                 second, with the interval in which the ratio lies with 95 % confidence below it. Fields in the rows \
                 of median times are times divided by times: 0.50 is half the time. The deeper the colour, the \
                 larger the difference that is certain. Point at a field, or go there with the arrow keys, for what \
                 was measured; a click or Enter shows its kind of call in the plots below. "
                b { "!" } " marks fields of which windows failed."
            }
        }
    }
}

/// What others are better at, before all the rest.
fn losses_block(comparison: &Comparison) -> Markup {
    let losses = losses(comparison);
    if losses.is_empty() {
        return html! {
            p.about { "No peer is faster, beyond the noise floor of this study, in any case that was measured." }
        };
    }
    html! {
        div.losses {
            h3 { span.mark-of.slower { "▼" } " Where others are faster" }
            (folded(&losses, LOSSES_OPEN, loss))
        }
    }
}

fn loss(loss: &Loss) -> Markup {
    let Loss { kind, transport, size, ratio, is_rate, .. } = loss;
    let ratio = ratio_text(*ratio);
    let amount = if *is_rate {
        format!("ours reaches {ratio} its rate")
    } else {
        format!("ours takes {ratio} its median time")
    };
    let text = format!("{}, {size} over {transport}: {amount}", kind.label());
    html! { b { (loss.pair) } " " (bound(&text)) }
}

/// The table of one peer, and what it says in sentences.
fn peer(results: &LabResults, comparison: &Comparison, pair: &Pair) -> Markup {
    let own = Some(&pair.server).filter(|_| pair.client == pair.server);
    let stack = results.stacks.iter().find(|info| Some(&info.stack) == own);
    html! {
        div.peer data-peer=(pair) {
            h3 {
                (comparison.ours) " ÷ " (pair)
                @if let Some(stack) = stack { " " small { (stack.version) } }
            }
            div.scroll { (heat::table(comparison, pair)) }
            @for ends in comparison.ends().into_iter().filter(|ends| ends.both == pair) {
                h4 { "Mixed pairs" }
                div.scroll { (ends::table(comparison, ends)) }
            }
            ul.contrasts {
                @for contrast in contrasts(comparison).into_iter().filter(|contrast| contrast.pair == *pair) {
                    li { (bound(&contrast.text)) }
                }
            }
        }
    }
}

/// The plots and the costs of the kind of call that is chosen.
fn closer(ours: &Pair) -> Markup {
    html! {
        section #closer {
            h2 { "Details by call type " span data-looked {} }
            div.controls {
                label { "Calls " select data-look {} }
            }
            div.legend role="group" aria-label="Stacks shown" data-legend="stacks" {}
            div.charts {
                figure data-chart="against-rate" {
                    figcaption {
                        h3 { "Rate" }
                        p {
                            span data-operation { "calls" }
                            " per second, with the bare socket as the reference; higher is better"
                        }
                    }
                    div.plot role="img"
                        aria-label="Rate of each stack over message size. All values are in the table below." {}
                }
                figure data-chart="against-ratio" {
                    figcaption {
                        h3 { "Ratio" }
                        p {
                            (ours) " ÷ peer with the interval of 95 %; above 1 " (ours) " is faster. The band is the \
                             noise floor."
                        }
                    }
                    div.plot role="img" aria-label={
                        "Ratio of " (ours) " to each peer over message size. All values are in the tables above."
                    } {}
                }
            }
            h3.table-title { "Cost per operation" }
            (scrolled(&html! { table.costs {} }))
            p.hint {
                "Processor time is user + system, of the client’s and of the server’s process, divided by \
                 operations; so are context switches, voluntary or not. System calls were counted in runs of their \
                 own; – is not counted."
            }
        }
    }
}

/// The section of clients and servers of different stacks.
fn matrix() -> Markup {
    html! {
        section #matrix {
            h2 { "Clients with other servers" }
            p.about {
                "Rates, clients in rows and servers in columns, with the ratio of thalweg’s own pair to each: above \
                 1 that pair is slower than ours at both ends. A column shows what a client is worth at the same \
                 server, a row what a server is worth to the same client."
            }
            div.controls {
                label { "Cell " select data-matrix {} }
            }
            (scrolled(&html! { table.heat.matrix {} }))
        }
    }
}
