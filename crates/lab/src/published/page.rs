//! The page of published measurements that were tried again: claim by claim, then what its figures say besides.

use std::time::Duration;

use maud::{Markup, html};
use thalweg_measure::figures::{bound, span};
use thalweg_measure::page::parts::{card, eyebrow, script_json, scrolled, took};
use thalweg_measure::wording::counted;

use super::judgement::{Judged, Verdict};
use super::original::{Flaw, Original, Situation, original, situations};
use super::publication::Publication;
use super::results::{Answered, PublishedResults, RunResult, Table};
use super::terminal::summary;
use crate::findings::Doubt;
use crate::report::grid::grid;
use crate::report::page::{Page, command_fact};

const STYLE: &str = include_str!("../../assets/published.css");
const SCRIPT: &str = include_str!("../../assets/published.js");

pub(super) fn page(results: &PublishedResults, doubts: &[Doubt]) -> String {
    let mut links: Vec<(&str, &str)> = results
        .answered
        .iter()
        .map(|answered| (answered.publication.name(), original(answered.publication).short.as_str()))
        .collect();
    links.push(("situations", "What to change"));
    let answer = (results.claims().next().is_some()).then(|| summary(results));
    Page {
        title: "Published measurements",
        style: STYLE,
        links: &links,
        eyebrow: eyebrow("Published measurements, tried again", &results.started, &results.ended),
        answer,
        lede: lede(results),
        cards: html! { @for answered in &results.answered { (of_publication(answered)) } },
        doubts: doubts.iter().map(ToString::to_string).collect(),
        sections: html! {
            @for answered in &results.answered { (section(answered, &results.runs)) }
            (what_to_change(results))
        },
        method: method(results),
        facts: facts(results),
        version: &results.versions.thalweg,
        notice: "",
        data: script_json(&()),
        library: None,
        scripts: &[SCRIPT],
    }
    .html()
}

fn lede(results: &PublishedResults) -> String {
    let machine = &results.machine;
    let quick = if results.settings.quick { " A quick look: fewer sizes, fewer rounds." } else { "" };
    format!(
        "Measurements of gRPC that others published, made again on {} with {}, {}: what was claimed, what is measured \
         here, and why.{quick}",
        machine.cpu,
        counted(machine.cores as u64, "core"),
        machine.kernel
    )
}

fn of_publication(answered: &Answered) -> Markup {
    let held =
        answered.claims.iter().filter(|it| matches!(it.verdict, Verdict::Confirmed | Verdict::InDirection));
    let counts = Verdict::ALL.into_iter().filter_map(|verdict| {
        let count = answered.claims.iter().filter(|claim| claim.verdict == verdict).count();
        (count > 0).then(|| format!("{count} {verdict}"))
    });
    let detail = counts.collect::<Vec<_>>().join(", ");
    card(
        &original(answered.publication).short,
        &format!("{} of {}", held.count(), answered.claims.len()),
        &detail,
    )
}

fn section(answered: &Answered, runs: &[RunResult]) -> Markup {
    let Original { title, source, method, flaws, .. } = original(answered.publication);
    let runs: Vec<&RunResult> = runs.iter().filter(|run| run.publication == answered.publication).collect();
    html! {
        section id=(answered.publication.name()) {
            h2 { (title) }
            p.source { "Published: " (source) "." }
            ul.published { @for sentence in method { li { (bound(sentence)) } } }
            div.claims { @for claim in &answered.claims { (judged(claim)) } }
            (studies(&runs))
            @for one in &answered.tables { (table(one)) }
            (gone_wrong(flaws))
        }
    }
}

/// A claim as a card: what was said, what came of it, the figures and why.
fn judged(claim: &Judged) -> Markup {
    let class = match claim.verdict {
        Verdict::Confirmed => "confirmed",
        Verdict::InDirection => "direction",
        Verdict::NotConfirmed => "refuted",
        Verdict::CannotBeTried => "untried",
    };
    html! {
        article.claim.(class) id={ "claim-" (claim.id) } {
            p.verdict { (claim.verdict.title()) }
            h3 { (bound(&claim.claim)) }
            @if claim.verdict == Verdict::CannotBeTried {
                dl { dt { "Published" } dd { (bound(&claim.published)) } dt { "Why not" } dd { (prose(&claim.cause)) } }
            } @else {
                dl {
                    dt { "Published" } dd { (bound(&claim.published)) }
                    dt { "Here" } dd { (bound(&claim.ours)) }
                    dt { "Why" } dd { (prose(&claim.cause)) }
                }
                details {
                    summary { (counted(claim.figures.len() as u64, "figure")) }
                    table { tbody {
                        @for figure in &claim.figures {
                            tr { th scope="row" { (figure.name) } td { (bound(&figure.text)) } }
                        }
                    } }
                }
            }
        }
    }
}

