//! Published measurements that were tried again, for every exporter.

use thalweg_measure::page::table::Columns;

use super::judgement::Judged;
use super::publication::Publication;
use super::results::PublishedResults;
use super::{page, terminal};
use crate::findings::Doubt;
use crate::load::remarks::of_machine;
use crate::report::Report;

/// What every exporter writes down.
struct PublishedReport<'r> {
    results: &'r PublishedResults,
    doubts: Vec<Doubt>,
}

impl PublishedResults {
    /// What is written down of it.
    pub fn report(&self) -> impl Report {
        let mut doubts = of_machine(&self.machine, &self.versions);
        let failed = self.runs.iter().filter_map(|run| Some((run, run.failed.as_deref()?)));
        doubts.extend(failed.map(|(run, reason)| Doubt::left_out(&format!("The run {}", run.name), reason)));
        PublishedReport { results: self, doubts }
    }
}

impl Report for PublishedReport<'_> {
    fn csv(&self) -> String {
        let answered = self.results.answered.iter();
        Columns::<(Publication, &Judged)>::default()
            .words("publication", |(publication, _)| publication.to_string())
            .words("claim", |(_, claim)| claim.id.clone())
            .words("text", |(_, claim)| claim.claim.clone())
            .words("published", |(_, claim)| claim.published.clone())
            .words("verdict", |(_, claim)| claim.verdict.to_string())
            .words("ours", |(_, claim)| claim.ours.clone())
            .words("cause", |(_, claim)| claim.cause.clone())
            .table(answered.flat_map(|it| it.claims.iter().map(|claim| (it.publication, claim))))
            .csv()
    }

    fn page(&self) -> String {
        page::page(self.results, &self.doubts)
    }

    fn text(&self) -> String {
        terminal::text(self.results)
    }

    fn doubts(&self) -> &[Doubt] {
        &self.doubts
    }
}
