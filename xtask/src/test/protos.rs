//! Our `.proto` front end beside protoc.

use crate::job::{Failure, Log};
use crate::protos;
use crate::test::extent;

pub(super) fn check(log: &Log) -> Result<String, Failure> {
    let mut results = protos::compare_corpus(log)?;
    if extent::is_long() {
        let figures = protos::measure(log)?;
        results.extend(figures["trees"].as_array().cloned().unwrap_or_default());
    }
    for result in &results {
        log.line(format_args!("{result:#}"))?;
    }
    let summaries: Vec<String> = results.iter().map(protos::summary).collect();
    let account = summaries.join("; ");
    if results.iter().all(protos::is_equal) { Ok(account) } else { Err(Failure::failed(account)) }
}
