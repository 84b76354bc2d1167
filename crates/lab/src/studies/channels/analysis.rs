//! Analysis of a channels study, for all exporters.

use super::analyse::Channels;
use super::findings::{StackVerdict, verdicts};
use super::numbers::LoadsTally;
use crate::load::LabResults;

/// A channels study with everything derived from its results.
#[derive(Debug)]
pub(crate) struct ChannelsAnalysis<'r> {
    pub(super) results: &'r LabResults,
    pub(super) channels: Channels<'r>,
    /// The best connection count of each stack at each load, and the limiting factor.
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
