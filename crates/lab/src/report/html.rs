//! A study as one self-contained page. The words and the table are written here; the plots are drawn by the page.

mod against;
mod channels;
mod figures;
mod method;
mod page;
mod plots;

pub(crate) use page::Page;
use serde::Serialize;

use crate::analyse::compare::{self, compare};
use crate::analyse::{Analysis, Headline, Kind, analyse, answer, doubts, findings, headlines};
use crate::figures::{bound, span};
use crate::results::LabResults;
use crate::stack::Pair;

const SECTIONS: &str = include_str!("../../assets/report.html");
const AGAINST: &str = include_str!("../../assets/against.html");
const SCRIPT: &str = include_str!("../../assets/report.js");
const AGAINST_SCRIPT: &str = include_str!("../../assets/against.js");
const UPLOT_SCRIPT: &str = include_str!("../../assets/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("../../assets/uPlot.min.css");

/// The first is for comparisons.
const LINKS: &[(&str, &str)] = &[
    ("against", "Against others"),
    ("summary", "Summary"),
    ("plots", "Plots"),
    ("spikes", "Spikes"),
    ("figures", "Figures"),
];

/// Doubts beyond this many are folded away.
const DOUBTS_OPEN: usize = 3;

/// The study as a page that opens without a network.
pub fn html(results: &LabResults) -> String {
    if results.is_channels() {
        return channels::page(results);
    }
    let analysis = analyse(results);
    let comparison = results.is_comparison().then(|| compare(results));
    let sections = filled(
        SECTIONS,
        &[
            ("against", comparison.as_ref().map_or_else(String::new, |it| against::sections(results, it))),
            ("alone", comparison.as_ref().map_or_else(String::new, |it| alone(&it.ours, &analysis))),
            ("findings", findings_list(&analysis)),
            ("spikes", figures::spikes_table(&analysis)),
            ("transport_options", options(analysis.transports().iter().map(ToString::to_string))),
            ("kind_options", options(kinds(&analysis).into_iter().map(Kind::label))),
            ("table", figures::figures_table(results, &analysis)),
        ],
    );
    let (links, scripts): (&[_], &[_]) = match comparison {
        Some(_) => (LINKS, &[AGAINST_SCRIPT, SCRIPT]),
        None => (&LINKS[1..], &[SCRIPT]),
    };
    Page {
        title: &title(results),
        style: UPLOT_STYLE,
        links,
        eyebrow: eyebrow(results),
        // That of the comparison, where there is one.
        answer: comparison.as_ref().and_then(compare::answer).or_else(|| answer(&analysis)),
        place: place(results),
        cards: comparison.as_ref().map_or_else(|| cards(&analysis), against::cards),
        doubts: doubts(results),
        sections,
        method: method::method(results),
        facts: method::facts(results),
        version: &results.versions.thalweg,
        notice: " Charts by uPlot 1.6.32 (MIT licence, © 2022 Leon Sorokin).",
        data: plots::plot_data(&analysis),
        library: Some(UPLOT_SCRIPT),
        scripts,
    }
    .html()
}

fn title(results: &LabResults) -> String {
    let what = if results.is_comparison() { "comparison" } else { "study" };
    format!("Message {} {what}", results.study)
}

/// What parts the comparison from the study of our own pair, with that study's own headlines.
fn alone(ours: &Pair, analysis: &Analysis) -> String {
    format!(
        r#"<section class="part"><p class="eyebrow">{ours} alone</p><p class="about">From here on the page is about {ours}, client and server, and the bare socket.</p><div class="cards">{}</div></section>"#,
        cards(analysis),
        ours = escaped(&ours.to_string()),
    )
}

/// Data for a script on the page. Within a script element only `<` could end it or begin a comment.
pub(crate) fn script_json(data: &impl Serialize) -> String {
    serde_json::to_string(data).expect("the data has string keys only").replace('<', "\\u003c")
}

/// Puts the values in the places of their names. What is put in is not searched for names again.
pub(crate) fn filled(template: &str, values: &[(&str, String)]) -> String {
    let mut text =
        String::with_capacity(template.len() + values.iter().map(|(_, value)| value.len()).sum::<usize>());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").expect("each place in our template is closed");
        let (_, value) = values.iter().find(|(known, _)| *known == name).expect("each place has its value");
        text.push_str(before);
        text.push_str(value);
        rest = after;
    }
    text + rest
}

pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

pub(crate) fn concat(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().concat()
}

fn eyebrow(results: &LabResults) -> String {
    let day = results.started.split('T').next().unwrap_or_default();
    let took = took(results).map(|took| format!(", took {took}")).unwrap_or_default();
    let what = if results.is_comparison() { "comparison" } else { "study" };
    format!("Message {} {what} · {day}{took}", results.study)
}

fn took(results: &LabResults) -> Option<String> {
    let started = humantime::parse_rfc3339(&results.started).ok()?;
    let ended = humantime::parse_rfc3339(&results.ended).ok()?;
    ended.duration_since(started).ok().map(span)
}

fn place(results: &LabResults) -> String {
    let machine = &results.machine;
    let cores = if machine.cores == 1 { "core" } else { "cores" };
    let at_both_ends = if results.is_comparison() || results.is_channels() {
        let stacks: Vec<&str> = results.stacks.iter().map(|info| info.version.as_str()).collect();
        let pairs =
            if results.reference() == Pair::ours() { ", each with its own client and server" } else { "" };
        format!("{}{pairs}", stacks.join(", "))
    } else {
        format!("thalweg {} at both ends", results.versions.thalweg)
    };
    format!("{at_both_ends}, on {} with {} {cores}, {}.", machine.cpu, machine.cores, machine.kernel)
}

fn cards(analysis: &Analysis) -> String {
    let card = |headline: Headline| {
        format!(
            r#"<div class="card"><h2>{}</h2><p class="figure">{}</p><p>{}</p></div>"#,
            escaped(headline.name),
            escaped(&bound(&headline.figure)),
            escaped(&bound(&headline.detail))
        )
    };
    concat(headlines(analysis).into_iter().map(card))
}

pub(crate) fn doubts_section(doubts: &[String]) -> String {
    if doubts.is_empty() {
        return String::new();
    }
    let items =
        |doubts: &[String]| concat(doubts.iter().map(|doubt| format!("<li>{}</li>", escaped(&bound(doubt)))));
    let (open, folded) = doubts.split_at(doubts.len().min(DOUBTS_OPEN));
    let folded = match folded.len() {
        0 => String::new(),
        more => format!("<details><summary>{more} more</summary><ul>{}</ul></details>", items(folded)),
    };
    format!(
        r#"<section class="doubts"><h2>Before you use these figures</h2><ul>{}</ul>{folded}</section>"#,
        items(open)
    )
}

fn findings_list(analysis: &Analysis) -> String {
    concat(findings(analysis).iter().map(|finding| {
        format!("<dt>{}</dt><dd><p>{}</p></dd>", escaped(finding.topic), escaped(&bound(&finding.text)))
    }))
}

fn options(names: impl Iterator<Item = String>) -> String {
    concat(names.map(|name| format!("<option>{}</option>", escaped(&name))))
}

fn kinds(analysis: &Analysis) -> Vec<Kind> {
    let mut kinds: Vec<_> = analysis.lines.iter().map(|line| line.kind).collect();
    kinds.dedup();
    kinds
}

/// Four digits: more are not known, and cost room.
pub(crate) fn short(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let decimals = 3 - value.abs().log10().floor() as i32;
    let scale = 10_f64.powi(decimals.abs());
    if decimals >= 0 { (value * scale).round() / scale } else { (value / scale).round() * scale }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_digits_are_kept() {
        let figures = [
            (0.0, "0"),
            (1.0, "1"),
            (1_234_567.0, "1235000"),
            (0.000_123_456, "0.0001235"),
            (9.999_96, "10"),
        ];
        for (value, kept) in figures {
            assert_eq!(short(value).to_string(), kept);
        }
    }

    #[test]
    fn what_fills_a_template_is_not_searched_again() {
        let values = [("a", "{{b}}".to_owned()), ("b", "x".to_owned())];
        assert_eq!(filled("<{{a}}|{{b}}>", &values), "<{{b}}|x>");
    }

    #[test]
    fn text_cannot_become_markup() {
        assert_eq!(escaped(r#"<b a="1">&"#), "&lt;b a=&quot;1&quot;&gt;&amp;");
    }
}
