//! Random schemas in `.proto` text, compiled by three implementations.

use std::fmt::Write as _;
use std::sync::Arc;

use buffa_descriptor::{DescriptorPool as BuffaPool, MessageIndex};
use prost_reflect::{DescriptorPool, MessageDescriptor};
use thalweg_protobuf::{Kind, MessageType, Schema, sources};

use crate::random::Random;

/// Number of schemas.
pub(super) const SCHEMAS: usize = 25;
/// Messages in each schema.
const MESSAGES: usize = 4;

/// Compiled by protoc: no crate compiles editions.
const EDITIONS: &[u8] = include_bytes!("../../../../protobuf/tests/proto/editions.binpb");

pub(super) struct Subject {
    pub(super) source: String,
    pub(super) set: Vec<u8>,
    pub(super) root: String,
    pub(super) schema: Schema,
    pub(super) buffa: (Arc<BuffaPool>, MessageIndex),
    /// It has maps or groups, which the others read with any wire type.
    pub(super) loose: bool,
    /// It has closed enums, which prost-reflect treats as open.
    pub(super) closed_enums: bool,
    /// `None` for editions, which prost-reflect does not support.
    pub(super) reflect: Option<MessageDescriptor>,
}

pub(super) fn all() -> Vec<Subject> {
    let random = (1..SCHEMAS as u64).map(|seed| {
        let mut random = Random::new(seed);
        let proto2 = seed % 2 == 0;
        let enums = !proto2 || seed % 4 == 0;
        let source = source(&mut random, proto2, enums);
        let text = source.clone();
        let set = sources::compile(&["random.proto"], move |_| Some(text.clone()));
        let set = set.unwrap_or_else(|error| panic!("{error}: {source}"));
        subject(source, set, "M0", proto2 && enums)
    });
    let editions = subject("editions.proto".to_owned(), EDITIONS.to_vec(), "editions.Fields", true);
    std::iter::once(editions).chain(random).collect()
}

fn subject(source: String, set: Vec<u8>, root: &str, closed_enums: bool) -> Subject {
    let schema = Schema::from_descriptor_set(&set).unwrap_or_else(|error| panic!("{error}: {source}"));
    let pool = Arc::new(BuffaPool::decode(&set).expect("a right descriptor set"));
    let index = pool.message_index(root).expect("the root");
    let loose = schema
        .messages()
        .flat_map(MessageType::fields)
        .any(|field| field.is_map() || field.kind() == Kind::Group);
    let reflect = (!source.starts_with("editions")).then(|| {
        let pool = DescriptorPool::decode(set.as_slice()).expect("a right descriptor set");
        pool.get_message_by_name(root).expect("the root")
    });
    Subject { source, set, root: root.to_owned(), schema, buffa: (pool, index), closed_enums, loose, reflect }
}

const SCALARS: [&str; 15] = [
    "double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string", "bytes", "uint32",
    "sfixed32", "sfixed64", "sint32", "sint64",
];
const KEYS: [&str; 12] = [
    "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string", "uint32", "sfixed32", "sfixed64",
    "sint32", "sint64",
];

fn source(random: &mut Random, proto2: bool, enums: bool) -> String {
    let loose = random.one_in(3);
    let mut out = format!("syntax = \"proto{}\";\n", if proto2 { 2 } else { 3 });
    out.push_str(if proto2 {
        "enum E { A = 1; B = -2; C = 100; }\n"
    } else {
        "enum E { A = 0; B = -2; C = 100; }\n"
    });
    for message in 0..MESSAGES {
        let _ = writeln!(out, "message M{message} {{");
        let mut number = 0;
        for _ in 0..random.between(2, 14) {
            field(&mut out, random, &mut number, (proto2, enums, loose));
        }
        if random.one_in(2) {
            let _ = writeln!(out, "  oneof choice{message} {{");
            for _ in 0..random.between(1, 5) {
                let kind = kind(random, enums);
                let number = next(random, &mut number);
                let _ = writeln!(out, "    {kind} o{number} = {number};");
            }
            out.push_str("  }\n");
        }
        if proto2 {
            out.push_str("  extensions 1000000 to 1000100;\n");
        }
        out.push_str("}\n");
    }
    if proto2 {
        out.push_str("extend M0 {\n");
        for extension in 0..random.between(1, 5) {
            let label = random.pick(&["optional", "repeated"]);
            let kind = kind(random, enums);
            let _ = writeln!(out, "  {label} {kind} x{extension} = {};", 1_000_000 + extension);
        }
        out.push_str("}\n");
    }
    out
}

fn field(
    out: &mut String,
    random: &mut Random,
    number: &mut usize,
    (proto2, enums, loose): (bool, bool, bool),
) {
    let number = next(random, number);
    if loose && random.one_in(7) {
        // No closed enums: buffa uses 0 for a missing value, instead of the first value of the enum.
        let kind = kind(random, enums && !proto2);
        let _ = writeln!(out, "  map<{}, {kind}> f{number} = {number};", random.pick(&KEYS));
        return;
    }
    let kind = kind(random, enums);
    let label = match (proto2, random.below(6)) {
        (_, 0..=2) => "repeated",
        (true, 3) => "required",
        (true, _) | (false, 3) => "optional",
        (false, _) => "",
    };
    if loose && proto2 && random.one_in(6) {
        let _ = writeln!(
            out,
            "  {label} group G{number} = {number} {{ optional int32 a = 1; optional M0 m = 2; }}"
        );
        return;
    }
    let packable = label == "repeated" && !kind.starts_with('M') && kind != "string" && kind != "bytes";
    let packed = if packable && random.one_in(2) {
        random.pick(&[" [packed = true]", " [packed = false]"])
    } else {
        ""
    };
    let _ = writeln!(out, "  {label} {kind} f{number} = {number}{packed};");
}

fn kind(random: &mut Random, enums: bool) -> String {
    match random.below(8) {
        0 if enums => "E".to_owned(),
        0..=2 => format!("M{}", random.below(MESSAGES)),
        _ => random.pick(&SCALARS).to_owned(),
    }
}

/// A number above the last: mostly the next, sometimes far away, but not a reserved one.
fn next(random: &mut Random, last: &mut usize) -> usize {
    *last += match random.below(10) {
        0 => random.between(1, 400),
        1 => random.between(1, 20),
        _ => 1,
    };
    *last
}
