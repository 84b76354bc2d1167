//! What is called, as it was asked for and as it is driven.

use thalweg_dynamic::Catalogue;
use thalweg_load::Flow;

use super::arguments::{LoadArgs, What};
use super::asked_stream::AskedStream;
use super::benchmark::Benchmark;
use super::deadline::Deadline;
use super::scenario_file::{self, Defaults};
use super::steps::{AskedFlow, AskedStep};
use crate::called;
use crate::failure::Failure;

/// One method, or the flows of a file.
#[derive(Debug)]
pub(super) struct AskedScenario {
    /// What results call it.
    pub(super) name: String,
    flows: Vec<AskedFlow>,
    /// By --call, and not by a file.
    is_one_call: bool,
    /// Payloads, if the method is one of BenchmarkService.
    pub(super) benchmark: Option<Benchmark>,
}

impl AskedScenario {
    /// The file's, or this one method.
    pub(super) fn read(load: &LoadArgs) -> Result<Self, Failure> {
        let (args, deadline) = (&load.any, Deadline::from(load.timeout));
        if let Some(path) = &args.scenario {
            let defaults = Defaults {
                deadline,
                metadata: &args.metadata,
                compress: args.each.compress,
                max_message_bytes: args.each.message_max(),
                has_templates: !args.no_templates,
            };
            let (name, flows) = scenario_file::read(path, &defaults)?;
            return Ok(Self { name, flows, is_one_call: false, benchmark: None });
        }
        let method = load.call.method()?;
        let benchmark = Benchmark::of(&method, args.size.map(|size| size.0))?;
        let mut stream = AskedStream {
            messages: args.messages,
            message_rate: args.message_rate.clone(),
            lasts: args.stream_for,
            responses: args.responses,
            outstanding: args.outstanding,
            lasts_to_end: false,
        };
        let mut deadline = deadline;
        if let (What::Benchmark(call), Some(benchmark)) = (&load.call, benchmark) {
            stream = benchmark.stream(*call, stream, load.has_steady_streams());
            // The run watches over these.
            if stream.lasts_to_end || load.timeout.is_none() {
                deadline = Deadline::Never;
            }
        }
        let step = AskedStep {
            name: method.to_string(),
            method: method.clone(),
            data: args.data.clone(),
            benchmark,
            input: args.input,
            order: args.order,
            has_templates: !args.no_templates,
            metadata: args.metadata.clone(),
            deadline,
            compress: args.each.compress,
            max_message_bytes: args.each.message_max(),
            stream,
            checks: args.check.clone(),
            keep: Vec::new(),
            think: None,
        };
        let name = format!("{}/{}", method.service(), method.method());
        let flow = AskedFlow { name: name.clone(), weight: 1, steps: vec![step] };
        Ok(Self { name, flows: vec![flow], is_one_call: true, benchmark })
    }
}

/// The flows, by the descriptors of their methods.
pub(super) async fn scenario(
    asked: &AskedScenario,
    seed: u64,
    catalogue: &mut Catalogue,
) -> Result<Vec<Flow>, Failure> {
    let mut flows = Vec::new();
    for flow in &asked.flows {
        let mut steps = Vec::new();
        let mut variables: Vec<String> = Vec::new();
        for (place, step) in (0..).zip(&flow.steps) {
            let named = |failure: Failure| {
                if asked.is_one_call {
                    return failure;
                }
                Failure { message: format!("{}, {}: {}", flow.name, step.name, failure.message), ..failure }
            };
            let called = called::look_up(catalogue, &step.method).await.map_err(named)?;
            steps.push(step.step(&called, of_step(seed, place), &variables).map_err(named)?);
            variables.extend(step.keep.iter().map(|(name, _)| name.clone()));
        }
        flows.push(Flow { name: flow.name.clone(), weight: flow.weight, steps });
    }
    Ok(flows)
}

/// From which a step of a flow draws. Each is a call of its own, with values of its own.
fn of_step(seed: u64, place: u64) -> u64 {
    seed.wrapping_add(place.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}
