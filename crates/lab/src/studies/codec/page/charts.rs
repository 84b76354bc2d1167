//! Charts of a codec study.

use std::collections::BTreeSet;

use thalweg_measure::figures::{percent, throughput, time};
use thalweg_measure::page::bars::{BarPart, BarRow, Bars};
use thalweg_measure::page::chart::{Chart, LineStyle, Series, Unit, XAxis, YAxis};
use thalweg_measure::page::section::{Block, Choice, When, when};

use crate::studies::codec::analyse::{CallShare, CodecFigures, LineFigures};
use crate::studies::codec::line::{Decodes, Format, Operation};
use crate::studies::codec::results::CodecResults;
use crate::studies::codec::tables::{DataInfo, MessageSize};

/// A selectable figure: its name, text, value and format.
type Figure = (&'static str, &'static str, fn(&LineFigures) -> Option<f64>, fn(f64) -> String);

const FIGURES: [Figure; 4] = [
    ("ns", "time", |line| Some(line.ns), time),
    ("rate", "bytes per second", |line| Some(line.bytes_per_s()), throughput),
    ("allocations", "allocations", |line| Some(line.allocations?.blocks), plain),
    ("instructions", "instructions", |line| line.instructions, plain),
];
/// Dash patterns that distinguish lines of one format.
const DASHES: [&[u8]; 5] = [&[], &[6, 3], &[2, 3], &[8, 3, 2, 3], &[1, 4]];
/// A message size: its name, colour and value.
type SizeOf = (&'static str, &'static str, fn(&MessageSize) -> f64);

const SIZES: [SizeOf; 3] =
    [("raw", "ours", |it| it.raw), ("gzip", "peer-2", |it| it.gzip), ("zstd", "peer-5", |it| it.zstd)];

/// Returns the colour of a format.
fn colour(format: Format) -> &'static str {
    match format {
        Format::Protobuf => "ours",
        Format::Json => "peer-1",
        Format::ProtoJson => "peer-3",
        Format::MessagePack => "peer-2",
    }
}

