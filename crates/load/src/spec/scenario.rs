//! A scenario: calls of one method, or flows with several steps.

use std::path::Path;

use thalweg_dynamic::{Catalogue, look_up};

use super::benchmark::Benchmark;
use super::error::SpecError;
use super::file::{self, Defaults};
use super::step::{FlowSpec, StepSpec};
use crate::scenario::Flow;

/// Calls of one method, or the flows of a file.
#[derive(Debug)]
pub struct ScenarioSpec {
    /// Name in results.
    pub name: String,
    flows: Vec<FlowSpec>,
    is_one_call: bool,
    /// Payloads, if the method is one of BenchmarkService.
    pub benchmark: Option<Benchmark>,
}

impl ScenarioSpec {
    /// Reads a scenario file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, or is invalid.
    pub fn of_file(path: &Path, defaults: &Defaults<'_>) -> Result<Self, SpecError> {
        let (name, flows) = file::read(path, defaults)?;
        Ok(Self { name, flows, is_one_call: false, benchmark: None })
    }

    /// Returns the scenario of one call.
    pub fn of_call(step: StepSpec) -> Self {
        let name = format!("{}/{}", step.method.service(), step.method.method());
        let benchmark = step.benchmark;
        let flow = FlowSpec { name: name.clone(), weight: 1, steps: vec![step] };
        Self { name, flows: vec![flow], is_one_call: true, benchmark }
    }

    /// Resolves the methods and returns the flows.
    ///
    /// # Errors
    ///
    /// Returns an error for unknown methods, and for requests that do not fit them.
    pub async fn flows(&self, seed: u64, catalogue: &mut Catalogue) -> Result<Vec<Flow>, SpecError> {
        let mut flows = Vec::new();
        for flow in &self.flows {
            let mut steps = Vec::new();
            let mut variables: Vec<String> = Vec::new();
            for (place, step) in (0..).zip(&flow.steps) {
                let named = |error: SpecError| {
                    if self.is_one_call {
                        return error;
                    }
                    let step = format!("{}, {}", flow.name, step.name);
                    SpecError::Step { step, error: Box::new(error) }
                };
                let called = look_up(catalogue, &step.method).await.map_err(|error| named(error.into()))?;
                steps.push(step.step(&called, seed_of_step(seed, place), &variables).map_err(named)?);
                variables.extend(step.keep.iter().map(|(name, _)| name.clone()));
            }
            flows.push(Flow { name: flow.name.clone(), weight: flow.weight, steps });
        }
        Ok(flows)
    }
}

/// Returns the seed of a step, different for each.
fn seed_of_step(seed: u64, place: u64) -> u64 {
    seed.wrapping_add(place.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}
