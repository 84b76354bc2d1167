//! What a published measurement claims.

use super::evidence::Evidence;
use super::judgement::{Judged, Judgement, Verdict};

/// One thing that was claimed.
pub(crate) struct Claim {
    /// Its name in the results.
    pub(crate) id: &'static str,
    /// What was claimed, in a sentence.
    pub(crate) text: &'static str,
    /// The figure that was published with it.
    pub(crate) published: &'static str,
    /// What the evidence says of it; an error is why it says nothing.
    pub(crate) judge: fn(&Evidence) -> Result<Judgement, String>,
}

impl Claim {
    /// What the evidence says.
    pub(crate) fn judged(&self, evidence: &Evidence) -> Judged {
        let judgement = (self.judge)(evidence).unwrap_or_else(|reason| Judgement {
            verdict: Verdict::CannotBeTried,
            ours: "–".to_owned(),
            cause: reason,
            figures: Vec::new(),
        });
        let Judgement { verdict, ours, cause, figures } = judgement;
        Judged {
            id: self.id.to_owned(),
            claim: self.text.to_owned(),
            published: self.published.to_owned(),
            verdict,
            ours,
            cause,
            figures,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_without_evidence_cannot_be_tried() {
        let claim = Claim { id: "x", text: "X is so.", published: "7", judge: |_| Err("no peer".to_owned()) };
        let judged = claim.judged(&Evidence::default());
        assert_eq!((judged.verdict, judged.cause.as_str()), (Verdict::CannotBeTried, "no peer"));
        assert!(judged.figures.is_empty());
    }
}
