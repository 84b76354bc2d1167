//! Measures of expressions: the runs' results, read once.

use std::collections::BTreeMap;

use super::calls::Calls;
use super::codec;
use super::evidence::Evidence;
use super::json::Servers;
use super::scope::{Measure, Scope};
use super::value::ValueResult;
use crate::AnyResults;
use crate::codec::CodecResults;

/// Results of each run, with their cells.
pub(crate) struct Sources<'e> {
    evidence: &'e Evidence,
    runs: BTreeMap<&'e str, Measured<'e>>,
}

enum Measured<'e> {
    Calls(Calls<'e>),
    Codec(&'e CodecResults),
    Json(Servers<'e>),
}

impl<'e> Sources<'e> {
    pub(crate) fn of(evidence: &'e Evidence) -> Self {
        let measured = |(name, results): (&'e str, &'e AnyResults)| {
            let measured = match results {
                AnyResults::Calls(results) => Measured::Calls(Calls::of(results)),
                AnyResults::Codec(results) => Measured::Codec(results),
                AnyResults::Json(results) => Measured::Json(Servers::of(results, evidence.jvm_log(name))),
            };
            (name, measured)
        };
        Self { runs: evidence.runs().map(measured).collect(), evidence }
    }
}

impl Measure for Sources<'_> {
    /// Measures a name in the scope's run, under the scope's conditions.
    fn measure(&self, name: &str, scope: &Scope<'_>) -> ValueResult {
        let run = scope.get("run").ok_or("missing `run` in the data")?.clone()?.shown("")?;
        self.evidence.run(&run)?;
        let found = self.runs.get(run.as_str()).and_then(|measured| match measured {
            Measured::Calls(calls) => calls.measure(name, scope),
            Measured::Codec(results) => codec::measure(results, name, scope),
            Measured::Json(servers) => servers.measure(name, scope),
        });
        found.unwrap_or_else(|| Err(format!("the run `{run}` has no `{name}`")))
    }
}
