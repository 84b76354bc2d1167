//! A channels study, analysed: what every exporter writes down.

use super::analyse::Channels;
use super::findings::{Verdict, verdicts};
use crate::findings::Doubt;
use crate::load::LabResults;
use crate::load::doubts::doubts;

/// What its results say.
#[derive(Debug)]
pub struct ChannelsAnalysis<'r> {
    pub(super) results: &'r LabResults,
    pub(super) channels: Channels,
    /// Which number is best for each stack at each load, and what limits it.
    pub(super) verdicts: Vec<Verdict>,
    pub(super) doubts: Vec<Doubt>,
}

impl<'r> ChannelsAnalysis<'r> {
    pub(super) fn of(results: &'r LabResults) -> Self {
        let channels = Channels::of(results);
        let verdicts = verdicts(&channels, &results.settings);
        Self { results, channels, verdicts, doubts: doubts(results) }
    }
}
