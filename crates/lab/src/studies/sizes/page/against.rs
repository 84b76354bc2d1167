//! Page sections of a comparison: noise floor, tables of ratios, costs, and the matrix of clients and servers.

mod closer;
mod details;
mod ends;
mod heat;
mod matrix;
mod names;

use maud::{Markup, html};
use thalweg_measure::figures::{bound, percent, ratio_figure, ratio_text};
use thalweg_measure::page::parts::folded;
use thalweg_measure::page::section::{Block, Choice, Section, when};
use thalweg_measure::page::table::{Columns, TableCell};

use crate::load::noise::{AaCell, Floor};
use crate::load::verdict::MARGIN;
use crate::load::{LabResults, stacks};
use crate::stack::Pair;
use crate::studies::sizes::compare::findings::{Loss, contrasts, losses, verdicts};
use crate::studies::sizes::compare::{StacksCompared, Tally};

/// Noise floor above which real differences go unnoticed.
const FLOOR_HIGH: f64 = 0.2;
/// Number of losses shown before the rest are collapsed.
const LOSSES_OPEN: usize = 6;

/// Returns a card for each peer: median and range of the ratios, and the number of cells by verdict.
pub(super) fn cards(comparison: &StacksCompared<'_>) -> Markup {
    html! {
        @for pair in &comparison.peers { (card(comparison, pair)) }
    }
}

fn card(comparison: &StacksCompared<'_>, pair: &Pair) -> Markup {
    let tally = comparison.tally(pair);
    let middle = comparison
        .median_ratio(pair)
        .map_or("–".to_owned(), |middle| format!("{} ×", ratio_figure(middle)));
    let ratios: Vec<f64> =
        comparison.against(pair).filter_map(|(_, it)| Some(it.rate.ratio?.ratio)).collect();
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let most = ratios.iter().copied().fold(0.0, f64::max);
    let range = if ratios.is_empty() {
        "never measured together with ours".to_owned()
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

/// Formats the margin, such as `10 %`.
fn margin() -> String {
    percent(MARGIN - 1.0)
}

/// Returns the verdicts as a bar.
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

/// Returns all sections of the comparison.
pub(super) fn sections(results: &LabResults, comparison: &StacksCompared<'_>) -> Vec<Section> {
    let title = "Noise floor: the smallest difference that this study can see";
    let mut sections = vec![
        Section::new("noise", "", title, noise(comparison)),
        Section::new(
            "against",
            "Compared with other stacks",
            "Compared with other stacks",
            against(results, comparison),
        ),
        Section::new("closer", "", "Details by call type", closer::blocks(comparison)),
    ];
    if !comparison.mixed.is_empty() && comparison.ends().is_empty() {
        sections.push(Section::new("matrix", "", "Clients with other servers", matrix::blocks(comparison)));
    }
    sections
}

fn noise(comparison: &StacksCompared<'_>) -> Vec<Block> {
    let floors = &comparison.noise.floors;
    if floors.is_empty() {
        return vec![Block::about(
            "Ours was not measured against itself, so there is no noise floor: only the intervals decide what is a \
             difference.",
        )];
    }
    let figure = |log: f64| {
        TableCell::figure((log > 0.0).then_some(log), |log| format!("± {}", percent(log.exp() - 1.0)))
    };
    let of_cell = |cell: &AaCell| {
        let rate = cell.rate.map_or("no pair of windows".to_owned(), ratio_text);
        let excluded = match cell.excluded {
            0 => String::new(),
            count => format!(", {count} windows left out"),
        };
        format!("{} {}: {rate}{excluded}", cell.size, cell.transport)
    };
    let table = Columns::<&Floor>::default()
        .words("Kind of call", |floor| floor.kind.label())
        .field("Floor of rates", move |floor| figure(floor.rate))
        .field("Floor of medians", move |floor| figure(floor.median))
        .field("Ours ÷ ours, with interval", move |floor| {
            let cells: Vec<String> = floor.cells.iter().map(of_cell).collect();
            TableCell { below: Some(bound(&cells.join(" · "))), ..TableCell::words("") }.class("long")
        })
        .table(floors);
    vec![Block::About(noise_in_words(comparison)), Block::Table(table)]
}

fn noise_in_words(comparison: &StacksCompared<'_>) -> String {
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

fn against(results: &LabResults, comparison: &StacksCompared<'_>) -> Vec<Block> {
    let ours = &comparison.ours;
    let peers = comparison.peers.iter().map(|pair| (pair.to_string(), pair.to_string()));
    let mut blocks = vec![
        Block::Raw(stacks::list(&results.stacks, &results.left_out)),
        Block::Raw(losses_block(comparison)),
        Block::Choices(vec![Choice::buttons("peer", "Compared with", peers)]),
        Block::Raw(html! {
            ul.key aria-label="Colours" {
                li { i.faster { "▲" } (ours) " is faster" }
                li { i.same { "=" } "no difference beyond " (margin()) }
                li { i { "?" } "cannot tell" }
                li { i.slower { "▼" } (ours) " is slower" }
            }
        }),
    ];
    blocks.extend(comparison.peers.iter().enumerate().map(|(index, pair)| {
        let shown = Block::Raw(peer(results, comparison, (index, pair)));
        Block::When(when("peer", [pair.to_string()]), vec![shown])
    }));
    blocks.push(Block::Hint(format!(
        "Each field is the rate of {ours} divided by the peer’s, so 2.0 means twice as many operations per second, \
         with its 95 % confidence interval below. In rows of median times, fields are ratios of times: 0.50 is half \
         the time. The deeper the colour, the larger the difference that is certain. \
         Hover over a field, or move to it with the arrow keys, for details; a click or Enter shows its kind of call \
         in the plots below. **!** marks fields with failed windows."
    )));
    blocks
}

/// Returns the cases in which others are faster, which come first.
fn losses_block(comparison: &StacksCompared<'_>) -> Markup {
    let losses = losses(comparison);
    if losses.is_empty() {
        return html! {
            p.about { "No peer is faster beyond the noise floor in any measured case." }
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

/// Returns the table and the sentences on one peer.
fn peer(results: &LabResults, comparison: &StacksCompared<'_>, (index, pair): (usize, &Pair)) -> Markup {
    let own = Some(&pair.server).filter(|_| pair.client == pair.server);
    let stack = results.stacks.iter().find(|info| Some(&info.stack) == own);
    html! {
        div.peer {
            h3 {
                (comparison.ours) " ÷ " (pair)
                @if let Some(stack) = stack { " " small { (stack.version) } }
            }
            div.scroll { (heat::table(comparison, (index, pair))) }
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
