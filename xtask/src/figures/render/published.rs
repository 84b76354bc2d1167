//! Published measurements that were tried again: a table of claims for each.

use serde_json::Value;

use super::table::markdown;
use crate::figures::results::Results;
use crate::job::Failure;

/// The summary, then each publication with its claims.
pub(in crate::figures) fn published(results: &Results) -> Result<String, Failure> {
    let figures = results.figures("published")?;
    let publications = figures["publications"].as_array().into_iter().flatten();
    let head = [results.caption(&["published"]), text(&figures["answer"])];
    Ok(head.into_iter().chain(publications.map(publication)).collect::<Vec<_>>().join("\n\n"))
}

fn publication(publication: &Value) -> String {
    let claims = publication["claims"].as_array().into_iter().flatten();
    let row = |claim: &Value| {
        vec![
            text(&claim["claim"]),
            text(&claim["published"]),
            text(&claim["ours"]),
            format!("**{}**", text(&claim["verdict"])),
            text(&claim["cause"]),
        ]
    };
    let heads = ["claim", "published", "here", "verdict", "why"];
    let table = markdown(&heads, &claims.map(row).collect::<Vec<_>>());
    format!("### {}\n\nPublished: {}.\n\n{table}", text(&publication["title"]), text(&publication["source"]))
}

/// In a cell of a table a bar would begin another one.
fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().replace('\u{a0}', " ").replace('|', "\\|")
}
