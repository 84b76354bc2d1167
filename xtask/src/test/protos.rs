//! Our `.proto` front end beside protoc.

use crate::job::{Failure, Log};
use crate::protos;

/// On a corpus of small files.
pub(super) fn corpus(log: &Log) -> Result<String, Failure> {
    verdict(&protos::compare_corpus(log)?, log)
}

/// On trees that registries publish.
pub(super) fn trees(log: &Log) -> Result<String, Failure> {
    let figures = protos::measure(log)?;
    verdict(figures["trees"].as_array().map_or(&[], Vec::as_slice), log)
}

fn verdict(results: &[serde_json::Value], log: &Log) -> Result<String, Failure> {
    for result in results {
        log.line(format_args!("{result:#}"))?;
    }
    let account = results.iter().map(protos::summary).collect::<Vec<_>>().join("; ");
    if !results.is_empty() && results.iter().all(protos::is_equal) {
        Ok(account)
    } else {
        Err(Failure::failed(account))
    }
}
