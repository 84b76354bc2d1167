//! A step of a load, as it was asked for, and the call that it becomes.

use thalweg::{CallOptions, Method};
use thalweg_dynamic::MethodName;
use thalweg_load::{
    Call, CallKind, Calls, Condition, FieldPath, Names, Order, Step, StreamPlan, Think, expected,
};

use super::asked_stream::AskedStream;
use super::benchmark::Benchmark;
use super::data::{Data, Input};
use super::deadline::Deadline;
use super::made::call_metadata;
use crate::called::Called;
use crate::compression::Compression;
use crate::failure::Failure;
use crate::metadata::Entry;

/// A flow, as it was asked for.
#[derive(Debug)]
pub(super) struct AskedFlow {
    pub(super) name: String,
    pub(super) weight: u32,
    pub(super) steps: Vec<AskedStep>,
}

/// A step, as it was asked for.
#[derive(Debug)]
pub(super) struct AskedStep {
    pub(super) name: String,
    pub(super) method: MethodName,
    pub(super) data: Vec<String>,
    /// Payloads to send if `data` is empty, for a method of BenchmarkService.
    pub(super) benchmark: Option<Benchmark>,
    pub(super) input: Option<Input>,
    pub(super) order: Order,
    pub(super) has_templates: bool,
    pub(super) metadata: Vec<Entry>,
    pub(super) deadline: Deadline,
    pub(super) compress: Option<Compression>,
    /// Largest response, in bytes.
    pub(super) max_message_bytes: usize,
    pub(super) stream: AskedStream,
    pub(super) checks: Vec<Condition>,
    pub(super) keep: Vec<(String, FieldPath)>,
    pub(super) think: Option<Think>,
}

impl AskedStep {
    /// The call of this method. `variables` are what steps before it keep.
    pub(super) fn step(&self, called: &Called, seed: u64, variables: &[String]) -> Result<Step, Failure> {
        let kind = CallKind::of(called.is_client_streaming, called.is_server_streaming);
        self.stream.check(kind, &self.method)?;
        let constants = called.constants();
        let names = Names { variables, constants: &constants };
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
                benchmark.calls(called.is_client_streaming, called.is_server_streaming, messages)
            }
            None => Calls::Bytes(data.requests(called)?),
        };
        let expects = expected(&self.checks, self.keep.clone(), &called.schema, &called.response_type)
            .map_err(Failure::bad_arguments)?;
        let mut options = CallOptions::default();
        let sending = self.stream.message_rate.as_ref().map(|rate| (rate, calls.per_stream()));
        options.timeout = self.deadline.timeout(self.stream.lasts, sending);
        options.max_decoding_message_size = self.max_message_bytes;
        options.send_compressed = self.compress.map(Into::into);
        let call = Call {
            method: Method::from_path(&called.path).map_err(Failure::bad_arguments)?,
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
                counts_answered: false,
            },
            expects,
        };
        Ok(Step { name: self.name.clone(), call, think: self.think })
    }
}

/// `100ms`, or `50ms..200ms`.
pub(super) fn parse_think(text: &str) -> Result<Think, String> {
    let time = |text: &str| {
        humantime::parse_duration(text.trim())
            .map_err(|_| format!("`{text}` is not a time, such as 100ms or 50ms..200ms"))
    };
    let (least, most) = text.split_once("..").unwrap_or((text, text));
    let think = Think { least: time(least)?, most: time(most)? };
    if think.most < think.least {
        return Err(format!("`{text}` begins with the longer time"));
    }
    Ok(think)
}
