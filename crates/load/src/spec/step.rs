//! A step of a load, and the call that it becomes.

use thalweg::{CallOptions, Encoding, Method};
use thalweg_dynamic::metadata::Entry;
use thalweg_dynamic::{MethodName, ResolvedMethod};

use super::benchmark::Benchmark;
use super::data::{Data, Input};
use super::deadline::Deadline;
use super::error::SpecError;
use super::stream::StreamSpec;
use super::templates::call_metadata;
use crate::call::{Call, CallKind, Calls, StreamPlan};
use crate::requests::Order;
use crate::response_checks::{FieldPath, ResponseCheck, expected};
use crate::scenario::{Step, Think};
use crate::template::TemplateNames;

#[derive(Debug)]
pub(super) struct FlowSpec {
    pub(super) name: String,
    pub(super) weight: u32,
    pub(super) steps: Vec<StepSpec>,
}

/// A step of a flow: calls of one method.
#[derive(Debug)]
pub struct StepSpec {
    /// Name in results.
    pub name: String,
    /// Method to call.
    pub method: MethodName,
    /// Requests as texts, `@FILE`, or `@-` for stdin. Empty means one empty message.
    pub data: Vec<String>,
    /// Payloads to send if `data` is empty, for a method of BenchmarkService.
    pub benchmark: Option<Benchmark>,
    /// Format of the requests [default: json, or csv for `*.csv`].
    pub input: Option<Input>,
    /// Order of several requests.
    pub order: Order,
    /// Whether requests are templates.
    pub has_templates: bool,
    /// Metadata of each call.
    pub metadata: Vec<Entry>,
    /// Deadline of each call.
    pub deadline: Deadline,
    /// Compression of requests.
    pub compress: Option<Encoding>,
    /// Largest response, in bytes.
    pub max_message_bytes: usize,
    /// Settings of streams.
    pub stream: StreamSpec,
    /// Conditions that responses must meet.
    pub checks: Vec<ResponseCheck>,
    /// Values of responses that later steps use.
    pub keep: Vec<(String, FieldPath)>,
    /// Time between this step and the next one.
    pub think: Option<Think>,
}

impl StepSpec {
    /// Returns the step with the call of this method. `variables` are the values kept by earlier steps.
    pub(super) fn step(
        &self,
        called: &ResolvedMethod,
        seed: u64,
        variables: &[String],
    ) -> Result<Step, SpecError> {
        let kind = CallKind::of(called.is_client_streaming, called.is_server_streaming);
        self.stream.check(kind, &self.method)?;
        let constants = called.constants();
        let names = TemplateNames { variables, constants: &constants };
        let data = Data {
            texts: &self.data,
            input: self.input,
            order: self.order,
            messages: self.stream.messages,
            is_endless: self.stream.lasts.is_some() || self.stream.lasts_to_end,
            has_templates: self.has_templates,
            seed,
            names,
        };
        let calls = match self.benchmark.filter(|_| self.data.is_empty() && self.checks.is_empty()) {
            Some(benchmark) => {
                let endless = (self.stream.lasts.is_some() || self.stream.lasts_to_end).then_some(u64::MAX);
                let messages = self.stream.messages.or(endless).unwrap_or(1);
                benchmark.calls(kind, messages)
            }
            None => Calls::Bytes(data.requests(called)?),
        };
        let expects = expected(&self.checks, self.keep.clone(), &called.schema, &called.response_type)
            .map_err(SpecError::invalid)?;
        let mut options = CallOptions::default();
        let sending = self.stream.message_rate.as_ref().map(|rate| (rate, calls.per_stream()));
        options.timeout = self.deadline.timeout(self.stream.lasts, sending);
        options.max_decoding_message_size = self.max_message_bytes;
        options.send_compressed = self.compress;
        let call = Call {
            method: Method::from_path(&called.path).map_err(SpecError::invalid)?,
            kind,
            metadata: call_metadata(&self.metadata, seed, names)?,
            options,
            calls,
            stream: StreamPlan {
                message_rate: self.stream.message_rate.clone(),
                lasts: self.stream.lasts,
                responses: self.stream.responses,
                outstanding: self.stream.outstanding,
                lasts_to_end: self.stream.lasts_to_end,
                counts_at_response: false,
            },
            expects,
        };
        Ok(Step { name: self.name.clone(), call, think: self.think })
    }
}
