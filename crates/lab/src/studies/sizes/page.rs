//! Page of a sizes study: a comparison if there is one, then charts, findings and figures of our own pair.

mod against;
mod anchor;
mod choice;
mod curves;
mod figures;
mod method;
mod plots;
mod timeline;
mod windows;

use maud::{Markup, html};
use thalweg_measure::page::parts::card;
use thalweg_measure::page::section::{Block, Section};

pub(super) use method::method;

use super::analysis::SizesAnalysis;
use super::compare::StacksCompared;
use crate::load::stacks;
use crate::report::topics::findings;

pub(super) fn title(study: &SizesAnalysis<'_>) -> &'static str {
    if study.comparison.is_some() { "Message sizes comparison" } else { "Message sizes study" }
}

/// Returns the comparison's cards, or nothing without one.
pub(super) fn cards(study: &SizesAnalysis<'_>) -> Markup {
    study.conclusive().map_or_else(|| html! {}, against::cards)
}

pub(super) fn sections(study: &SizesAnalysis<'_>) -> Vec<Section> {
    let SizesAnalysis { results, lines, choices, comparison, findings: found, .. } = study;
    let mut sections =
        study.conclusive().map_or_else(Vec::new, |comparison| against::sections(results, comparison));
    let cards = Block::Raw(html! {
        div.cards { @for it in &study.headlines { (card(it.name, &it.figure, &it.detail)) } }
    });
    if let Some(StacksCompared { ours, .. }) = comparison {
        // Separates the comparison from the study of our own pair.
        let about = format!("From here on the page is about {ours}, client and server, and the bare socket.");
        let title = format!("{ours} alone");
        sections.push(Section::new("alone", "", &title, vec![Block::About(about), cards]));
    } else {
        let table = choice::table(lines, choices);
        let is_there = table.is_some();
        let [link, title] =
            if is_there { ["Which call", "Best call type by message size"] } else { ["", ""] };
        let reading = is_there.then(choice::reading);
        let blocks = table.map(Block::Raw).into_iter().chain(reading).chain([cards]).collect();
        sections.push(Section::new("choice", link, title, blocks));
    }
    if !found.is_empty() {
        sections.push(Section::new("summary", "Summary", "Findings", vec![findings(found)]));
    }
    if !lines.lines.is_empty() {
        let about = "For each kind of call: the wait that is farthest from its run’s typical value, and when it \
                     occurred. The typical value is the median latency or, for one-way streams, the mean time between \
                     two readings of the clock. Spikes are part of every mean, percentile and maximum on this page.";
        let spikes = vec![Block::about(about), Block::Table(figures::spikes(lines))];
        sections.extend([
            Section::new("plots", "Plots", "Plots over message size", plots::blocks(lines)),
            Section::new("percentiles", "Percentiles", "Percentiles", curves::blocks(&study.own)),
            Section::new("time", "Time", "Rate over time", timeline::blocks(study)),
            Section::new("spikes", "Spikes", "Spikes", spikes),
        ]);
    }
    sections.push(Section::new("figures", "Figures", "All figures", vec![
        Block::Choices(figures::filters(lines)),
        Block::Raw(html! { p.about data-count aria-live="polite" {} }),
        Block::Table(figures::table(study)),
        Block::hint(
            "Click a column header to sort by it. Throughput counts payload bytes in one direction. “Of socket” is the \
             rate relative to a bare socket that moves the same bytes in the same run. CPU is the client's, \
             user and system together, per operation. The same figures are in `results.csv`, and with whole \
             distributions in `results.json`. Click a name for the windows behind its row."
        ),
    ]));
    if comparison.is_none() {
        sections.push(stacks::section("How the stack was set up", &results.stacks, &results.left_out));
    }
    sections.push(windows::section(study));
    sections
}
