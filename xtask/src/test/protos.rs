//! Our `.proto` front end compared with protoc.

use serde_json::Value;

use crate::failure::Result;
use crate::{files, log, protos, workspace};

/// Compares a corpus of small files.
pub(super) fn corpus() -> Result<String> {
    verdict(&protos::compare_corpus()?, &[])
}

/// Compares trees published in registries. Differences are accepted if `docs/results/protos.json` has them.
pub(super) fn trees() -> Result<String> {
    let known = files::json(&workspace::root().join("docs/results/protos.json"))?;
    let figures = protos::measure()?;
    verdict(files::list(&figures["trees"]), files::list(&known["figures"]["trees"]))
}

fn verdict(results: &[Value], known: &[Value]) -> Result<String> {
    for result in results {
        log::line(format_args!("{result:#}"))?;
    }
    let summary = results.iter().map(protos::summary).collect::<Vec<_>>().join("; ");
    if !results.is_empty() && results.iter().all(|result| protos::is_equal(result) || known.contains(result))
    {
        Ok(summary)
    } else {
        Err(failed!("{summary}"))
    }
}
