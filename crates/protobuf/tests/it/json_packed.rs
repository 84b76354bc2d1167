//! Packed numbers in JSON and MessagePack. They are processed in blocks; the result must equal that of the same
//! numbers unpacked.

use thalweg_protobuf::json::{self, PrintError, PrintOptions};
use thalweg_protobuf::wire::{self, Tag, WireErrorKind, WireType};
use thalweg_protobuf::{DecodeError, Kind, MessageType, Schema, msgpack, sources};

/// Returns each kind with the name of a type of that kind.
fn kinds() -> impl Iterator<Item = (Kind, &'static str)> {
    let name = |kind: Kind| if kind == Kind::Enum { "Level" } else { kind.name() };
    Kind::ALL.into_iter().filter(|kind| kind.is_packable()).map(move |kind| (kind, name(kind)))
}

/// Compiles a message for each kind, such as `Of4` for the kind with number 4; `Level` is closed.
fn schema() -> Schema {
    let messages = kinds().map(|(kind, name)| {
        let kind = kind as u8;
        format!("message Of{kind} {{ repeated {name} row = 1 [packed = true]; optional int32 end = 2; }}")
    });
    let source = format!(
        "syntax = 'proto2'; enum Level {{ LOW = 0; HIGH = 7; DEEP = -3; }} {}",
        messages.collect::<String>()
    );
    let set = sources::compile(&["rows.proto"], move |_| Some(source.clone())).expect("the file compiles");
    Schema::from_descriptor_set(&set).expect("a schema")
}

fn message_of(schema: &Schema, kind: Kind) -> MessageType<'_> {
    schema.message(&format!("Of{}", kind as u8)).expect("declared in the file")
}

fn number(kind: Kind, word: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    match kind.wire_type() {
        WireType::Fixed64 => bytes.extend(word.to_le_bytes()),
        WireType::Fixed32 => bytes.extend((word as u32).to_le_bytes()),
        _ => wire::put_varint(&mut bytes, word),
    }
    bytes
}

fn packed(kind: Kind, words: &[u64]) -> Vec<u8> {
    let packed_bytes: Vec<u8> = words.iter().flat_map(|&word| number(kind, word)).collect();
    let mut record = Vec::new();
    wire::put_tag(&mut record, Tag::new(1, WireType::Len));
    wire::put_varint(&mut record, packed_bytes.len() as u64);
    record.extend(packed_bytes);
    record
}

fn unpacked(kind: Kind, words: &[u64]) -> Vec<u8> {
    let mut records = Vec::new();
    for &word in words {
        wire::put_tag(&mut records, Tag::new(1, kind.wire_type()));
        records.extend(number(kind, word));
    }
    records
}

/// Returns numbers of up to `bits` bits, including those with special forms.
fn numbers(kind: Kind, count: usize, bits: u32) -> Vec<u64> {
    let special: &[u64] = match kind {
        Kind::Double => {
            const { &[f64::NAN.to_bits(), f64::INFINITY.to_bits(), f64::NEG_INFINITY.to_bits(), 1 << 63] }
        }
        Kind::Float => {
            const {
                &[
                    f32::NAN.to_bits() as u64,
                    f32::INFINITY.to_bits() as u64,
                    f32::NEG_INFINITY.to_bits() as u64,
                    1 << 31,
                ]
            }
        }
        Kind::Enum => &[0, 7, -3_i64 as u64, 5],
        _ => &[0, u64::MAX, 1 << 31, 1 << 63],
    };
    let mut state = u64::from(bits) << 32 | count as u64;
    let random = |index: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        match index % 16 {
            place @ 4..8 if bits > 32 => special[place - 4],
            // Few decimals have a separate code path.
            8 if kind == Kind::Double => ((state >> 40) as f64 / 1000.0).to_bits(),
            8 if kind == Kind::Float => ((state >> 48) as f32 / 100.0).to_bits().into(),
            _ if kind == Kind::Enum => special[state as usize >> 60 & 3],
            _ => state.rotate_left(32) >> (64 - bits) >> (state % u64::from(bits)),
        }
    };
    (0..count).map(random).collect()
}

const PRETTY: fn() -> PrintOptions = || PrintOptions::default().pretty(true);

/// Checks that both inputs give the same in all output formats.
fn check(message_type: MessageType<'_>, packed_bytes: &[u8], one_by_one: &[u8], what: &str) {
    for options in [PrintOptions::default(), PRETTY()] {
        let print = |wire: &[u8]| {
            let mut json = b"before ".to_vec();
            json::print(message_type, wire, &options, &mut json).map(|()| String::from_utf8(json))
        };
        assert_eq!(print(packed_bytes), print(one_by_one), "{what}");
    }
    let print = |wire: &[u8]| msgpack::from_wire(message_type, wire);
    assert_eq!(print(packed_bytes), print(one_by_one), "{what}");
}

#[test]
fn packed_numbers_print_like_single_ones() {
    let schema = schema();
    for (kind, name) in kinds() {
        for count in [0, 1, 2, 3, 15, 16, 17, 62, 63, 64, 65, 66, 127, 128, 129, 200, 255, 256, 257] {
            for bits in [1, 7, 14, 28, 32, 64] {
                let words = numbers(kind, count, bits);
                let what = format!("{count} times {name} of {bits} bits");
                let message_type = message_of(&schema, kind);
                check(message_type, &packed(kind, &words), &unpacked(kind, &words), &what);
            }
        }
    }
}