/// The studies that it was judged by, each with its own page.
fn studies(runs: &[&RunResult]) -> Markup {
    html! {
        @if !runs.is_empty() {
            h3 { "Measured by" }
            ul.runs {
                @for run in runs {
                    li {
                        @if run.has_page {
                            a href={ (run.name) "/report.html" } { (run.about) }
                        } @else {
                            (run.about)
                        }
                        ", in " (span(Duration::from_nanos(run.took_ns)))
                        @if let Some(reason) = &run.failed { ", not as it should: " (reason) }
                        code { "thalweg " (run.arguments.join(" ")) }
                    }
                }
            }
        }
    }
}

fn table(table: &Table) -> Markup {
    html! {
        h3 { (table.title) }
        p.about { (bound(&table.about)) }
        (scrolled(&grid(&table.heads, &table.rows)))
    }
}

fn gone_wrong(flaws: &[Flaw]) -> Markup {
    html! {
        h3 { "Differences from the original" }
        dl.flaws {
            @for Flaw { what, instead } in flaws { dt { (what) } dd { (prose(instead)) } }
        }
    }
}

/// A sentence in which what stands between backquotes is code.
fn prose(text: &str) -> Markup {
    html! {
        @for (index, part) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (part) } } @else { (bound(part)) }
        }
    }
}

/// What to do, by situation: those whose claim was tried. Advice that rests on a claim which did not hold here is none.
fn what_to_change(results: &PublishedResults) -> Markup {
    let row = |Situation { claim: id, always, reader, advice }: &Situation| {
        let publication =
            Publication::ALL.into_iter().find(|&it| original(it).claims.iter().any(|it| it.id == *id));
        if !results.settings.publications.contains(&publication?) {
            return None;
        }
        let claim = results.claims().find(|it| it.id == *id && it.verdict != Verdict::CannotBeTried);
        if !always && claim.is_some_and(|claim| claim.verdict == Verdict::NotConfirmed) {
            return None;
        }
        Some(html! {
            tr {
                td.words { (bound(reader)) }
                td.words { (prose(advice)) }
                td.words {
                    @if let Some(claim) = claim {
                        a href={ "#claim-" (claim.id) } { (bound(&claim.ours)) }
                    } @else {
                        "not here"
                    }
                }
            }
        })
    };
    html! {
        section #situations {
            h2 { "What to change" }
            (scrolled(&html! {
                table.situations {
                    thead { tr { th { "Where you stand" } th { "What to change" } th { "Measured here" } } }
                    tbody { @for row in situations().iter().filter_map(row) { (row) } }
                }
            }))
        }
    }
}

fn method(results: &PublishedResults) -> Vec<String> {
    let mut method = vec![
        "Each claim is judged by a rule that was written before it was measured: whether \
         the effect is there, and whether it is as large as was published, within a factor of 1.5, as machines differ."
            .to_owned(),
        "The studies are those of this laboratory with the systems and the sizes of the original; each has a page of \
         its own with its windows, intervals and noise floor, and a command that repeats it."
            .to_owned(),
        "The published figures are quoted; nothing of them was measured again by their authors."
            .to_owned(),
    ];
    if let Some(cores) = results.settings.cores {
        let kept = counted(cores as u64, "processor");
        let shared = if cores == 1 { ": client and server share it, and nothing is pinned" } else { "" };
        method.push(format!("All runs were kept on {kept}{shared}."));
    }
    method
}

fn facts(results: &PublishedResults) -> Vec<(&'static str, String)> {
    let (machine, settings, versions) = (&results.machine, &results.settings, &results.versions);
    vec![
        command_fact(&settings.arguments),
        ("Started", results.started.clone()),
        ("Took", took(&results.started, &results.ended).map(span).unwrap_or_default()),
        ("Processor", machine.cpu.clone()),
        ("Kernel", machine.kernel.clone()),
        ("Congestion control", machine.tcp_congestion.clone()),
        ("thalweg", format!("{} ({} build)", versions.thalweg, versions.build)),
        ("Schema", results.schema.clone()),
    ]
}
