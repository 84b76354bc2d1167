//! The study's bench: messages and codecs, on one thread.

use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, io};

use thalweg_messages::own::OwnError;
use thalweg_messages::{Kind as MessageKind, OwnMessages};

use crate::allocations;
use crate::contract::{Allocations, CodecInfo, DataInfo, Format, From, Line, Operation, Selection, Size};
use crate::converter::{ConversionError, Entry};
use crate::own;
use crate::shapes::{Shape, shapes};
use crate::sizes::size;

/// Conversions whose allocations are counted: at least one per message of a kind.
const COUNTED_CONVERSIONS: u64 = 64;

/// Error of a selection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SelectError {
    /// The user's own data is invalid.
    #[error(transparent)]
    Own(#[from] OwnError),
    /// An unknown name.
    #[error("unknown {what} `{unknown}`; use one of {known}")]
    Unknown {
        /// A message or a codec.
        what: &'static str,
        /// Its name.
        unknown: String,
        /// Known names.
        known: String,
    },
    /// A codec cannot convert the messages.
    #[error(transparent)]
    ConversionError(#[from] ConversionError),
}

struct Kind {
    info: DataInfo,
    entries: Vec<Entry>,
}

/// Messages, and every codec that can convert them.
pub(crate) struct Codecs {
    kinds: Vec<Kind>,
}

/// Known codecs, in table order: name, crate, format, whether types are only known at run time, and usage. The first
/// one of a format is its reference.
const KNOWN_CODECS: &[(&str, &str, Format, bool, &str)] = &[
    ("prost", "prost", Format::Protobuf, false, "generated structs"),
    ("buffa", "buffa", Format::Protobuf, false, "generated structs"),
    ("buffa-view", "buffa", Format::Protobuf, false, "generated structs out, generated views in"),
    ("thalweg", "thalweg-protobuf", Format::Protobuf, true, "dynamic messages, decoded into reused memory"),
    ("prost-reflect", "prost-reflect", Format::Protobuf, true, "dynamic messages"),
    ("serde_json", "serde_json", Format::Json, false, "plain structs"),
    ("sonic-rs", "sonic-rs", Format::Json, false, SONIC_RS),
    ("serde_json-value", "serde_json", Format::Json, true, "serde_json::Value"),
    ("pbjson", "pbjson", Format::ProtoJson, false, "prost's structs through serde_json"),
    ("prost-reflect-json", "prost-reflect", Format::ProtoJson, true, "dynamic messages through serde_json"),
    ("thalweg-json", "thalweg-protobuf", Format::ProtoJson, true, "dynamic messages, through Protobuf"),
    ("rmp-serde", "rmp-serde", Format::MessagePack, false, "plain structs, as maps with names"),
    ("rmp-serde-value", "rmp-serde", Format::MessagePack, true, "serde_json::Value, as maps with names"),
    ("thalweg-msgpack", "thalweg-protobuf", Format::MessagePack, true, "dynamic messages, through Protobuf"),
];

/// Usage of sonic-rs. It selects vector instructions at compile time, and its README recommends all that the CPU
/// supports.
const SONIC_RS: &str = {
    let has_avx2 = cfg!(all(target_feature = "avx2", target_feature = "pclmulqdq"));
    if has_avx2 || !cfg!(target_arch = "x86_64") {
        "plain structs"
    } else {
        "plain structs; built without the `-C target-cpu=native` that its README asks for"
    }
};

impl Codecs {
    /// Creates the requested messages and codecs.
    pub(crate) fn select(selection: &Selection) -> Result<Self, SelectError> {
        let mut codecs = match &selection.from {
            From::Seed(seed) => Self::generated(*seed)?,
            From::Own { proto, type_name, data } => Self::own(&OwnMessages::read(proto, type_name, data)?)?,
        };
        let data: Vec<String> = codecs.data().into_iter().map(|data| data.name).collect();
        let names: Vec<String> = codecs.codecs().into_iter().map(|codec| codec.name).collect();
        if let Some(wanted) = &selection.messages {
            check_names("message", wanted, &data)?;
            codecs.kinds.retain(|kind| wanted.contains(&kind.info.name));
        }
        if let Some(wanted) = &selection.codecs {
            check_names("codec", wanted, &names)?;
            for kind in &mut codecs.kinds {
                kind.entries.retain(|entry| wanted.iter().any(|name| name == entry.codec));
            }
        }
        Ok(codecs)
    }

    /// Generates the messages of `shapes.proto` from a seed.
    fn generated(seed: u64) -> Result<Self, ConversionError> {
        let kind = |shape: Shape| Kind {
            info: DataInfo {
                name: shape.name.to_owned(),
                about: shape.about.to_owned(),
                messages: shape.messages,
            },
            entries: shape.entries,
        };
        Ok(Self { kinds: shapes(seed)?.into_iter().map(kind).collect() })
    }

    /// Uses the user's own messages, without codecs that need generated code.
    fn own(data: &OwnMessages) -> Result<Self, ConversionError> {
        let messages = data.wires.len();
        let info = DataInfo {
            name: data.type_name.clone(),
            about: format!("{messages} of the user’s own"),
            messages,
        };
        Ok(Self { kinds: vec![Kind { info, entries: own::entries(data)? }] })
    }

    /// Returns the kinds of message.
    pub(crate) fn data(&self) -> Vec<DataInfo> {
        self.kinds.iter().map(|kind| kind.info.clone()).collect()
    }

    /// Returns the codecs in use.
    pub(crate) fn codecs(&self) -> Vec<CodecInfo> {
        let entries = self.kinds.iter().flat_map(|kind| &kind.entries);
        let info = |&(name, package, format, dynamic, about): &(&str, &str, Format, bool, &str)| {
            let entry = entries.clone().find(|entry| entry.codec == name)?;
            Some(CodecInfo {
                name: name.to_owned(),
                version: version(package),
                format,
                dynamic,
                decodes: entry.converter.decodes(),
                about: about.to_owned(),
            })
        };
        KNOWN_CODECS.iter().filter_map(info).collect()
    }

    /// Returns the message sizes of each codec.
    pub(crate) fn sizes(&self) -> Vec<Size> {
        let of = |kind: &Kind| {
            let size = |entry: &Entry| size(&kind.info.name, entry.codec, entry.converter.wires());
            kind.entries.iter().map(size).collect::<Vec<_>>()
        };
        self.kinds.iter().flat_map(of).collect()
    }

    /// Returns every combination of kind, operation and codec. Codecs of the same kind and operation are adjacent.
    pub(crate) fn lines(&self) -> Vec<Line> {
        let of = |kind: &Kind| Operation::ALL.map(|operation| kind.lines(operation)).concat();
        self.kinds.iter().flat_map(of).collect()
    }

    /// Writes the messages for other programs, and returns the number of kinds. `NAME.pb` contains each message
    /// preceded by its length as a varint, `NAME.jsonl` one message per line, and `messages.txt` a line with each name
    /// and type.
    pub(crate) fn write_messages(&self, folder: &Path) -> io::Result<usize> {
        let mut index = String::new();
        for kind in &self.kinds {
            let Ok(known) = kind.info.name.parse::<MessageKind>() else { continue };
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
            let _ = writeln!(index, "{} {}", kind.info.name, known.type_name());
        }
        fs::write(folder.join("messages.txt"), &index)?;
        Ok(index.lines().count())
    }

    /// Returns the mean size of the line's messages in its codec's format.
    pub(crate) fn mean_bytes(&self, line: &Line) -> f64 {
        let kind = self.kinds.iter().find(|kind| kind.info.name == line.data);
        let entry = kind.and_then(|kind| kind.entries.iter().find(|entry| entry.codec == line.codec));
        let wires = entry.map_or(&[][..], |entry| entry.converter.wires());
        wires.iter().map(Vec::len).sum::<usize>() as f64 / wires.len().max(1) as f64
    }

    /// Converts without timing.
    pub(crate) fn run(&mut self, line: &Line, conversions: u64) -> Result<(), String> {
        let kinds = self.kinds.iter_mut().filter(|kind| kind.info.name == line.data);
        let entry = kinds.flat_map(|kind| &mut kind.entries).find(|entry| entry.codec == line.codec);
        let entry = entry.ok_or_else(|| format!("unknown line {line}"))?;
        entry.converter.convert(line.operation, conversions).map_err(|error| error.to_string())
    }

    /// Returns the time of the conversions, after untimed warm-ups.
    pub(crate) fn convert(
        &mut self,
        line: &Line,
        warm_ups: u64,
        conversions: u64,
    ) -> Result<Duration, String> {
        self.run(line, warm_ups)?;
        let started = Instant::now();
        self.run(line, conversions)?;
        Ok(started.elapsed())
    }

    /// Returns the mean allocations per conversion.
    pub(crate) fn allocations(&mut self, line: &Line) -> Result<Allocations, String> {
        self.run(line, COUNTED_CONVERSIONS)?;
        let before = allocations::of_this_thread();
        self.run(line, COUNTED_CONVERSIONS)?;
        let since = allocations::of_this_thread() - before;
        let mean = |count: u64| count as f64 / COUNTED_CONVERSIONS as f64;
        Ok(Allocations { blocks: mean(since.blocks), bytes: mean(since.bytes) })
    }
}

impl Kind {
    /// Returns a line for each codec with this operation.
    fn lines(&self, operation: Operation) -> Vec<Line> {
        let line =
            |entry: &Entry| Line { data: self.info.name.clone(), codec: entry.codec.to_owned(), operation };
        self.entries.iter().map(line).collect()
    }
}

fn check_names(what: &'static str, wanted: &[String], known: &[String]) -> Result<(), SelectError> {
    match wanted.iter().find(|name| !known.contains(name)) {
        None => Ok(()),
        Some(unknown) => {
            Err(SelectError::Unknown { what, unknown: unknown.clone(), known: known.join(", ") })
        }
    }
}

/// Returns the version in the lock file, or `unknown` if there was none at build time.
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
    use crate::contract::Decodes;

    #[test]
    fn all_lines_convert_and_all_codecs_have_versions() {
        let mut codecs = Codecs::generated(1).unwrap();
        let lines = codecs.lines();
        assert_eq!(lines.len(), 7 * 11 * 3);
        for line in &lines {
            codecs.convert(line, 50, 3).unwrap();
        }
        assert!(codecs.codecs().iter().all(|codec| codec.version.starts_with(|c: char| c.is_ascii_digit())));
        let unknown = Line { codec: "nobody".to_owned(), ..lines[0].clone() };
        assert_eq!(
            codecs.convert(&unknown, 50, 1),
            Err("unknown line nobody, encode of person-full".to_owned())
        );
    }

    #[test]
    fn borrowing_decoders_are_marked() {
        let codecs = Codecs::generated(1).unwrap().codecs();
        let borrowed = codecs.iter().filter(|codec| codec.decodes == Decodes::Borrowed);
        let names: Vec<&str> = borrowed.map(|codec| codec.name.as_str()).collect();
        assert_eq!(names, ["buffa-view", "thalweg", "thalweg-json", "thalweg-msgpack"]);
    }

    #[test]
    fn codecs_of_one_kind_and_operation_are_adjacent() {
        let lines = Codecs::generated(1).unwrap().lines();
        for turns in lines.chunks(11) {
            let of = |line: &Line| (line.data.clone(), line.operation);
            assert!(turns.iter().all(|line| of(line) == of(&turns[0])), "{turns:?}");
            assert_eq!((turns[0].codec.as_str(), turns[10].codec.as_str()), ("prost", "thalweg-msgpack"));
        }
    }

    #[test]
    fn allocations_are_counted_per_conversion() {
        let mut codecs = Codecs::generated(1).unwrap();
        let mut blocks = |codec: &str, operation| {
            let line = Line { data: "person-sparse".to_owned(), codec: codec.to_owned(), operation };
            codecs.allocations(&line).unwrap().blocks
        };
        let check =
            |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
        // The buffer already exists. An owned message allocates its name, a view allocates nothing.
        check(blocks("prost", Operation::Encode), 0.0);
        check(blocks("prost", Operation::Decode), 1.0);
        check(blocks("buffa-view", Operation::Decode), 0.0);
        check(blocks("serde_json", Operation::RoundTrip), 1.0);
    }

    #[test]
    fn selection_limits_messages_and_codecs() {
        let names = |names: &[&str]| Some(names.iter().map(|&name| name.to_owned()).collect());
        let select = |messages, codecs| Codecs::select(&Selection { from: From::Seed(1), messages, codecs });
        let Ok(codecs) = select(names(&["order"]), names(&["prost", "serde_json"])) else {
            panic!("these are known")
        };
        assert_eq!(codecs.lines().len(), 2 * 3);
        let found: Vec<String> = codecs.codecs().into_iter().map(|codec| codec.name).collect();
        assert_eq!(found, ["prost", "serde_json"]);
        let error_text =
            |selected: Result<Codecs, SelectError>| selected.err().map(|error| error.to_string());
        assert_eq!(
            error_text(select(names(&["order", "letter"]), None)).unwrap(),
            "unknown message `letter`; use one of person-full, person-sparse, several-data, order, \
             log-record, visit, samples"
        );
        assert!(
            error_text(select(None, names(&["xml"])))
                .unwrap()
                .starts_with("unknown codec `xml`; use one of prost, buffa, ")
        );
    }
}
