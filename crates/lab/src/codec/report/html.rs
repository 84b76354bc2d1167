//! A codec study as one self-contained page. The words and the tables are written here; bars and lines the page draws.

mod table;

use serde::Serialize;

use crate::codec::analyse::{Analysis, LineFigures, Share, analyse};
use crate::codec::results::{CodecResults, DataInfo, LeftOut};
use crate::codec::{Format, Operation, WARM_UPS, answer, doubts, findings};
use crate::figures::{bound, percent, span, time};
use crate::report::{Page, concat, escaped, filled, script_json, short};

const SECTIONS: &str = include_str!("../../../assets/codec.html");
const STYLE: &str = include_str!("../../../assets/codec.css");
const SCRIPT: &str = include_str!("../../../assets/codec.js");

/// How lines of one format are told apart: the first is whole.
const DASHES: [&str; 5] = ["", "6 3", "2 3", "8 3 2 3", "1 4"];

/// The study as a page that opens without a network.
pub fn html(results: &CodecResults) -> String {
    let analysis = analyse(results);
    let sections = filled(
        SECTIONS,
        &[
            ("findings", findings_list(results, &analysis)),
            ("operation_buttons", operation_buttons(results)),
            ("format_key", format_key(&analysis)),
            ("calls", calls(&analysis)),
            ("table", table::table(results, &analysis)),
        ],
    );
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
        eyebrow: eyebrow(results),
        answer: answer(results, &analysis),
        place: place(results),
        cards: cards(results, &analysis),
        doubts: doubts(results, &analysis),
        sections,
        method: method(results),
        facts: facts(results),
        version: &results.versions.thalweg,
        notice: "",
        data: script_json(&page_data(results, &analysis)),
        library: None,
        scripts: &[SCRIPT],
    }
    .html()
}

fn eyebrow(results: &CodecResults) -> String {
    let day = results.started.split('T').next().unwrap_or_default();
    let took = took(results).map(|took| format!(", took {took}")).unwrap_or_default();
    format!("Codec study · {day}{took}")
}

fn took(results: &CodecResults) -> Option<String> {
    let [started, ended] = [&results.started, &results.ended].map(|at| humantime::parse_rfc3339(at).ok());
    ended?.duration_since(started?).ok().map(span)
}

fn place(results: &CodecResults) -> String {
    let machine = &results.machine;
    let cores = if machine.cores == 1 { "core" } else { "cores" };
    format!(
        "{} codecs, {} kinds of message, on {} with {} {cores}, {}.",
        results.codecs.len(),
        results.data.len(),
        machine.cpu,
        machine.cores,
        machine.kernel
    )
}

/// A card for each message of the first few: the fastest round trip of each format.
fn cards(results: &CodecResults, analysis: &Analysis) -> String {
    const CARDS_MAX: usize = 4;
    let fastest = |data: &str, formats: &[Format]| analysis.fastest(data, Operation::RoundTrip, formats);
    let card = |data: &DataInfo| {
        let protobuf = fastest(&data.name, &[Format::Protobuf])?;
        let json = fastest(&data.name, &[Format::Json, Format::ProtoJson])?;
        Some(format!(
            r#"<div class="card"><h2>{}, there and back</h2><p class="figure">{}</p><p>with {} in {:.0} bytes; as JSON {} with {} in {:.0}</p></div>"#,
            escaped(&data.name),
            escaped(&bound(&time(protobuf.ns))),
            escaped(&protobuf.line.codec),
            protobuf.bytes,
            escaped(&bound(&time(json.ns))),
            escaped(&json.line.codec),
            json.bytes
        ))
    };
    concat(results.data.iter().filter_map(card).take(CARDS_MAX))
}

fn findings_list(results: &CodecResults, analysis: &Analysis) -> String {
    concat(findings(results, analysis).iter().map(|finding| {
        format!("<dt>{}</dt><dd><p>{}</p></dd>", escaped(finding.topic), escaped(&bound(&finding.text)))
    }))
}

fn operation_buttons(results: &CodecResults) -> String {
    concat(results.operations().into_iter().enumerate().map(|(index, operation)| {
        format!(
            r#"<button type="button" data-value="{}" aria-pressed="{}">{operation}</button>"#,
            key(&operation),
            index == 0
        )
    }))
}

