//! A codec study as one self-contained page. The texts and the tables are written here; bars and lines the page draws.

mod calls;
mod data;
mod table;

use data::key;
use maud::{Markup, html};
use thalweg_measure::figures::{span, time};
use thalweg_measure::page::parts::{card, choices, eyebrow, scrolled, took};
use thalweg_measure::wording::counted;

use super::analyse::Analysis;
use super::analysis::CodecAnalysis;
use super::line::{Format, Operation, WARM_UPS};
use super::results::CodecResults;
use super::tables::{CodecInfo, DataInfo};
use crate::report::page::{PLOT, Page, command_fact};
use crate::report::topics::findings;

const STYLE: &str = include_str!("../../../assets/codec.css");
const SCRIPT: &str = include_str!("../../../assets/codec.js");

/// What may be shown of a conversion, the first at first.
const FIGURES: [(&str, &str); 4] = [
    ("ns", "time"),
    ("rate", "bytes per second"),
    ("allocations", "allocations"),
    ("instructions", "instructions"),
];
/// Formats that are read as JSON.
const JSON: [Format; 2] = [Format::Json, Format::ProtoJson];
/// A card for each message up to this many.
const CARDS_MAX: usize = 4;

/// The study as a page that opens without a network.
pub(super) fn page(study: &CodecAnalysis<'_>) -> String {
    let CodecAnalysis { results, figures, answer, doubts, unanswered, .. } = study;
    Page {
        title: "Codec study",
        style: STYLE,
        links: &[
            ("findings", "Findings"),
            ("times", "Times"),
            ("steps", "Steps"),
            ("bytes", "Bytes"),
            ("calls", "Calls"),
            ("figures", "Figures"),
        ],
        eyebrow: eyebrow("Codec study", &results.started, &results.ended),
        answer: unanswered.as_ref().or(answer.as_ref()).cloned(),
        lede: lede(results),
        cards: cards(results, figures),
        doubts: doubts.iter().map(ToString::to_string).collect(),
        sections: sections(study),
        method: method(results),
        facts: facts(results),
        version: &results.versions.thalweg,
        notice: "",
        data: data::json(results, figures),
        library: None,
        scripts: &[PLOT, SCRIPT],
    }
    .html()
}

/// What was measured on which machine.
fn lede(results: &CodecResults) -> String {
    let machine = &results.machine;
    format!(
        "{}, {} of message, on {} with {}, {}.",
        counted(results.codecs.len() as u64, "codec"),
        counted(results.data.len() as u64, "kind"),
        machine.cpu,
        counted(machine.cores as u64, "core"),
        machine.kernel
    )
}

/// A card for each message of the first few: the fastest round trip of each format, owned if any codec's is.
fn cards(results: &CodecResults, analysis: &Analysis) -> Markup {
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

fn sections(study: &CodecAnalysis<'_>) -> Markup {
    let CodecAnalysis { results, figures: analysis, findings: found, .. } = study;
    html! {
        section #findings {
            h2 { "Findings" }
            (findings(found))
        }
        (times(results, analysis))
        section #steps {
            h2 { "Time by number of conversions" }
            div.legend role="group" aria-label="Lines shown" {}
            div.multiples data-steps {}
            p.hint {
                "The time of a conversion over how many of them were timed together, both logarithmic, for the \
                 operation chosen above. Fifty conversions come before each window and are not counted. Ten \
                 conversions of a small message take less than a microsecond, of which reading the clock is a part."
            }
        }
        section #bytes {
            h2 { "Bytes of a message" }
            div.bars data-sizes {}
            p.hint {
                "As the codec writes it, and each message compressed by itself: " i.swatch.raw {} " raw, "
                i.swatch.gzip {} " gzip, " i.swatch.zstd {} " zstd. On average over the messages of a kind."
            }
        }
        section #calls {
            h2 { "Share of a whole call" }
            (calls::bars(analysis))
        }
        section #figures {
            h2 { "All figures" }
            (scrolled(&table::table(results, analysis)))
            p.hint {
                "A click on a column’s name sorts by it. The same figures lie in " code { "results.csv" } ", and \
                 every window in " code { "results.json" } "."
            }
        }
    }
}

