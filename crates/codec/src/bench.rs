//! The bench that the study is given: messages, codecs, and one thread.

use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, io};

use thalweg_lab::codec::conduct::lines;
use thalweg_lab::codec::results::{Allocations, CodecInfo, DataInfo, Size};
use thalweg_lab::codec::{Bench, Format, Line, Operation, WARM_UPS};

use crate::allocations;
use crate::converter::{Convert, NotConverted};
use crate::own::OwnData;
use crate::shapes::{shapes, type_of};
use crate::sizes::size;

/// Conversions whose allocations are counted: each message of a kind at least once.
const COUNTED: u64 = 64;

/// A codec at a kind of message.
pub(crate) struct Entry {
    pub(crate) codec: &'static str,
    pub(crate) converter: Box<dyn Convert>,
}

struct Kind {
    info: DataInfo,
    entries: Vec<Entry>,
}

/// Messages, and every codec that can convert them.
pub struct Codecs {
    kinds: Vec<Kind>,
}

/// What there is to know of the codecs, in the order of the tables: name, crate, format, type known at run time only,
/// and how it is used. The first of a format stands for it.
const KNOWN: &[(&str, &str, Format, bool, &str)] = &[
    ("prost", "prost", Format::Protobuf, false, "generated structs"),
    ("buffa", "buffa", Format::Protobuf, false, "generated structs"),
    ("buffa-view", "buffa", Format::Protobuf, false, "generated structs out, views that borrow in"),
    ("thalweg", "thalweg-protobuf", Format::Protobuf, true, "dynamic messages, views that borrow in"),
    ("prost-reflect", "prost-reflect", Format::Protobuf, true, "dynamic messages"),
    ("serde_json", "serde_json", Format::Json, false, "plain structs"),
    ("sonic-rs", "sonic-rs", Format::Json, false, "plain structs"),
    ("serde_json-value", "serde_json", Format::Json, true, "serde_json::Value"),
    ("pbjson", "pbjson", Format::ProtoJson, false, "prost's structs through serde_json"),
    ("prost-reflect-json", "prost-reflect", Format::ProtoJson, true, "dynamic messages through serde_json"),
    ("thalweg-json", "thalweg-protobuf", Format::ProtoJson, true, "dynamic messages, by way of Protobuf"),
    ("rmp-serde", "rmp-serde", Format::MessagePack, false, "plain structs, as maps with names"),
    ("rmp-serde-value", "rmp-serde", Format::MessagePack, true, "serde_json::Value, as maps with names"),
    (
        "thalweg-msgpack",
        "thalweg-protobuf",
        Format::MessagePack,
        true,
        "dynamic messages, by way of Protobuf",
    ),
];

impl Codecs {
    /// The messages of `proto/shapes.proto`, made from a seed.
    pub fn generated(seed: u64) -> Result<Self, NotConverted> {
        let kind = |shape: crate::shapes::Shape| Kind {
            info: DataInfo {
                name: shape.name.to_owned(),
                about: shape.about.to_owned(),
                messages: shape.messages,
            },
            entries: shape.entries,
        };
        Ok(Self { kinds: shapes(seed)?.into_iter().map(kind).collect() })
    }

    /// The user's own messages. Codecs that generate code for a type do not take part.
    pub fn own(data: OwnData) -> Result<Self, NotConverted> {
        let messages = data.messages();
        let info = DataInfo {
            name: data.name().to_owned(),
            about: format!("{messages} of the user’s own"),
            messages,
        };
        Ok(Self { kinds: vec![Kind { info, entries: data.entries()? }] })
    }

    /// Keeps these kinds of message.
    pub fn retain_data(&mut self, keep: impl Fn(&str) -> bool) {
        self.kinds.retain(|kind| keep(&kind.info.name));
    }

    /// Keeps these codecs.
    pub fn retain_codecs(&mut self, keep: impl Fn(&str) -> bool) {
        for kind in &mut self.kinds {
            kind.entries.retain(|entry| keep(entry.codec));
        }
    }

    /// Kinds of message.
    pub fn data(&self) -> Vec<DataInfo> {
        self.kinds.iter().map(|kind| kind.info.clone()).collect()
    }

    /// The codecs that take part.
    pub fn codecs(&self) -> Vec<CodecInfo> {
        let takes_part =
            |name: &str| self.kinds.iter().any(|kind| kind.entries.iter().any(|entry| entry.codec == name));
        let info = |&(name, package, format, dynamic, about): &(&str, &str, Format, bool, &str)| CodecInfo {
            name: name.to_owned(),
            version: version(package),
            format,
            dynamic,
            about: about.to_owned(),
        };
        KNOWN.iter().filter(|codec| takes_part(codec.0)).map(info).collect()
    }

    /// How large each codec makes each message.
    pub fn sizes(&self) -> Vec<Size> {
        let of = |kind: &Kind| {
            let size = |entry: &Entry| size(&kind.info.name, entry.codec, entry.converter.wires());
            kind.entries.iter().map(size).collect::<Vec<_>>()
        };
        self.kinds.iter().flat_map(of).collect()
    }

