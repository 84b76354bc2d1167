//! Condensed claims and verdicts, for documents.

use serde_json::{Value, json};

use super::original::original;
use super::results::{JudgedPublication, PublishedResults};
use super::terminal::summary;

pub(super) fn condensed(results: &PublishedResults) -> String {
    let publications: Vec<Value> = results.answered.iter().map(publication).collect();
    json!({ "answer": summary(results), "publications": publications }).to_string()
}

fn publication(answered: &JudgedPublication) -> Value {
    let claims = answered.claims.iter().map(|judged| {
        json!({
            "id": judged.id,
            "claim": judged.claim,
            "published": judged.published,
            "verdict": judged.verdict.title(),
            "ours": judged.ours,
            "cause": judged.cause,
        })
    });
    let original = original(answered.publication);
    json!({ "title": original.title, "source": original.source, "claims": claims.collect::<Vec<_>>() })
}
