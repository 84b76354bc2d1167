//! What a codec study's figures say: pure functions of its results.

use thalweg_measure::statistics::median;

use super::line::{CodecLine, Decodes, Format, Operation};
use super::results::CodecResults;
use super::tables::{Allocations, CallsOf, CodecStep};
use crate::load::gathered::distinct;

/// Everything that reports show, of all lines, peers' lines behind ours.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CodecFigures {
    /// Each line of the study, in its order.
    pub(crate) lines: Vec<LineFigures>,
    /// How much a line differs from itself.
    pub(crate) noise: Option<CodecNoise>,
    /// What conversions are of a call.
    pub(crate) shares: Vec<CallShare>,
}

/// What was found of one line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LineFigures {
    /// Which.
    pub(crate) line: CodecLine,
    /// What its codec makes.
    pub(crate) format: Format,
    /// The message's type is known at run time only.
    pub(crate) dynamic: bool,
    /// Whose memory holds what is decoded, where anything is and it is known.
    pub(crate) decodes: Option<Decodes>,
    /// Measured by a peer, in a way of its own.
    pub(crate) of_peer: bool,
    /// By numbers of conversions, smallest first. A peer has none.
    pub(crate) steps: Vec<StepFigure>,
    /// Time of a conversion, ns: the median of the rounds at the largest number of conversions.
    pub(crate) ns: f64,
    /// How much the rounds differ there: half of them lie within so much of each other, as a share of the median.
    pub(crate) spread: f64,
    /// By how much the slowest round is above the fastest, as a share of the median.
    pub(crate) range: f64,
    /// Bytes of a message.
    pub(crate) bytes: f64,
    /// What was asked of the allocator.
    pub(crate) allocations: Option<Allocations>,
    /// Instructions of a conversion.
    pub(crate) instructions: Option<f64>,
}

/// One number of conversions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StepFigure {
    /// How many.
    pub(crate) conversions: u64,
    /// Time of a conversion, ns: the median of the rounds.
    pub(crate) ns: f64,
    /// The fastest round.
    pub(crate) min: f64,
    /// The slowest round.
    pub(crate) max: f64,
}

/// How much the same work differs from itself.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CodecNoise {
    /// The largest factor between a line and its double, both medians at the largest number of conversions: 1.03.
    pub(crate) floor: f64,
    /// The median of these factors.
    pub(crate) typical: f64,
    /// How many lines were measured twice.
    pub(crate) doubles: usize,
    /// The median of all lines' spreads.
    pub(crate) spread: f64,
}

/// What conversions are of a call over a UNIX socket in which a message is echoed: the client encodes and the server
/// decodes the request, the server encodes and the client decodes the answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CallShare {
    /// The message.
    pub(crate) data: String,
    /// The codec.
    pub(crate) codec: String,
    /// What it makes.
    pub(crate) format: Format,
    /// Calls in flight.
    pub(crate) in_flight: u32,
    /// Bytes of a message.
    pub(crate) bytes: f64,
    /// Both conversions of both messages, ns.
    pub(crate) conversions_ns: f64,
    /// The call without them, ns: its median time where it is alone, both sides' processor time where many are in
    /// flight.
    pub(crate) call_ns: f64,
}

impl CallShare {
    /// Of the whole.
    pub(crate) fn share(&self) -> f64 {
        self.conversions_ns / self.whole_ns()
    }

    /// Call and conversions.
    pub(crate) fn whole_ns(&self) -> f64 {
        self.conversions_ns + self.call_ns
    }
}

impl LineFigures {
    /// Bytes of messages per second.
    pub(crate) fn bytes_per_s(&self) -> f64 {
        self.bytes * 1e9 / self.ns
    }

    /// The largest number of conversions.
    pub(crate) fn conversions(&self) -> u64 {
        self.steps.last().map_or(0, |step| step.conversions)
    }
}

impl CodecFigures {
    /// The line of this message, codec and operation.
    pub(crate) fn line(&self, data: &str, codec: &str, operation: Operation) -> Option<&LineFigures> {
        self.lines
            .iter()
            .find(|it| it.line.data == data && it.line.codec == codec && it.line.operation == operation)
    }

    /// Of Protobuf and of the other formats the fastest lines that take part, of those that this process measured.
    ///
    /// What is owned is beside what is owned, and what is borrowed beside what is borrowed, in this order.
    pub(super) fn fastest_alike(
        &self,
        data: &str,
        operation: Operation,
        others: &[Format],
        takes_part: impl Fn(&LineFigures) -> bool,
    ) -> Vec<(&LineFigures, &LineFigures)> {
        const WAYS: [Option<Decodes>; 3] = [None, Some(Decodes::Owned), Some(Decodes::Borrowed)];
        let fastest = |decodes, formats: &[Format]| {
            self.lines
                .iter()
                .filter(|it| takes_part(it) && it.decodes == decodes && formats.contains(&it.format))
                .filter(|it| !it.of_peer && it.line.data == data && it.line.operation == operation)
                .min_by(|a, b| a.ns.total_cmp(&b.ns))
        };
        let pair = |decodes| Some((fastest(decodes, &[Format::Protobuf])?, fastest(decodes, others)?));
        WAYS.into_iter().filter_map(pair).collect()
    }
}

