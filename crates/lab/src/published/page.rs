//! The page of reproduced measurements: claims first, then further tables.

use std::time::Duration;

use maud::{Markup, html};
use thalweg_measure::figures::span;
use thalweg_measure::page::parts::card;
use thalweg_measure::page::section::{Block, Section};
use thalweg_measure::page::statement::Statement;
use thalweg_measure::wording::counted;

use super::judgement::{ClaimVerdict, JudgedClaim, counts};
use super::original::{Flaw, Original, Situation, original, situations};
use super::publication::Publication;
use super::results::{JudgedPublication, PublishedResults, RunResult};
use crate::report::origin::Origin;

pub(super) fn lede(results: &PublishedResults) -> String {
    let quick = if results.settings.quick { " A quick look: fewer sizes, fewer rounds." } else { "" };
    format!(
        "Published measurements of gRPC, repeated on {}: what was claimed, what is measured here, and why.{quick}",
        results.origin().machine_text()
    )
}

pub(super) fn cards(results: &PublishedResults) -> Markup {
    html! {
        @for JudgedPublication { publication, claims, .. } in &results.answered {
            @let shown = claims.iter().filter(|claim| claim.verdict.is_shown()).count();
            @let shown = format!("{shown} of {}", claims.len());
            (card(&original(*publication).short, &shown, &counts(claims)))
        }
    }
}

pub(super) fn sections(results: &PublishedResults) -> Vec<Section> {
    let answered = results.answered.iter().map(|answered| section(answered, &results.runs));
    answered.chain([what_to_change(results)]).collect()
}

fn section(answered: &JudgedPublication, runs: &[RunResult]) -> Section {
    let Original { title, short, source, method, flaws, .. } = original(answered.publication);
    let mut blocks = vec![
        Block::About(format!("Published: {source}.")),
        Block::Sentence(method.join(" ")),
        Block::Statements(answered.claims.iter().map(statement).collect()),
    ];
    let runs: Vec<(String, String)> =
        runs.iter().filter(|run| run.publication == answered.publication).map(study).collect();
    if !runs.is_empty() {
        blocks.extend([Block::heading("Measured by"), Block::Findings(runs)]);
    }
    for shown in &answered.tables {
        let (title, about) = (Block::Heading(shown.title.clone()), Block::About(shown.about.clone()));
        blocks.extend([title, about, Block::Table(shown.table.clone())]);
    }
    let flaws = flaws.iter().map(|Flaw { what, instead }| (what.clone(), instead.clone()));
    blocks.extend([Block::heading("Differences from the original"), Block::Findings(flaws.collect())]);
    Section::new(answered.publication.name(), short, title, blocks)
}

/// Returns the claim, its verdict, the figures and the cause.
fn statement(claim: &JudgedClaim) -> Statement {
    let class = match claim.verdict {
        ClaimVerdict::Confirmed => "confirmed",
        ClaimVerdict::InDirection => "direction",
        ClaimVerdict::NotConfirmed => "refuted",
        ClaimVerdict::CannotBeTried => "untried",
    };
    let mut facts = vec![("Published", claim.published.clone())];
    if claim.verdict == ClaimVerdict::CannotBeTried {
        facts.push(("Why not", claim.cause.clone()));
    } else {
        facts.extend([("Here", claim.ours.clone()), ("Why", claim.cause.clone())]);
    }
    Statement {
        id: format!("claim-{}", claim.id),
        class,
        verdict: claim.verdict.title().to_owned(),
        text: claim.claim.clone(),
        facts,
        figures: claim.figures.iter().map(|it| (it.name.clone(), it.text.clone())).collect(),
    }
}

/// Returns a study with a link to its own page.
fn study(run: &RunResult) -> (String, String) {
    let RunResult { name, about, arguments, has_page, .. } = run;
    let about = if *has_page { format!("[{about}]({name}/report.html)") } else { about.clone() };
    let failed = run.failed.iter().map(|reason| format!(", with a problem: {reason}"));
    let took = span(Duration::from_nanos(run.took_ns));
    (about, format!("In {took}{}. `thalweg {}`", failed.collect::<String>(), arguments.join(" ")))
}

/// Returns advice by situation, for claims that were tried. Advice is omitted if its claim was not confirmed.
fn what_to_change(results: &PublishedResults) -> Section {
    let advice = |Situation { claim: id, always, reader, advice }: &Situation| {
        let is_of = |it: &&Publication| original(**it).claims.iter().any(|it| it.id == *id);
        results.settings.publications.iter().find(is_of)?;
        let claim = results.claims().find(|it| it.id == *id && it.verdict != ClaimVerdict::CannotBeTried);
        if !always && claim.is_some_and(|claim| claim.verdict == ClaimVerdict::NotConfirmed) {
            return None;
        }
        let here = claim.map_or("not here".to_owned(), |it| format!("[{}](#claim-{})", it.ours, it.id));
        Some((reader.clone(), format!("{advice} Measured here: {here}.")))
    };
    let advice = situations().iter().filter_map(advice).collect();
    Section::new("situations", "What to change", "What to change", vec![Block::Findings(advice)])
}

pub(super) fn method(results: &PublishedResults) -> Vec<String> {
    let mut method = vec![
        "Each claim is judged by a rule that was written before measuring: whether the effect exists, and whether it \
         is as large as published, within a factor of 1.5 because machines differ."
            .to_owned(),
        "The studies are this laboratory’s, with the systems and sizes of the original; each has its own page with \
         windows, intervals and noise floor, and a command that repeats it."
            .to_owned(),
        "The published figures are quoted unchanged; their authors did not repeat them."
            .to_owned(),
    ];
    if let Some(cores) = results.settings.cores {
        let kept = counted(cores as u64, "processor");
        let shared = if cores == 1 { ": client and server share it, and nothing is pinned" } else { "" };
        method.push(format!("All runs were pinned to {kept}{shared}."));
    }
    method
}

impl PublishedResults {
    pub(super) fn origin(&self) -> Origin<'_> {
        let Self { started, ended, machine, versions, schema, .. } = self;
        Origin { started, ended, machine, versions, schema, arguments: &self.settings.arguments }
    }
}
