//! Terminal output for reproduced measurements.

use thalweg_measure::text::wrapped;
use thalweg_measure::wording::counted;

use super::judgement::{ClaimVerdict, counts};
use super::original::original;
use super::results::PublishedResults;

pub(super) fn text(results: &PublishedResults) -> String {
    let mut text = String::new();
    for answered in &results.answered {
        text.extend(["\n", &original(answered.publication).title, "\n"]);
        for claim in &answered.claims {
            let found = match claim.verdict {
                ClaimVerdict::CannotBeTried => claim.cause.clone(),
                _ => format!("published: {}; here: {}", claim.published, claim.ours),
            };
            text +=
                &wrapped(&format!("- {} {}: {found}.", claim.claim, claim.verdict.title().to_uppercase()));
        }
    }
    text + "\n" + &wrapped(&summary(results))
}

/// Returns the number of claims by verdict.
pub(super) fn summary(results: &PublishedResults) -> String {
    format!("Of {}: {}.", counted(results.claims().count() as u64, "claim"), counts(results.claims()))
}
