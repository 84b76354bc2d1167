//! Our `.proto` front end beside protoc.

use crate::failure::Result;
use crate::{files, log, protos};

/// On a corpus of small files.
pub(super) fn corpus() -> Result<String> {
    verdict(&protos::compare_corpus()?)
}

/// On trees that registries publish.
pub(super) fn trees() -> Result<String> {
    let figures = protos::measure()?;
    verdict(files::list(&figures["trees"]))
}

fn verdict(results: &[serde_json::Value]) -> Result<String> {
    for result in results {
        log::line(format_args!("{result:#}"))?;
    }
    let account = results.iter().map(protos::summary).collect::<Vec<_>>().join("; ");
    if !results.is_empty() && results.iter().all(protos::is_equal) {
        Ok(account)
    } else {
        Err(failed!("{account}"))
    }
}
