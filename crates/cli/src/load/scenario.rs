//! The scenario that the command line specifies.

use thalweg_load::spec::{Benchmark, Deadline, Defaults, ScenarioSpec, StepSpec, StreamSpec};

use super::arguments::{CallTarget, LoadArgs};
use crate::failure::Failure;

impl LoadArgs {
    /// Returns the flows of `--scenario`, or calls of one method.
    pub(super) fn scenario(&self) -> Result<ScenarioSpec, Failure> {
        let (any, mut deadline) = (&self.any, Deadline::from(self.common.timeout));
        if let Some(path) = &any.scenario {
            let defaults = Defaults {
                deadline,
                metadata: &any.with.metadata,
                compress: any.each.compress,
                max_message_bytes: any.each.message_max(),
                has_templates: !any.no_templates,
            };
            return Ok(ScenarioSpec::of_file(path, &defaults)?);
        }
        let method = self.call.method();
        let benchmark = Benchmark::of(&method, any.size.map(|size| size.0))?;
        let mut stream = StreamSpec {
            messages: any.messages,
            message_rate: any.message_rate.clone(),
            lasts: any.stream_for,
            responses: any.responses,
            outstanding: any.outstanding,
            lasts_to_end: false,
        };
        if let (CallTarget::Benchmark(call), Some(benchmark)) = (&self.call, benchmark) {
            stream = benchmark.stream(*call, stream, self.has_steady_streams());
            // The run enforces the timeout of these calls.
            if stream.lasts_to_end || self.common.timeout.is_none() {
                deadline = Deadline::Never;
            }
        }
        Ok(ScenarioSpec::of_call(StepSpec {
            name: method.to_string(),
            method,
            data: any.data.clone(),
            benchmark,
            input: any.input,
            order: any.order,
            has_templates: !any.no_templates,
            metadata: any.with.metadata.clone(),
            deadline,
            compress: any.each.compress,
            max_message_bytes: any.each.message_max(),
            stream,
            checks: any.check.clone(),
            keep: Vec::new(),
            think: None,
        }))
    }
}
