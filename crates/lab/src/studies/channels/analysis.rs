//! A channels study, analysed: what every exporter writes down.

use super::analyse::Channels;
use super::findings::{StackVerdict, verdicts};
use super::numbers::LoadsTally;
use crate::load::LabResults;

/// What its results say.
#[derive(Debug)]
pub(crate) struct ChannelsAnalysis<'r> {
    pub(super) results: &'r LabResults,
    pub(super) channels: Channels<'r>,
    /// Which number is best for each stack at each load, and what limits it.
    pub(super) verdicts: Vec<StackVerdict>,
    /// Why there is no answer, if too many windows are not valid.
    pub(super) unanswered: Option<String>,
}

impl<'r> ChannelsAnalysis<'r> {
    pub(crate) fn of(results: &'r LabResults) -> Self {
        let channels = Channels::of(results);
        let mut verdicts = verdicts(&channels, &results.settings);
        let tally: LoadsTally = verdicts.iter().flat_map(|verdict| &verdict.numbers.rows).collect();
        let is_open = verdicts.is_empty() || tally.cannot_tell > 0;
        let is_unanswered = is_open && tally.gains + tally.nothing == 0;
        let unanswered = results.unanswered(!is_unanswered);
        if unanswered.is_some() {
            verdicts.clear();
        }
        Self { results, channels, verdicts, unanswered }
    }
}
