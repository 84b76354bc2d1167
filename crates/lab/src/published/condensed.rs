//! What documents quote: claims with what came of them.

use serde::Serialize;

use super::judgement::Judged;
use super::originals::original;
use super::results::{Answered, PublishedResults};
use super::terminal::summary;

#[derive(Serialize)]
struct Condensed<'r> {
    answer: String,
    publications: Vec<Publication<'r>>,
}

#[derive(Serialize)]
struct Publication<'r> {
    title: &'static str,
    source: &'static str,
    claims: Vec<Claim<'r>>,
}

#[derive(Serialize)]
struct Claim<'r> {
    id: &'r str,
    #[serde(rename = "claim")]
    text: &'r str,
    published: &'r str,
    /// In words.
    verdict: &'static str,
    ours: &'r str,
    cause: &'r str,
}

impl PublishedResults {
    /// What documents quote of it, as small JSON.
    pub fn condensed(&self) -> String {
        let condensed = Condensed {
            answer: summary(self),
            publications: self.answered.iter().map(publication).collect(),
        };
        serde_json::to_string(&condensed).expect("it has string keys only")
    }
}

fn publication(answered: &Answered) -> Publication<'_> {
    let original = original(answered.publication);
    let claims = answered.claims.iter().map(claim).collect();
    Publication { title: original.title, source: original.source, claims }
}

fn claim(judged: &Judged) -> Claim<'_> {
    let Judged { id, claim, published, verdict, ours, cause, figures: _ } = judged;
    Claim { id, text: claim, published, verdict: verdict.title(), ours, cause }
}