fn format_key(analysis: &Analysis) -> String {
    let mut formats: Vec<Format> = analysis.lines.iter().map(|line| line.format).collect();
    formats.sort_unstable();
    formats.dedup();
    let entry =
        |format: Format| format!(r#"<li><i style="background:var(--{})"></i> {format}</li>"#, key(&format));
    let formats = concat(formats.into_iter().map(entry));
    format!("{formats}<li><span class=\"dynamic\">slanted</span> the type is known at run time only</li>")
}

/// The name that serde gives a variant.
fn key(variant: &impl Serialize) -> String {
    serde_json::to_value(variant).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Bars of a call and the conversions in it.
fn calls(analysis: &Analysis) -> String {
    let mut numbers: Vec<u32> = analysis.shares.iter().map(|share| share.in_flight).collect();
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.is_empty() {
        return r#"<p class="about">No call was measured beside the conversions.</p>"#.to_owned();
    }
    let group = |in_flight: u32| {
        let title = if in_flight == 1 {
            "A call by itself: its median time".to_owned()
        } else {
            format!("{in_flight} calls in flight: processor time of both sides, for a call")
        };
        let of_group: Vec<&Share> =
            analysis.shares.iter().filter(|share| share.in_flight == in_flight).collect();
        let mut data: Vec<&str> = of_group.iter().map(|share| share.data.as_str()).collect();
        data.dedup();
        let panel = |data: &str| {
            let shares: Vec<&&Share> = of_group.iter().filter(|share| share.data == data).collect();
            let most = shares.iter().map(|share| share.whole_ns()).fold(0.0, f64::max);
            let rows = concat(shares.iter().map(|share| call_row(share, most)));
            format!("<figure><figcaption><b>{}</b></figcaption>{rows}</figure>", escaped(data))
        };
        format!(
            r#"<h3>{}</h3><div class="bars">{}</div>"#,
            escaped(&title),
            concat(data.iter().map(|data| panel(data)))
        )
    };
    format!(
        r#"<p class="about">A call over a UNIX socket whose payload is as large as the message, measured in the same run with this stack’s client and server (grey), and beside it what the four conversions of a call that echoes the message take: the request is encoded and decoded, and so is the answer.</p><div class="calls">{}</div>"#,
        concat(numbers.into_iter().map(group))
    )
}

fn call_row(share: &Share, most: f64) -> String {
    let width = |ns: f64| format!("{:.2}%", 100.0 * ns / most);
    let whole = format!(
        "{}: {} of {}, in {} bytes",
        share.codec,
        time(share.conversions_ns),
        time(share.whole_ns()),
        share.bytes.round()
    );
    format!(
        r#"<div class="row" title="{}"><span>{}</span><span class="track"><i class="call" style="width:{}"></i><i class="part" style="width:{};background:var(--{})"></i></span><span>{}</span></div>"#,
        escaped(&whole),
        escaped(&share.codec),
        width(share.call_ns),
        width(share.conversions_ns),
        key(&share.format),
        escaped(&bound(&percent(share.share())))
    )
}

fn method(results: &CodecResults) -> String {
    let settings = &results.settings;
    let data = match settings.seed {
        Some(seed) => format!(
            "Messages are generated from a seed ({seed}): the same on every machine. Where there are several of a kind, \
             they are converted in turn."
        ),
        None => "Messages are the user’s own. Codecs that generate code for a type cannot know theirs: those that \
                 learn it at run time take part alone."
            .to_owned(),
    };
    let pinned =
        settings.cpu.map(|cpu| format!("One thread, kept on processor {cpu}, makes all conversions."));
    let sentences = [
        pinned,
        Some(data),
        Some(format!(
            "{WARM_UPS} conversions come before each window and are not counted. A window is then timed as a whole with \
             one monotonic clock; nothing is looked at within it."
        )),
        Some(format!(
            "Codecs take turns at each number of conversions, there and back, in {} rounds. A figure is the median of \
             the rounds at the largest number.",
            settings.rounds
        )),
        Some(
            "Everybody encodes into a buffer that is cleared and used again, and decodes from bytes in memory. What is \
             decoded is dropped within the time. Before anything is timed, each codec has read back what it wrote."
                .to_owned(),
        ),
        Some(
            "serde’s codecs convert plain structs, Protobuf’s the messages that they generate. JSON writes what is \
             absent as null."
                .to_owned(),
        ),
        Some(
            "Of each message and operation the first codec is measured a second time in the same turns: what the two \
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
    concat(
        sentences
            .into_iter()
            .chain(peers)
            .flatten()
            .map(|sentence| format!("<li>{}</li>", escaped(&bound(&sentence)))),
    )
}

fn facts(results: &CodecResults) -> String {
    let (machine, settings, versions) = (&results.machine, &results.settings, &results.versions);
    let codecs: Vec<String> =
        results.codecs.iter().map(|codec| format!("{} {}", codec.name, codec.version)).collect();
    let missing = |left_out: &LeftOut| left_out.what.clone();
    let left_out: Vec<String> = results.left_out.iter().map(missing).collect();
    let facts = [
        ("Command", format!("thalweg {}", settings.arguments.join(" "))),
        ("Started", results.started.clone()),
        ("Took", took(results).unwrap_or_default()),
        ("Windows", format!("{} of {}", results.measured(), results.planned)),
        ("Steps left out", format!("{}, for want of time", results.steps_left_out.len())),
        ("Left out", if left_out.is_empty() { "nothing".to_owned() } else { left_out.join(", ") }),
        ("Codecs", codecs.join(", ")),
        ("Processor", machine.cpu.clone()),
        ("Cores", machine.cores.to_string()),
        ("Kernel", machine.kernel.clone()),
        ("thalweg", format!("{} ({} build)", versions.thalweg, versions.build)),
        ("Schema", results.schema.clone()),
    ];
    facts.map(|(name, value)| format!("<dt>{name}</dt><dd>{}</dd>", escaped(&value))).concat()
}

/// What the script draws.
#[derive(Serialize)]
struct PageData<'a> {
    operations: Vec<Operation>,
    data: &'a [DataInfo],
    codecs: Vec<PageCodec<'a>>,
    lines: Vec<PageLine<'a>>,
    sizes: Vec<PageSize<'a>>,
}

#[derive(Serialize)]
struct PageCodec<'a> {
    name: &'a str,
    format: Format,
    dynamic: bool,
    dash: &'static str,
}

#[derive(Serialize)]
struct PageLine<'a> {
    data: &'a str,
    codec: &'a str,
    operation: Operation,
    ns: f64,
    bytes: f64,
    allocations: Option<f64>,
    instructions: Option<f64>,
    steps: Vec<(u64, f64)>,
}

#[derive(Serialize)]
struct PageSize<'a> {
    data: &'a str,
    codec: &'a str,
    raw: f64,
    gzip: f64,
    zstd: f64,
}

