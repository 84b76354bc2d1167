//! Makes a codec study: looks at each line first, then measures the windows of the plan, then calls.

use std::time::Duration;

use super::plan::{Estimate, Plan, Window};
use super::results::{
    AllocationsOf, CODEC_SCHEMA, CallFigures, CallsOf, CodecInfo, CodecResults, DataInfo, LeftOut, Settings,
    Size, Step, StepLeftOut,
};
use super::{Bench, Format, Line, Operation, results};
use crate::execute::{Execute, ExecuteError, Measured};
use crate::interrupt::Interrupt;
use crate::plan::{self, Point, Purpose, Transport, Work};
use crate::record::CallType;
use crate::results::{Machine, Versions};
use crate::size::ByteSize;
use crate::stack::Pair;

/// The first look at a line ends when its conversions took so long.
const LOOK: Duration = Duration::from_millis(1);
/// Calls by themselves, and enough of them to keep both sides busy.
const CALLS_IN_FLIGHT: [u32; 2] = [1, 64];
const CALL_ROUNDS: u32 = 3;
const CALL_WARMUP: Duration = Duration::from_millis(50);
const CALL_MEASURED: Duration = Duration::from_millis(200);

/// What there is to say of a study before it begins.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// How it is made.
    pub settings: Settings,
    /// What is compared.
    pub codecs: Vec<CodecInfo>,
    /// What is converted.
    pub data: Vec<DataInfo>,
    /// How large it is.
    pub sizes: Vec<Size>,
    /// What could not be had.
    pub left_out: Vec<LeftOut>,
}

/// Told how a study goes on.
pub trait Observe {
    /// A window begins; so long will it and the rest take.
    fn begins(&mut self, line: &Line, conversions: u64, left: Duration);

    /// Something else is measured.
    fn turns_to(&mut self, what: &str);
}

/// Finds out about how long a conversion of each line takes. Of each message and operation the first codec is looked at
/// twice: it is measured beside itself. A line that fails is left out, with the reason.
pub fn look(bench: &mut impl Bench, lines: &[Line], left_out: &mut Vec<LeftOut>) -> Vec<Estimate> {
    let mut estimates: Vec<Estimate> = Vec::new();
    for line in lines {
        match first_look(bench, line) {
            Ok(ns_per_conversion) => {
                let is_first = !estimates.iter().any(|estimate| {
                    (&estimate.line.data, estimate.line.operation) == (&line.data, line.operation)
                });
                let estimate = |again| Estimate { line: line.clone(), again, ns_per_conversion };
                estimates.push(estimate(false));
                if is_first {
                    estimates.push(estimate(true));
                }
            }
            Err(reason) => left_out.push(LeftOut { what: line.to_string(), reason }),
        }
    }
    estimates
}

fn first_look(bench: &mut impl Bench, line: &Line) -> Result<f64, String> {
    let mut conversions = 10;
    loop {
        let elapsed = bench.convert(line, conversions)?;
        if elapsed >= LOOK {
            return Ok(elapsed.as_nanos() as f64 / conversions as f64);
        }
        conversions *= 4;
    }
}

/// Results without a figure yet.
pub fn begun(setup: Setup, plan: &Plan, lines: &[Estimate]) -> CodecResults {
    let now = results::now();
    let left_out = |&(line, conversions, time): &(usize, u64, Duration)| StepLeftOut {
        line: lines[line].line.clone(),
        conversions,
        would_take_ns: nanoseconds(time),
    };
    CodecResults {
        schema: CODEC_SCHEMA.to_owned(),
        started: now.clone(),
        ended: now,
        planned: plan.windows.len(),
        machine: Machine::this(),
        versions: Versions::this(),
        settings: setup.settings,
        codecs: setup.codecs,
        data: setup.data,
        sizes: setup.sizes,
        steps: Vec::new(),
        steps_left_out: plan.left_out.iter().filter(|(line, ..)| !lines[*line].again).map(left_out).collect(),
        allocations: Vec::new(),
        instructions: Vec::new(),
        calls: Vec::new(),
        peers: Vec::new(),
        left_out: setup.left_out,
    }
}

/// Measures the plan's windows, and counts what each line asks of the allocator. False: somebody asked to stop.
pub fn conversions(
    plan: &Plan,
    lines: &[Estimate],
    results: &mut CodecResults,
    bench: &mut impl Bench,
    interrupt: &Interrupt,
    observe: &mut impl Observe,
) -> bool {
    let mut left = plan.total;
    for window in &plan.windows {
        if interrupt.is_asked() {
            return false;
        }
        let estimate = &lines[window.line];
        observe.begins(&estimate.line, window.conversions, left);
        let took = bench.convert(&estimate.line, window.conversions);
        left = left.saturating_sub(took.clone().unwrap_or_default());
        match took {
            Ok(took) => add(&mut results.steps, estimate, window, took),
            Err(reason) => results.left_out.push(LeftOut { what: estimate.line.to_string(), reason }),
        }
        results.figure_taken();
    }
    observe.turns_to("allocations");
    for estimate in lines.iter().filter(|estimate| !estimate.again) {
        let line = estimate.line.clone();
        match bench.allocations(&line) {
            Ok(allocations) => results.allocations.push(AllocationsOf { line, allocations }),
            Err(reason) => results.left_out.push(LeftOut { what: format!("allocations of {line}"), reason }),
        }
    }
    true
}

