//! Analysis of a codec study, as pure functions of its results.

use thalweg_measure::statistics::median;

use super::line::{CodecLine, Decodes, Format, Operation};
use super::results::CodecResults;
use super::tables::{Allocations, CallsOf, CodecStep};
use crate::load::gathered::distinct;

/// Figures of all lines, for reports.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CodecFigures {
    /// Lines in the study's order, then those of peers.
    pub(crate) lines: Vec<LineFigures>,
    pub(crate) noise: Option<CodecNoise>,
    /// Conversions as shares of calls.
    pub(crate) shares: Vec<CallShare>,
}

/// Figures of one line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LineFigures {
    pub(crate) line: CodecLine,
    /// The codec's format.
    pub(crate) format: Format,
    /// Whether the message's type is known only at run time.
    pub(crate) dynamic: bool,
    /// Whether decoded messages own their memory; `None` if unknown or nothing is decoded.
    pub(crate) decodes: Option<Decodes>,
    /// Whether a peer measured it, with its own method.
    pub(crate) of_peer: bool,
    /// Steps by ascending number of conversions. Empty for a peer.
    pub(crate) steps: Vec<StepFigure>,
    /// Time per conversion, ns: the median of the rounds at the largest number of conversions.
    pub(crate) ns: f64,
    /// Interquartile range of the rounds there, as a share of the median.
    pub(crate) spread: f64,
    /// Difference between slowest and fastest round, as a share of the median.
    pub(crate) range: f64,
    /// Bytes of a message.
    pub(crate) bytes: f64,
    /// Allocations per conversion.
    pub(crate) allocations: Option<Allocations>,
    pub(crate) instructions: Option<f64>,
}

/// Figures at one number of conversions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StepFigure {
    pub(crate) conversions: u64,
    /// Time per conversion, ns: the median of the rounds.
    pub(crate) ns: f64,
    /// Time per conversion of the fastest round, ns.
    pub(crate) min: f64,
    /// Time per conversion of the slowest round, ns.
    pub(crate) max: f64,
}

/// Noise floor: difference between two measurements of the same work.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CodecNoise {
    /// Largest factor between a line and its duplicate, such as 1.03, from medians at the largest number of
    /// conversions.
    pub(crate) floor: f64,
    /// Median of these factors.
    pub(crate) typical: f64,
    /// Number of duplicated lines.
    pub(crate) doubles: usize,
    /// Median of all lines' spreads.
    pub(crate) spread: f64,
}

/// Share of conversions in an echo call over a Unix socket. The client encodes the request and decodes the response,
/// and the server does the reverse.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CallShare {
    pub(crate) data: String,
    pub(crate) codec: String,
    /// The codec's format.
    pub(crate) format: Format,
    pub(crate) in_flight: u32,
    /// Bytes of a message.
    pub(crate) bytes: f64,
    /// Encoding and decoding of both messages, ns.
    pub(crate) conversions_ns: f64,
    /// The call without conversions, ns: its median time if it is alone, or both sides' processor time if many are in
    /// flight.
    pub(crate) call_ns: f64,
}

impl CallShare {
    /// Returns the conversions' share of the whole.
    pub(crate) fn share(&self) -> f64 {
        self.conversions_ns / self.whole_ns()
    }

    /// Returns the time of call and conversions, ns.
    pub(crate) fn whole_ns(&self) -> f64 {
        self.conversions_ns + self.call_ns
    }
}

impl LineFigures {
    /// Returns bytes of messages per second.
    pub(crate) fn bytes_per_s(&self) -> f64 {
        self.bytes * 1e9 / self.ns
    }

    /// Returns the largest number of conversions.
    pub(crate) fn conversions(&self) -> u64 {
        self.steps.last().map_or(0, |step| step.conversions)
    }
}

impl CodecFigures {
    /// Returns the line of this message, codec and operation.
    pub(crate) fn line(&self, data: &str, codec: &str, operation: Operation) -> Option<&LineFigures> {
        self.lines
            .iter()
            .find(|it| it.line.data == data && it.line.codec == codec && it.line.operation == operation)
    }

    /// Returns the fastest eligible lines of Protobuf and of the other formats, among those measured by our own
    /// program.
    ///
    /// Owned results are paired with owned ones, then borrowed with borrowed ones.
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

/// Analyses the results.
pub(crate) fn analyse(results: &CodecResults) -> CodecFigures {
    let lines: Vec<LineFigures> = own_lines(results).chain(peers_lines(results)).collect();
    let shares = shares(results, &lines);
    CodecFigures { noise: noise(results, &lines), shares, lines }
}

fn own_lines(results: &CodecResults) -> impl Iterator<Item = LineFigures> + '_ {
    let steps = results.steps.iter().filter(|step| !step.is_duplicate);
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

/// Returns the figures of a line from its times per conversion in ns. They are a peer's unless extended.
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

/// Returns the steps of a line that have a valid window.
fn steps_of<'a>(
    results: &'a CodecResults,
    line: &'a CodecLine,
    is_duplicate: bool,
) -> impl Iterator<Item = &'a CodecStep> {
    let is_wanted = move |step: &&CodecStep| step.line == *line && step.is_duplicate == is_duplicate;
    results.steps.iter().filter(is_wanted).filter(|step| !step.elapsed_ns.is_empty())
}

fn per_conversion(step: &CodecStep) -> Vec<f64> {
    step.elapsed_ns.iter().map(|&ns| ns as f64 / step.conversions as f64).collect()
}

impl StepFigure {
    /// Summarizes the times per conversion, in ns by round.
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

/// Returns the interquartile range.
fn middle_half(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| sorted[(share * (sorted.len() - 1) as f64).round() as usize];
    if sorted.is_empty() { 0.0 } else { at(0.75) - at(0.25) }
}