fn page_data<'a>(results: &'a CodecResults, analysis: &'a Analysis) -> PageData<'a> {
    let known: Vec<_> =
        results.codecs.iter().chain(results.peers.iter().flat_map(|peer| &peer.codecs)).collect();
    let codec = |index: usize| {
        let codec = known[index];
        let before = known[..index].iter().filter(|other| other.format == codec.format).count();
        PageCodec {
            name: &codec.name,
            format: codec.format,
            dynamic: codec.dynamic,
            dash: DASHES[before % DASHES.len()],
        }
    };
    let line = |it: &'a LineFigures| PageLine {
        data: &it.line.data,
        codec: &it.line.codec,
        operation: it.line.operation,
        ns: short(it.ns),
        bytes: short(it.bytes),
        allocations: it.allocations.map(|it| short(it.blocks)),
        instructions: it.instructions.map(short),
        steps: it.steps.iter().map(|step| (step.conversions, short(step.ns))).collect(),
    };
    let size = |it: &'a crate::codec::results::Size| PageSize {
        data: &it.data,
        codec: &it.codec,
        raw: short(it.raw),
        gzip: short(it.gzip),
        zstd: short(it.zstd),
    };
    PageData {
        operations: results.operations(),
        data: &results.data,
        codecs: (0..known.len()).map(codec).collect(),
        lines: analysis.lines.iter().map(line).collect(),
        sizes: results.sizes.iter().map(size).collect(),
    }
}