fn add(steps: &mut Vec<Step>, estimate: &Estimate, window: &Window, took: Duration) {
    let is_same = |step: &&mut Step| {
        step.line == estimate.line && step.again == estimate.again && step.conversions == window.conversions
    };
    // The step of a window is among the last: those of its turn.
    match steps.iter_mut().rev().find(is_same) {
        Some(step) => step.elapsed_ns.push(nanoseconds(took)),
        None => steps.push(Step {
            line: estimate.line.clone(),
            again: estimate.again,
            conversions: window.conversions,
            elapsed_ns: vec![nanoseconds(took)],
        }),
    }
}

/// Calls whose payloads are as large as each message is as Protobuf and as JSON.
pub fn planned_calls(results: &CodecResults) -> Vec<CallsOf> {
    let mut calls = Vec::new();
    for data in &results.data {
        for format in [Format::Protobuf, Format::Json] {
            let is_of = |size: &&Size| {
                size.data == data.name
                    && results.codec(&size.codec).is_some_and(|codec| codec.format == format)
            };
            let Some(size) = results.sizes.iter().find(is_of) else { continue };
            let size_bytes = size.raw.round() as u64;
            calls.extend(CALLS_IN_FLIGHT.map(|in_flight| CallsOf {
                data: data.name.clone(),
                format,
                size_bytes,
                in_flight,
                rounds: Vec::new(),
            }));
        }
    }
    calls
}

/// How long [`calls`] will take.
pub fn calls_take(calls: &[CallsOf]) -> Duration {
    let window = |calls: &CallsOf| call_window(calls, 0).total();
    calls.iter().map(window).sum::<Duration>() * CALL_ROUNDS
}

/// Measures the calls over a UNIX socket, in rounds. False: somebody asked to stop.
pub fn calls(
    mut planned: Vec<CallsOf>,
    results: &mut CodecResults,
    executor: &mut impl Execute,
    observe: &mut impl Observe,
) -> bool {
    for round in 0..CALL_ROUNDS {
        observe.turns_to(&format!("calls over a UNIX socket, round {} of {CALL_ROUNDS}", round + 1));
        for calls in &mut planned {
            match executor.run(&call_window(calls, round)) {
                Ok(measured) => calls.rounds.extend(figures(&measured)),
                Err(ExecuteError::Interrupted) => return false,
                Err(error @ (ExecuteError::Window(_) | ExecuteError::Study(_))) => {
                    let what = format!("a call with {}", ByteSize(calls.size_bytes));
                    results.left_out.push(LeftOut { what, reason: error.to_string() });
                    if matches!(error, ExecuteError::Study(_)) {
                        return true;
                    }
                }
            }
        }
    }
    planned.retain(|calls| !calls.rounds.is_empty());
    results.calls = planned;
    results.figure_taken();
    true
}

fn call_window(calls: &CallsOf, round: u32) -> plan::Window {
    let point = Point {
        work: Work::Call(CallType::Unary),
        size_bytes: ByteSize(calls.size_bytes),
        transport: Transport::Uds,
        in_flight: calls.in_flight,
        connections: 1,
        round_trip: Duration::ZERO,
        warmup: CALL_WARMUP,
        duration: CALL_MEASURED,
    };
    plan::Window { point, pair: Some(Pair::ours()), strategy: None, round, purpose: Purpose::Figures }
}

fn figures(measured: &Measured) -> Option<CallFigures> {
    let load = &measured.load;
    let usage = measured.usage?;
    let cpu_ns = (usage.client.cpu_ns() + usage.server.cpu_ns()) as f64 / load.messages as f64;
    let latency = load.latency_ns?;
    Some(CallFigures { p50_ns: latency.p50 as f64, cpu_ns, rate_per_s: load.rate_per_s })
}

/// The lines of a study: all pairs of a message and a codec, for each operation.
pub fn lines(pairs: &[(&str, &str)], operations: &[Operation]) -> Vec<Line> {
    let line = |&(data, codec): &(&str, &str), operation| Line {
        data: data.to_owned(),
        codec: codec.to_owned(),
        operation,
    };
    operations.iter().flat_map(|&operation| pairs.iter().map(move |pair| line(pair, operation))).collect()
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
