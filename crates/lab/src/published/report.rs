//! Report of reproduced measurements, for all exporters.

use thalweg_measure::page::table::Columns;

use super::judgement::JudgedClaim;
use super::publication::Publication;
use super::results::PublishedResults;
use super::{condensed, page, terminal};
use crate::findings::Doubt;
use crate::load::remarks::of_machine;
use crate::report::Report;
use crate::report::page::StudyReport;

impl PublishedResults {
    /// Returns the report.
    pub fn report(&self) -> Report {
        let mut doubts = of_machine(&self.machine, &self.versions);
        let failed = self.runs.iter().filter_map(|run| Some((run, run.failed.as_deref()?)));
        doubts.extend(failed.map(|(run, reason)| Doubt::left_out(&format!("The run {}", run.name), reason)));
        let claims =
            self.answered.iter().flat_map(|it| it.claims.iter().map(|claim| (it.publication, claim)));
        let csv = Columns::<(Publication, &JudgedClaim)>::default()
            .words("publication", |(publication, _)| publication.to_string())
            .words("claim", |(_, claim)| claim.id.clone())
            .words("text", |(_, claim)| claim.claim.clone())
            .words("published", |(_, claim)| claim.published.clone())
            .words("verdict", |(_, claim)| claim.verdict.to_string())
            .words("ours", |(_, claim)| claim.ours.clone())
            .words("cause", |(_, claim)| claim.cause.clone())
            .table(claims);
        let report = StudyReport {
            origin: self.origin(),
            title: "Published measurements",
            name: "Published measurements, repeated",
            answer: self.claims().next().map(|_| terminal::summary(self)),
            unanswered: None,
            lede: page::lede(self),
            cards: page::cards(self),
            doubts,
            sections: page::sections(self),
            method: page::method(self),
            facts: Vec::new(),
            csv: csv.csv(),
            text: terminal::text(self),
            condensed: Some(condensed::condensed(self)),
        };
        report.into_report()
    }
}
