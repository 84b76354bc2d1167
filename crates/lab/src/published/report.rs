//! Published measurements that were tried again, for every exporter.

use super::judgement::Judged;
use super::publication::Publication;
use super::results::PublishedResults;
use super::{page, terminal};
use crate::findings::Doubt;
use crate::load::remarks::of_machine;
use crate::report::Report;
use crate::report::table::Table;

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
        let mut table: Table<'_, (Publication, &Judged)> = Table::new();
        table.column("publication", |(publication, _)| Some(publication.to_string()));
        table.column("claim", |(_, claim)| Some(claim.id.clone()));
        table.column("text", |(_, claim)| Some(claim.claim.clone()));
        table.column("published", |(_, claim)| Some(claim.published.clone()));
        table.column("verdict", |(_, claim)| Some(claim.verdict.to_string()));
        table.column("ours", |(_, claim)| Some(claim.ours.clone()));
        table.column("cause", |(_, claim)| Some(claim.cause.clone()));
        let answered = self.results.answered.iter();
        table.csv(answered.flat_map(|it| it.claims.iter().map(|claim| (it.publication, claim))))
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
