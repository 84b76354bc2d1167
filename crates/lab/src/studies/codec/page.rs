//! Page of a codec study.

mod charts;

use maud::{Markup, html};
use thalweg_measure::figures::{count, percent, throughput, time};
use thalweg_measure::page::parts::card;
use thalweg_measure::page::section::{Block, Section};
use thalweg_measure::page::table::{Columns, Table};
use thalweg_measure::wording::counted;

use super::analyse::{CodecFigures, LineFigures};
use super::analysis::CodecAnalysis;
use super::findings::JSON;
use super::line::{Operation, WARM_UPS};
use super::results::CodecResults;
use super::tables::{CodecInfo, DataInfo};
use crate::report::origin::Facts;
use crate::report::topics::findings;

/// Highest number of messages with a card.
const CARDS_MAX: usize = 4;

/// Returns a sentence on what was measured and on which machine.
pub(super) fn lede(results: &CodecResults) -> String {
    format!(
        "{}, {} of message, on {}.",
        counted(results.codecs.len() as u64, "codec"),
        counted(results.data.len() as u64, "kind"),
        results.origin(&results.settings.arguments).machine_text()
    )
}

/// Returns a card for each of the first messages: the fastest round trip of each format, owned if possible.
pub(super) fn cards(results: &CodecResults, analysis: &CodecFigures) -> Markup {
    let of_data = |data: &DataInfo| {
        let alike = analysis.fastest_alike(&data.name, Operation::RoundTrip, &JSON, |_| true);
        let &(protobuf, json) = alike.first()?;
        let detail = format!(
            "with {} in {:.0} bytes; as JSON {} with {} in {:.0}",
            protobuf.line.codec,
            protobuf.bytes,
            time(json.ns),
            json.line.codec,
            json.bytes
        );
        let what = match protobuf.decodes {
            Some(decodes) => format!("{}, round trip, {decodes}", data.name),
            None => format!("{}, round trip", data.name),
        };
        Some(card(&what, &time(protobuf.ns), &detail))
    };
    html! {
        @for card in results.data.iter().filter_map(of_data).take(CARDS_MAX) { (card) }
    }
}

pub(super) fn sections(study: &CodecAnalysis<'_>) -> Vec<Section> {
    let CodecAnalysis { results, figures: analysis, findings: found, .. } = study;
    let mut times = charts::costs(results, analysis);
    times.push(Block::hint(
        "There is a panel for each message, each with its own scale; codecs are sorted by their figures. The \
         time is the median of the rounds at the largest number of conversions. Bytes per second are of the codec’s \
         own bytes: a codec that writes more bytes for the same message looks faster.",
    ));
    vec![
        Section::new("findings", "Findings", "Findings", vec![findings(found)]),
        Section::new("times", "Times", "Cost of a conversion", times),
        Section::new("steps", "Steps", "Time by number of conversions", charts::steps(results, analysis)),
        Section::new("bytes", "Bytes", "Bytes of a message", charts::bytes(results)),
        Section::new("calls", "Calls", "Share of a whole call", charts::calls(analysis)),
        Section::new(
            "figures",
            "Figures",
            "All figures",
            vec![
                Block::Table(table(results, analysis)),
                Block::hint(
                    "Click a column header to sort by it. The same figures are in `results.csv`, and every window \
                     in `results.json`.",
                ),
            ],
        ),
    ]
}