/// Tells what the figures say.
pub(crate) fn analyse(results: &CodecResults) -> CodecFigures {
    let lines: Vec<LineFigures> = own_lines(results).chain(peers_lines(results)).collect();
    let shares = shares(results, &lines);
    CodecFigures { noise: noise(results, &lines), shares, lines }
}

fn own_lines(results: &CodecResults) -> impl Iterator<Item = LineFigures> + '_ {
    let steps = results.steps.iter().filter(|step| !step.again);
    distinct(steps.map(|step| &step.line)).into_iter().filter_map(|line| {
        let mut steps: Vec<&CodecStep> = steps_of(results, line, false).collect();
        steps.sort_by_key(|step| step.conversions);
        let bytes = results.size(&line.data, &line.codec).map_or(0.0, |size| size.raw);
        let allocations = results.allocations.iter().find(|it| it.line == *line);
        let instructions = results.instructions.iter().find(|it| it.line == *line);
        Some(LineFigures {
            of_peer: false,
            steps: steps.iter().filter_map(|step| StepFigure::of_step(step)).collect(),
            allocations: allocations.map(|it| it.allocations),
            instructions: instructions.map(|it| it.instructions),
            ..figures(results, line, &per_conversion(steps.last()?), bytes)?
        })
    })
}

fn peers_lines(results: &CodecResults) -> impl Iterator<Item = LineFigures> + '_ {
    let lines = results.peers.iter().flat_map(|peer| &peer.lines);
    lines.filter_map(|it| figures(results, &it.line, &it.ns_per_conversion, it.bytes))
}

/// Of a line whose conversions took these times, ns; of a peer, unless more is known.
fn figures(results: &CodecResults, line: &CodecLine, times: &[f64], bytes: f64) -> Option<LineFigures> {
    let codec = results.codec(&line.codec)?;
    let StepFigure { ns, min, max, .. } = StepFigure::of(0, times)?;
    Some(LineFigures {
        line: line.clone(),
        format: codec.format,
        dynamic: codec.dynamic,
        decodes: codec.decodes.filter(|_| line.operation.decodes()),
        of_peer: true,
        steps: Vec::new(),
        ns,
        spread: middle_half(times) / ns,
        range: (max - min) / ns,
        bytes,
        allocations: None,
        instructions: None,
    })
}

/// Steps of a line that have a valid window.
fn steps_of<'a>(
    results: &'a CodecResults,
    line: &'a CodecLine,
    again: bool,
) -> impl Iterator<Item = &'a CodecStep> {
    let is_wanted = move |step: &&CodecStep| step.line == *line && step.again == again;
    results.steps.iter().filter(is_wanted).filter(|step| !step.elapsed_ns.is_empty())
}

fn per_conversion(step: &CodecStep) -> Vec<f64> {
    step.elapsed_ns.iter().map(|&ns| ns as f64 / step.conversions as f64).collect()
}

impl StepFigure {
    /// Of so many conversions, each of which took these times, ns, by round.
    fn of(conversions: u64, times: &[f64]) -> Option<Self> {
        let end = |pick: fn(f64, f64) -> f64| times.iter().copied().reduce(pick);
        let ns = median(times.iter().copied())?;
        Some(Self { conversions, ns, min: end(f64::min)?, max: end(f64::max)? })
    }

    fn of_step(step: &CodecStep) -> Option<Self> {
        Self::of(step.conversions, &per_conversion(step))
    }
}

fn noise(results: &CodecResults, lines: &[LineFigures]) -> Option<CodecNoise> {
    let factor = |line: &LineFigures| {
        let double = steps_of(results, &line.line, true).max_by_key(|step| step.conversions)?;
        let single = line.steps.iter().find(|step| step.conversions == double.conversions)?;
        Some((StepFigure::of_step(double)?.ns / single.ns).ln().abs().exp())
    };
    let factors: Vec<f64> = lines.iter().filter_map(factor).collect();
    let spreads: Vec<f64> = lines.iter().filter(|line| !line.of_peer).map(|line| line.spread).collect();
    Some(CodecNoise {
        floor: factors.iter().copied().reduce(f64::max)?,
        typical: median(factors.iter().copied())?,
        doubles: factors.len(),
        spread: median(spreads.iter().copied())?,
    })
}

fn shares(results: &CodecResults, lines: &[LineFigures]) -> Vec<CallShare> {
    let of = |calls: &CallsOf| {
        let codec = &results.first_of(&[calls.format])?.name;
        let is_of = |line: &&LineFigures| line.line.data == calls.data && line.line.codec == *codec;
        let at = |operation| lines.iter().filter(is_of).find(move |it| it.line.operation == operation);
        let (encode, decode) = (at(Operation::Encode)?, at(Operation::Decode)?);
        let times =
            calls.rounds.iter().map(|round| if calls.in_flight == 1 { round.p50_ns } else { round.cpu_ns });
        Some(CallShare {
            data: calls.data.clone(),
            codec: encode.line.codec.clone(),
            format: calls.format,
            in_flight: calls.in_flight,
            bytes: encode.bytes,
            conversions_ns: 2.0 * (encode.ns + decode.ns),
            call_ns: median(times)?,
        })
    };
    results.calls.iter().filter_map(of).collect()
}

/// How far the middle half of the values reaches.
fn middle_half(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| sorted[(share * (sorted.len() - 1) as f64).round() as usize];
    if sorted.is_empty() { 0.0 } else { at(0.75) - at(0.25) }
}