#[test]
fn several_packed_records_print_as_one_list() {
    let schema = schema();
    for (kind, name) in kinds() {
        let words = numbers(kind, 300, 64);
        let message_type = message_of(&schema, kind);
        for cuts in [[0, 0], [1, 65], [64, 128], [63, 64], [100, 300]] {
            let (first, rest) = words.split_at(cuts[0]);
            let (second, third) = rest.split_at(cuts[1] - cuts[0]);
            let records = [packed(kind, first), packed(kind, second), packed(kind, third)].concat();
            check(message_type, &records, &unpacked(kind, &words), name);
            let mixed = [packed(kind, first), unpacked(kind, second), packed(kind, third)].concat();
            check(message_type, &mixed, &unpacked(kind, &words), name);
            // Not adjacent: they are merged first.
            let apart = |records: fn(Kind, &[u64]) -> Vec<u8>| {
                [records(kind, first), b"\x10\x01".to_vec(), records(kind, rest)].concat()
            };
            check(message_type, &apart(packed), &apart(unpacked), name);
        }
    }
}

/// The error has the offset of the incomplete number, and nothing is appended.
#[test]
fn truncated_packed_record_is_rejected() {
    let schema = schema();
    for (kind, name) in kinds() {
        for count in [1, 2, 63, 64, 65, 128, 129] {
            let mut words = numbers(kind, count, 64);
            // The last number has more than one byte.
            words[count - 1] |= 1 << 40;
            let whole = packed(kind, &words);
            let last = whole.len() - number(kind, words[count - 1]).len();
            for len in last + 1..whole.len() {
                let packed_bytes = &whole[wire_start(&whole)..len];
                let mut wire = b"\x10\x01\x0a".to_vec();
                wire::put_varint(&mut wire, packed_bytes.len() as u64);
                let offset = wire.len() + last - wire_start(&whole);
                wire.extend(packed_bytes);
                wire.extend(b"\x10\x02");
                let expected = wire::WireError { offset, kind: WireErrorKind::Truncated };
                let expected = Err(PrintError::Decode(DecodeError::Wire(expected)));
                let message_type = message_of(&schema, kind);
                let (mut json, mut msgpack) = (b"kept".to_vec(), b"kept".to_vec());
                assert_eq!(json::print(message_type, &wire, &PRETTY(), &mut json), expected, "{name}");
                let options = PrintOptions::default();
                assert_eq!(json::print(message_type, &wire, &options, &mut json), expected, "{name}");
                assert_eq!(msgpack::print(message_type, &wire, &options, &mut msgpack), expected, "{name}");
                assert_eq!((&*json, &*msgpack), (&b"kept"[..], &b"kept"[..]));
            }
        }
    }
}

/// Returns the start of a record's content, after its tag and length.
fn wire_start(record: &[u8]) -> usize {
    let mut reader = wire::Reader::new(record);
    reader.tag().and_then(|_| reader.nested()).expect("a record").offset()
}

#[test]
fn packed_numbers_count_toward_the_length_limit() {
    let schema = schema();
    let message_type = message_of(&schema, Kind::Int64);
    let wire = packed(Kind::Int64, &[1; 1000]);
    let printed = |len_max| {
        let options = PrintOptions::default().len_max(len_max);
        json::print(message_type, &wire, &options, &mut Vec::new())
    };
    // `{"packed_bytes":["1","1",…`: the closing brackets do not count.
    assert_eq!(printed(7 + 4 * 1000), Ok(()));
    assert_eq!(printed(6 + 4 * 1000), Err(PrintError::TooLong { max: 4006 }));
}

#[test]
fn packed_numbers_have_the_expected_json() {
    let schema = schema();
    let print = |kind, words: &[u64], options: &PrintOptions| {
        let mut json = Vec::new();
        json::print(message_of(&schema, kind), &packed(kind, words), options, &mut json)
            .expect("it has JSON");
        String::from_utf8(json).expect("JSON is UTF-8")
    };
    let plain = PrintOptions::default();
    let doubles = [1.5, f64::NAN, -0.0, 1e300, f64::INFINITY].map(f64::to_bits);
    assert_eq!(print(Kind::Double, &doubles, &plain), r#"{"row":[1.5,"NaN",-0,1e+300,"Infinity"]}"#);
    assert_eq!(print(Kind::Sint64, &[1, 2], &plain), r#"{"row":["-1","1"]}"#);
    assert_eq!(print(Kind::Int32, &[300, u64::MAX], &PRETTY()), "{\n  \"row\": [\n    300,\n    -1\n  ]\n}");
    assert_eq!(print(Kind::Bool, &[1, 0, 300], &plain), r#"{"row":[true,false,true]}"#);
    assert_eq!(print(Kind::Enum, &[7, 5, 0], &plain), r#"{"row":["HIGH","LOW"]}"#);
    assert_eq!(print(Kind::Enum, &[5], &plain), "{}");
}