fn plain(value: f64) -> String {
    if value < 100.0 && value.fract() != 0.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// Returns charts of the cost of a conversion, by operation and figure.
pub(super) fn costs(results: &CodecResults, analysis: &CodecFigures) -> Vec<Block> {
    let operations = results.operations();
    let formats: BTreeSet<Format> = analysis.lines.iter().map(|line| line.format).collect();
    let named = operations.iter().map(|operation| (operation.to_string(), operation.to_string()));
    let mut blocks = vec![
        Block::Choices(vec![
            Choice::buttons("operation", "Operation", named),
            Choice::buttons("figure", "Figure shown", FIGURES.map(|(name, text, ..)| (name, text))),
        ]),
        Block::Key(formats.iter().map(|format| (colour(*format).to_owned(), format.to_string())).collect()),
        Block::about(
            "Slanted: the type is known at run time only. **&**: borrowed; strings stay in the bytes, and each field \
             is read within the time.",
        ),
    ];
    let mut panels = Vec::new();
    for &operation in &operations {
        for figure in &FIGURES {
            let of_figure =
                results.data.iter().filter_map(|data| cost_panel(analysis, data, operation, figure));
            let of_figure: Vec<Bars> = of_figure.collect();
            if of_figure.is_empty() {
                let missing = "Not counted; see above, or the method.".to_owned();
                blocks.push(Block::When(shown(operation, figure), vec![Block::About(missing)]));
            }
            panels.extend(of_figure);
        }
    }
    blocks.push(Block::Bars(panels));
    blocks
}

fn shown(operation: Operation, figure: &Figure) -> When {
    When::from([("operation", vec![operation.to_string()]), ("figure", vec![figure.0.to_owned()])])
}

/// Returns a panel of one message's codecs, in ascending order of the figure.
fn cost_panel(
    analysis: &CodecFigures,
    data: &DataInfo,
    operation: Operation,
    figure: &Figure,
) -> Option<Bars> {
    let (.., of, show) = figure;
    let lines =
        analysis.lines.iter().filter(|it| it.line.data == data.name && it.line.operation == operation);
    let mut known: Vec<(&LineFigures, f64)> = lines.filter_map(|line| Some((line, of(line)?))).collect();
    known.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let row = |(line, value): &(&LineFigures, f64)| BarRow {
        name: format!(
            "{}{}",
            if line.decodes == Some(Decodes::Borrowed) { "&" } else { "" },
            line.line.codec
        ),
        class: if line.dynamic { "slanted" } else { "" },
        bars: vec![vec![part(*value, colour(line.format))]],
        shown: show(*value),
        ..BarRow::default()
    };
    (!known.is_empty()).then(|| Bars {
        title: data.name.clone(),
        about: data.about.clone(),
        when: shown(operation, figure),
        rows: known.iter().map(row).collect(),
    })
}

fn part(value: f64, colour: &str) -> BarPart {
    BarPart { value, colour: colour.to_owned(), title: String::new() }
}

/// Returns a chart of message sizes, raw and compressed.
pub(super) fn bytes(results: &CodecResults) -> Vec<Block> {
    let panel = |data: &DataInfo| {
        let mut sizes: Vec<&MessageSize> =
            results.sizes.iter().filter(|size| size.data == data.name).collect();
        sizes.sort_by(|a, b| a.raw.total_cmp(&b.raw));
        let row = |size: &&MessageSize| {
            let words = SIZES.map(|(name, _, of)| format!("{name} {}", plain(of(size))));
            BarRow {
                name: size.codec.clone(),
                class: if is_dynamic(results, &size.codec) { "slanted" } else { "" },
                bars: SIZES.iter().map(|(_, colour, of)| vec![part(of(size), colour)]).collect(),
                shown: format!("{} B", plain(size.raw)),
                title: format!("{}: {}", size.codec, words.join(", ")),
                ..BarRow::default()
            }
        };
        let rows = sizes.iter().map(row).collect();
        (!sizes.is_empty()).then(|| Bars {
            title: data.name.clone(),
            about: data.about.clone(),
            when: When::new(),
            rows,
        })
    };
    vec![
        Block::Key(SIZES.map(|(name, colour, _)| (colour.to_owned(), name.to_owned())).to_vec()),
        Block::Bars(results.data.iter().filter_map(panel).collect()),
        Block::hint(
            "As written by the codec, and with each message compressed individually; averages over the messages of a \
             kind.",
        ),
    ]
}

fn is_dynamic(results: &CodecResults, name: &str) -> bool {
    results.codec(name).is_some_and(|codec| codec.dynamic)
}

/// Returns a chart of time per conversion over the number of conversions.
pub(super) fn steps(results: &CodecResults, analysis: &CodecFigures) -> Vec<Block> {
    let measured = |name: &str| analysis.lines.iter().any(|it| it.line.codec == name && !it.steps.is_empty());
    let mut before = [0; 4];
    let codecs = results.codecs.iter().filter(|codec| measured(&codec.name));
    let styles: Vec<LineStyle> = codecs
        .map(|codec| {
            let count = &mut before[codec.format as usize];
            *count += 1;
            let dash = DASHES[(*count - 1) % DASHES.len()];
            LineStyle { dash, width: 2.0, ..LineStyle::new(&codec.name, colour(codec.format)) }
        })
        .collect();
    let charts = results.data.iter().filter_map(|data| steps_chart(analysis, &data.name, &styles));
    vec![
        Block::Legend(styles.clone()),
        Block::Multiples(charts.collect()),
        Block::hint(
            "Time per conversion over the number of conversions that were timed together, both logarithmic, for the \
             operation chosen above. Fifty conversions come before each window and are not counted. Ten conversions of \
             a small message take less than a microsecond, of which reading the clock is a part.",
        ),
    ]
}

fn steps_chart(analysis: &CodecFigures, data: &str, styles: &[LineStyle]) -> Option<Chart> {
    let lines: Vec<&LineFigures> = analysis.lines.iter().filter(|it| it.line.data == data).collect();
    let counts: BTreeSet<u64> =
        lines.iter().flat_map(|it| it.steps.iter().map(|step| step.conversions)).collect();
    let counts: Vec<u64> = counts.into_iter().collect();
    let series = |line: &&LineFigures| {
        let style = styles.iter().position(|style| style.key == line.line.codec)?;
        let at = |&count: &u64| Some(line.steps.iter().find(|step| step.conversions == count)?.ns);
        let series =
            Series::new(style, when("operation", [line.line.operation.to_string()]), counts.iter().map(at));
        (!series.is_empty()).then_some(series)
    };
    let labels = counts.iter().map(|&count| power_of_ten(count)).collect();
    let x = XAxis { labels, ..XAxis::log(&counts, |count| format!("{count} conversions")) };
    (!counts.is_empty()).then(|| Chart {
        id: format!("steps {data}"),
        title: data.to_owned(),
        x,
        y: YAxis { unit: Unit::Time, log: true, ..YAxis::default() },
        styles: styles.to_vec(),
        series: lines.iter().filter_map(series).collect(),
        ..Chart::default()
    })
}

/// Formats a power of ten as `10⁴`, and other numbers plainly.
fn power_of_ten(number: u64) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    match number.checked_ilog10() {
        Some(power) if number == 10_u64.pow(power) && power < 10 => format!("10{}", DIGITS[power as usize]),
        _ => number.to_string(),
    }
}

/// Returns a chart of calls and their conversions, with panels for each message and number of calls in flight.
pub(super) fn calls(analysis: &CodecFigures) -> Vec<Block> {
    let numbers: BTreeSet<u32> = analysis.shares.iter().map(|share| share.in_flight).collect();
    if numbers.is_empty() {
        return vec![Block::about("No calls were measured in addition to the conversions.")];
    }
    let mut blocks = vec![Block::about(
        "A call over a UNIX socket with a payload as large as the message, measured in the same run with this stack’s \
         client and server (grey), next to the time of the four conversions of a call that echoes the message: \
         request and response are each encoded and decoded.",
    )];
    for number in numbers {
        blocks.push(Block::Heading(match number {
            1 => "A lone call: its median time".to_owned(),
            _ => format!("{number} calls in flight: processor time of both sides, for a call"),
        }));
        let shares: Vec<&CallShare> =
            analysis.shares.iter().filter(|share| share.in_flight == number).collect();
        let panel = |shares: &[&CallShare]| Bars {
            title: shares[0].data.clone(),
            rows: shares.iter().map(|share| call_row(share)).collect(),
            ..Bars::default()
        };
        blocks.push(Block::Bars(shares.chunk_by(|a, b| a.data == b.data).map(panel).collect()));
    }
    blocks
}

fn call_row(share: &CallShare) -> BarRow {
    let whole = format!(
        "{}: {} of {}, in {} bytes",
        share.codec,
        time(share.conversions_ns),
        time(share.whole_ns()),
        share.bytes.round()
    );
    BarRow {
        name: share.codec.clone(),
        bars: vec![vec![part(share.call_ns, "socket"), part(share.conversions_ns, colour(share.format))]],
        shown: percent(share.share()),
        title: whole,
        ..BarRow::default()
    }
}
