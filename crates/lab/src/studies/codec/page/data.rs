//! What the page’s script draws.

use maud::Markup;
use serde::Serialize;
use thalweg_measure::figures::short;
use thalweg_measure::page::parts::script_json;

use crate::studies::codec::analyse::{Analysis, LineFigures};
use crate::studies::codec::line::{Decodes, Format, Operation};
use crate::studies::codec::results::CodecResults;
use crate::studies::codec::tables::{DataInfo, Size};

/// How lines of one format are told apart: the first is whole.
const DASHES: [&str; 5] = ["", "6 3", "2 3", "8 3 2 3", "1 4"];

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
    borrowed: bool,
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

pub(super) fn json(results: &CodecResults, analysis: &Analysis) -> Markup {
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
    script_json(&PageData {
        operations: results.operations(),
        data: &results.data,
        codecs: (0..known.len()).map(codec).collect(),
        lines: analysis.lines.iter().map(line).collect(),
        sizes: results.sizes.iter().map(size).collect(),
    })
}

fn line(it: &LineFigures) -> PageLine<'_> {
    PageLine {
        data: &it.line.data,
        codec: &it.line.codec,
        operation: it.line.operation,
        borrowed: it.decodes == Some(Decodes::Borrowed),
        ns: short(it.ns),
        bytes: short(it.bytes),
        allocations: it.allocations.map(|it| short(it.blocks)),
        instructions: it.instructions.map(short),
        steps: it.steps.iter().map(|step| (step.conversions, short(step.ns))).collect(),
    }
}

fn size(it: &Size) -> PageSize<'_> {
    PageSize {
        data: &it.data,
        codec: &it.codec,
        raw: short(it.raw),
        gzip: short(it.gzip),
        zstd: short(it.zstd),
    }
}

/// The name that serde gives a variant.
pub(super) fn key(variant: &impl Serialize) -> String {
    serde_json::to_value(variant).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