fn times(results: &CodecResults, analysis: &Analysis) -> Markup {
    let operations =
        results.operations().into_iter().map(|operation| (key(&operation), operation.to_string()));
    let mut formats: Vec<Format> = analysis.lines.iter().map(|line| line.format).collect();
    formats.sort_unstable();
    formats.dedup();
    html! {
        section #times {
            h2 { "Cost of a conversion" }
            div.controls {
                (choices("Operation", "operation", operations))
                (choices("Figure shown", "figure", FIGURES))
            }
            ul.key.formats {
                @for format in formats {
                    li { i style={ "background:var(--" (key(&format)) ")" } {} " " (format) }
                }
                li { span.dynamic { "slanted" } " the type is known at run time only" }
                li { b { "&" } " borrowed: strings stay in the bytes, and each field is read within the time" }
            }
            div.bars data-bars {}
            p.hint {
                "A panel for each message, each with a scale of its own, codecs from the smallest figure to the \
                 largest. The time is the median of the rounds at the largest number of conversions. Bytes per \
                 second are of the codec’s own bytes: who writes more bytes for the same message looks faster by it."
            }
        }
    }
}

fn method(results: &CodecResults) -> Vec<String> {
    let settings = &results.settings;
    let data = match settings.seed {
        Some(seed) => format!(
            "Messages are generated from a seed ({seed}): the same on every machine. Where there are several of a \
             kind, they are converted one after the other."
        ),
        None => "Messages are the user’s own. Codecs that generate code for a type cannot know theirs: those that \
                 learn it at run time take part alone."
            .to_owned(),
    };
    let codecs: Vec<String> = results.codecs.iter().map(used).collect();
    let pinned =
        settings.cpu.map(|cpu| format!("One thread, kept on processor {cpu}, makes all conversions."));
    let sentences = [
        pinned,
        Some(data),
        Some(format!(
            "{WARM_UPS} conversions come before each window and are not counted. A window is then timed as a whole \
             with one monotonic clock; nothing is recorded within it."
        )),
        Some(format!(
            "At each number of conversions codecs are interleaved, in forward and then reverse order, in {} rounds. \
             A figure is the median of the rounds at the largest number.",
            settings.rounds
        )),
        Some(
            "Everybody encodes into a buffer that is cleared and used again, and decodes from bytes in memory. What is \
             decoded is dropped within the time. Before anything is timed, each codec has read back what it wrote."
                .to_owned(),
        ),
        Some(
            "What is decoded is owned, or it is borrowed: its strings stay in the bytes. Each field of what is \
             borrowed is then read within the time, down to the last number and the length of each string, as its \
             user still has to; nothing more is done to what is owned. Allocations and instructions are counted \
             likewise."
                .to_owned(),
        ),
        Some(
            "serde’s codecs convert plain structs, Protobuf’s the messages that they generate. JSON writes what is \
             absent as null."
                .to_owned(),
        ),
        Some(format!("Codecs: {}.", codecs.join("; "))),
        Some(
            "Of each message and operation the first codec is measured a second time in the same rounds: what the two \
             differ by is the noise floor."
                .to_owned(),
        ),
        Some(
            "Allocations are counted by the program’s own allocator, on the thread that converts. Instructions are \
             counted by callgrind, in a run of its own, from the program’s user space alone."
                .to_owned(),
        ),
    ];
    let peers = results.peers.iter().map(|peer| Some(format!("{}: {}", peer.version, peer.method)));
    sentences.into_iter().chain(peers).flatten().collect()
}

/// `thalweg: dynamic messages (borrowed, read)`.
fn used(codec: &CodecInfo) -> String {
    let decodes = codec.decodes.map(|decodes| format!(" ({decodes})")).unwrap_or_default();
    format!("{}: {}{decodes}", codec.name, codec.about)
}

fn facts(results: &CodecResults) -> Vec<(&'static str, String)> {
    let (machine, settings, versions) = (&results.machine, &results.settings, &results.versions);
    let codecs: Vec<String> =
        results.codecs.iter().map(|codec| format!("{} {}", codec.name, codec.version)).collect();
    let left_out: Vec<&str> = results.left_out.iter().map(|left_out| left_out.what.as_str()).collect();
    vec![
        command_fact(&settings.arguments),
        ("Started", results.started.clone()),
        ("Took", took(&results.started, &results.ended).map(span).unwrap_or_default()),
        ("Windows", format!("{} of {}", results.measured(), results.planned)),
        ("Steps left out", format!("{}, for want of time", results.steps_left_out.len())),
        ("Left out", if left_out.is_empty() { "nothing".to_owned() } else { left_out.join(", ") }),
        ("Codecs", codecs.join(", ")),
        ("Processor", machine.cpu.clone()),
        ("Cores", machine.cores.to_string()),
        ("Kernel", machine.kernel.clone()),
        ("thalweg", format!("{} ({} build)", versions.thalweg, versions.build)),
        ("Schema", results.schema.clone()),
    ]
}