    /// Every codec at every message, for each operation, those that take turns beside each other.
    pub fn lines(&self) -> Vec<Line> {
        let of = |kind: &Kind| {
            let pair = |entry: &Entry| (kind.info.name.as_str(), entry.codec);
            let pairs: Vec<(&str, &str)> = kind.entries.iter().map(pair).collect();
            lines(&pairs, &Operation::ALL)
        };
        self.kinds.iter().flat_map(of).collect()
    }

    /// Writes the messages for programs that are not this one: `NAME.pb`, each message with its length before it as a
    /// varint, `NAME.jsonl`, a line for each, and `messages.txt`, a line with each name and its type.
    pub fn write_messages(&self, folder: &Path) -> io::Result<()> {
        let mut index = String::new();
        for kind in &self.kinds {
            let Some(type_name) = type_of(&kind.info.name) else { continue };
            let wires = |codec: &str| {
                let entry = kind.entries.iter().find(|entry| entry.codec == codec);
                entry.map_or(&[][..], |entry| entry.converter.wires())
            };
            let mut binary = Vec::new();
            for wire in wires("prost") {
                prost::encoding::encode_varint(wire.len() as u64, &mut binary);
                binary.extend_from_slice(wire);
            }
            let mut lines = wires("serde_json").join(&b'\n');
            lines.push(b'\n');
            fs::write(folder.join(format!("{}.pb", kind.info.name)), binary)?;
            fs::write(folder.join(format!("{}.jsonl", kind.info.name)), lines)?;
            let _ = writeln!(index, "{} {type_name}", kind.info.name);
        }
        fs::write(folder.join("messages.txt"), index)
    }

    /// Of the line's messages as its codec writes them.
    pub(crate) fn mean_bytes(&self, line: &Line) -> f64 {
        let kind = self.kinds.iter().find(|kind| kind.info.name == line.data);
        let entry = kind.and_then(|kind| kind.entries.iter().find(|entry| entry.codec == line.codec));
        let wires = entry.map_or(&[][..], |entry| entry.converter.wires());
        wires.iter().map(Vec::len).sum::<usize>() as f64 / wires.len().max(1) as f64
    }

    /// Converts, untimed.
    pub(crate) fn run(&mut self, line: &Line, conversions: u64) -> Result<(), String> {
        let kinds = self.kinds.iter_mut().filter(|kind| kind.info.name == line.data);
        let entry = kinds.flat_map(|kind| &mut kind.entries).find(|entry| entry.codec == line.codec);
        let entry = entry.ok_or_else(|| format!("there is no {line}"))?;
        entry.converter.convert(line.operation, conversions).map_err(|error| error.to_string())
    }
}

impl Bench for Codecs {
    fn convert(&mut self, line: &Line, conversions: u64) -> Result<Duration, String> {
        self.run(line, WARM_UPS)?;
        let started = Instant::now();
        self.run(line, conversions)?;
        Ok(started.elapsed())
    }

    fn allocations(&mut self, line: &Line) -> Result<Allocations, String> {
        self.run(line, COUNTED)?;
        let before = allocations::of_this_thread();
        self.run(line, COUNTED)?;
        let since = allocations::of_this_thread() - before;
        let mean = |count: u64| count as f64 / COUNTED as f64;
        Ok(Allocations { blocks: mean(since.blocks), bytes: mean(since.bytes) })
    }
}

/// As the lock file has it, `unknown` where there was none when this crate was built.
fn version(package: &str) -> String {
    let versions = env!("CODEC_VERSIONS").split(' ').filter_map(|entry| entry.split_once('='));
    versions
        .into_iter()
        .find(|(name, _)| *name == package)
        .map_or("unknown", |(_, version)| version)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: allocations::Counting = allocations::Counting;

    #[test]
    fn every_line_converts_and_every_codec_has_a_version() {
        let mut codecs = Codecs::generated(1).unwrap();
        let lines = codecs.lines();
        assert_eq!(lines.len(), 7 * 11 * 3);
        for line in &lines {
            codecs.convert(line, 3).unwrap();
        }
        assert!(codecs.codecs().iter().all(|codec| codec.version.starts_with(|c: char| c.is_ascii_digit())));
        let nobody = Line { codec: "nobody".to_owned(), ..lines[0].clone() };
        assert!(codecs.convert(&nobody, 1).is_err());
    }

    #[test]
    fn allocations_are_those_of_a_conversion() {
        let mut codecs = Codecs::generated(1).unwrap();
        let mut blocks = |codec: &str, operation| {
            let line = Line { data: "person-sparse".to_owned(), codec: codec.to_owned(), operation };
            codecs.allocations(&line).unwrap().blocks
        };
        let check =
            |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
        // The buffer is there already; an owned message has its name in a block of its own, a view has none.
        check(blocks("prost", Operation::Encode), 0.0);
        check(blocks("prost", Operation::Decode), 1.0);
        check(blocks("buffa-view", Operation::Decode), 0.0);
        check(blocks("serde_json", Operation::RoundTrip), 1.0);
    }

    #[test]
    fn what_is_not_wanted_is_not_there() {
        let mut codecs = Codecs::generated(1).unwrap();
        codecs.retain_data(|name| name == "order");
        codecs.retain_codecs(|name| name == "prost" || name == "serde_json");
        assert_eq!(codecs.lines().len(), 2 * 3);
        let names: Vec<String> = codecs.codecs().into_iter().map(|codec| codec.name).collect();
        assert_eq!(names, ["prost", "serde_json"]);
    }
}
