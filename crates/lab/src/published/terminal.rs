//! What a terminal shows of published measurements that were tried again.

use thalweg_measure::text::wrapped;
use thalweg_measure::wording::counted;

use super::judgement::Verdict;
use super::original::original;
use super::results::PublishedResults;

pub(super) fn text(results: &PublishedResults) -> String {
    let mut text = String::new();
    for answered in &results.answered {
        text.extend(["\n", &original(answered.publication).title, "\n"]);
        for claim in &answered.claims {
            let found = match claim.verdict {
                Verdict::CannotBeTried => claim.cause.clone(),
                _ => format!("published: {}; here: {}", claim.published, claim.ours),
            };
            text +=
                &wrapped(&format!("- {} {}: {found}.", claim.claim, claim.verdict.title().to_uppercase()));
        }
    }
    text + "\n" + &wrapped(&summary(results))
}

/// How many claims came to what.
pub(super) fn summary(results: &PublishedResults) -> String {
    let counts = Verdict::ALL.into_iter().map(|verdict| (verdict, results.count(verdict)));
    let counts: Vec<String> =
        counts.filter(|(_, count)| *count > 0).map(|(verdict, count)| format!("{count} {verdict}")).collect();
    format!("Of {}: {}.", counted(results.claims().count() as u64, "claim"), counts.join(", "))
}
