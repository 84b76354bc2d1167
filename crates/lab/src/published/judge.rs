//! From what the studies left to what came of each claim.

use super::evidence::Evidence;
use super::originals::original;
use super::publication::Publication;
use super::results::Answered;

/// What the evidence says of each claim of these publications.
pub fn judge(publications: &[Publication], evidence: &Evidence) -> Vec<Answered> {
    let answered = |&publication: &Publication| {
        let original = original(publication);
        Answered {
            publication,
            claims: original.claims.iter().map(|claim| claim.judged(evidence)).collect(),
            tables: (original.tables)(evidence).into_iter().filter(|table| !table.rows.is_empty()).collect(),
        }
    };
    publications.iter().map(answered).collect()
}