/// Returns the table of all figures.
fn table(results: &CodecResults, analysis: &CodecFigures) -> Table {
    let whole = |bytes: f64| format!("{bytes:.0}");
    let size = |line: &LineFigures| results.size(&line.line.data, &line.line.codec);
    let conversions = |line: &LineFigures| Some(line.conversions() as f64).filter(|&it| it > 0.0);
    Columns::<&LineFigures>::default()
        .words("Message", |line| line.line.data.clone())
        .words("Codec", |line| line.line.codec.clone())
        .words("Operation", |line| line.line.operation.to_string())
        .words("Format", |line| line.format.to_string())
        .words("Decoded", |line| line.decodes.map(|it| it.to_string()).unwrap_or_default())
        .figure("Time", time, |line| Some(line.ns))
        .figure("Rounds within", percent, |line| Some(line.spread))
        .figure("Per second", |rate| format!("{}/s", count(rate)), |line| Some(1e9 / line.ns))
        .figure("Bytes/s", throughput, |line| Some(line.bytes_per_s()))
        .figure("Bytes", whole, |line| Some(line.bytes))
        .figure("gzip", whole, move |line| Some(size(line)?.gzip))
        .figure("zstd", whole, move |line| Some(size(line)?.zstd))
        .figure("Allocations", count, |line| Some(line.allocations?.blocks))
        .figure("Instructions", count, |line| line.instructions)
        .figure("Conversions", count, move |line| conversions(line))
        .table(&analysis.lines)
}

pub(super) fn method(results: &CodecResults) -> Vec<String> {
    let settings = &results.settings;
    let pinned = match settings.cpu {
        Some(cpu) => format!("One thread, pinned to processor {cpu}, makes all conversions. "),
        None => String::new(),
    };
    let data = match settings.seed {
        Some(seed) => format!(
            "Messages are generated from a seed ({seed}): the same on every machine. If there are several of a kind, \
             they are converted in turn."
        ),
        None => {
            "Messages are supplied by the user. Codecs with generated code do not know them: only those that \
                 learn the type at run time take part."
                .to_owned()
        }
    };
    let windows = format!(
        "{WARM_UPS} conversions come before each window and are not counted. A window is then timed as a whole with \
         one monotonic clock; nothing is recorded within it."
    );
    let rounds = format!(
        "At each number of conversions codecs are interleaved, in forward and then reverse order, in {} rounds. A \
         figure is the median of the rounds at the largest number.",
        settings.rounds
    );
    let codecs: Vec<String> = results.codecs.iter().map(used).collect();
    let mut method = vec![pinned + &data, windows, rounds];
    method.extend(ALIKE.map(str::to_owned));
    method.push(format!("Codecs: {}.", codecs.join("; ")));
    method.extend(COUNTED.map(str::to_owned));
    method.extend(results.peers.iter().map(|peer| format!("{}: {}", peer.version, peer.method)));
    method
}

/// Method common to all codecs.
const ALIKE: [&str; 3] = [
    "Each codec encodes into a reused buffer and decodes from bytes in memory. Dropping the decoded value is part of \
     the time. Before anything is timed, each codec has read back what it wrote.",
    "Decoded messages are owned or borrowed; the strings of a borrowed message stay in the bytes. The measured time of \
     a borrowed message includes reading each field, down to the last number and the length of each string, because \
     its user still has to; owned messages are not read. Allocations and instructions are counted in the same way.",
    "serde’s codecs convert plain structs, Protobuf’s convert generated messages. JSON writes absent values as \
     null.",
];
/// Method for noise, allocations and instructions.
const COUNTED: [&str; 2] = [
    "For each message and operation, the first codec is measured a second time in the same rounds: the difference is \
     the noise floor.",
    "Allocations are counted by the program’s own allocator, on the thread that converts. Instructions are counted by \
     callgrind in a separate run, in user space only.",
];

/// Describes a codec: `thalweg: dynamic messages (borrowed, read)`.
fn used(codec: &CodecInfo) -> String {
    let decodes = codec.decodes.map(|decodes| format!(" ({decodes})")).unwrap_or_default();
    format!("{}: {}{decodes}", codec.name, codec.about)
}

pub(super) fn facts(results: &CodecResults) -> Facts {
    let codecs: Vec<String> =
        results.codecs.iter().map(|codec| format!("{} {}", codec.name, codec.version)).collect();
    let left_out: Vec<&str> = results.left_out.iter().map(|left_out| left_out.what.as_str()).collect();
    vec![
        ("Windows", format!("{} of {}", results.measured(), results.planned)),
        ("Steps left out", format!("{}, for lack of time", results.steps_left_out.len())),
        ("Left out", if left_out.is_empty() { "nothing".to_owned() } else { left_out.join(", ") }),
        ("Codecs", codecs.join(", ")),
    ]
}
