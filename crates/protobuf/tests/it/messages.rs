//! Messages: decoding, encoding and errors.

use thalweg_protobuf::wire::WireErrorKind;
use thalweg_protobuf::{DecodeError, Decoder, Encoder, Limits, Message, Schema, SetError, Value, sources};

fn schema(source: &str) -> Schema {
    let source = source.to_owned();
    let set = sources::compile(&["a.proto"], move |name| (name == "a.proto").then(|| source.clone()));
    Schema::from_descriptor_set(&set.expect("a right file")).expect("a right file")
}

fn proto3() -> Schema {
    schema(
        "syntax = 'proto3';
         message M {
           int32 i32 = 1; sint32 s32 = 2; uint32 u32 = 3; int64 i64 = 4; sint64 s64 = 5; uint64 u64 = 6;
           fixed32 f32 = 7; sfixed32 sf32 = 8; fixed64 f64 = 9; sfixed64 sf64 = 10; float float = 11;
           double double = 12; bool bool = 13; string string = 14; bytes bytes = 15;
           E enum = 16; M message = 17; optional int32 maybe = 18;
           repeated int32 packed = 19; repeated string strings = 20; repeated M messages = 21;
           map<string, int32> map = 22; oneof choice { int32 number = 23; string text = 24; M inner = 25; }
           repeated sint64 loose = 26 [packed = false]; map<int32, M> inners = 27; repeated fixed32 fixeds = 28;
         }
         enum E { ZERO = 0; ONE = 1; }",
    )
}

fn proto2() -> Schema {
    schema(
        "syntax = 'proto2';
         message M {
           optional int32 number = 1 [default = 7]; optional string text = 2 [default = 'hi']; required int32 must = 3;
           optional E closed = 4; repeated E closeds = 5; repeated E packeds = 6 [packed = true];
           optional group G = 7 { optional int32 a = 1; optional M inner = 2; }
           repeated group R = 8 { optional int32 a = 1; }
           map<int32, Zero> map = 9; optional M message = 10; extensions 100 to 200;
           oneof choice { E which = 11; int32 other = 12; group H = 13 { optional int32 a = 1; } }
         }
         enum E { FIRST = 3; SECOND = 5; }
         enum Zero { NONE = 0; FIFTH = 5; }
         extend M { optional string more = 100; repeated M mores = 101; }
         message Set { option message_set_wire_format = true; extensions 4 to 536870911; }
         message Item { optional int32 a = 1; extend Set { optional Item item = 500000000; } }",
    )
}

/// Decodes `bytes` as `M`, checks its encoding, and passes it to `look`.
fn check(schema: &Schema, bytes: &[u8], encoded: &[u8], look: impl Fn(&Message)) {
    let of = schema.message("M").expect("M is there");
    let message = Message::decode(of, bytes.to_vec()).expect("right bytes");
    assert_eq!(message.as_ref().encode_to_vec(), encoded, "{message:?}");
    assert_eq!(message.as_ref().encoded_len(), encoded.len());
    look(&message);
    let again = Message::decode(of, encoded.to_vec()).expect("our own bytes");
    assert_eq!(again, message);
    // Merging into an empty message copies the text, with the same result.
    let mut merged = Message::new(of);
    merged.as_mut().merge(bytes, &Limits::default()).expect("right bytes");
    assert_eq!(merged, message);
    assert_eq!(merged.as_ref().encode_to_vec(), encoded);
}

fn unchanged(schema: &Schema, bytes: &[u8], look: impl Fn(&Message)) {
    check(schema, bytes, bytes, look);
}

fn get<'a>(message: &'a Message, name: &str) -> Value<'a> {
    message.as_ref().get(name).expect("a field")
}

#[test]
fn scalars_have_the_documented_wire_form() {
    let schema = proto3();
    let one = |bytes: &[u8], name: &str, value: Value<'_>| {
        unchanged(&schema, bytes, |message| assert_eq!(get(message, name), value, "{name}"));
        let mut built = Message::new(schema.message("M").expect("M"));
        built.as_mut().set(name, value).expect("the right type");
        assert_eq!(built.as_ref().encode_to_vec(), bytes, "{name}");
    };
    one(b"\x08\x96\x01", "i32", Value::I32(150));
    one(b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "i32", Value::I32(-1));
    one(b"\x10\x03", "s32", Value::I32(-2));
    one(b"\x10\xff\xff\xff\xff\x0f", "s32", Value::I32(i32::MIN));
    one(b"\x18\xff\xff\xff\xff\x0f", "u32", Value::U32(u32::MAX));
    one(b"\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "i64", Value::I64(-1));
    one(b"\x28\x01", "s64", Value::I64(-1));
    one(b"\x30\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "u64", Value::U64(u64::MAX));
    one(b"\x3d\x01\x02\x03\x04", "f32", Value::U32(0x0403_0201));
    one(b"\x45\xff\xff\xff\xff", "sf32", Value::I32(-1));
    one(b"\x49\x01\x00\x00\x00\x00\x00\x00\x80", "f64", Value::U64(1 << 63 | 1));
    one(b"\x51\xfe\xff\xff\xff\xff\xff\xff\xff", "sf64", Value::I64(-2));
    one(b"\x5d\x00\x00\x80\x3f", "float", Value::F32(1.0));
    one(b"\x61\x00\x00\x00\x00\x00\x00\xf0\xbf", "double", Value::F64(-1.0));
    one(b"\x68\x01", "bool", Value::Bool(true));
    one(b"\x72\x07testing", "string", Value::String("testing"));
    one(b"\x7a\x02\x00\xff", "bytes", Value::Bytes(b"\x00\xff"));
    one(b"\x80\x01\x01", "enum", Value::Enum(1));
    one(b"\x80\x01\x63", "enum", Value::Enum(99));
    one(b"\x90\x01\x00", "maybe", Value::I32(0));
}

#[test]
fn implicit_defaults_are_not_encoded() {
    let schema = proto3();
    check(&schema, b"\x08\x00\x72\x00\x61\x00\x00\x00\x00\x00\x00\x00\x00", b"", |message| {
        assert!(!message.as_ref().has("i32") && !message.as_ref().has("string"));
        assert_eq!(message.as_ref().fields().count(), 0);
        assert_eq!(get(message, "string"), Value::String(""));
    });
    // Minus zero is not the default value.
    unchanged(&schema, b"\x61\x00\x00\x00\x00\x00\x00\x00\x80", |message| {
        assert!(message.as_ref().has("double"));
    });
}

#[test]
fn last_value_wins_and_wide_varints_are_truncated() {
    let schema = proto3();
    check(&schema, b"\x08\x01\x08\x02\x72\x01a\x72\x01b", b"\x08\x02\x72\x01b", |_| {});
    // 2^32 + 5 in an int32, and 2 in a bool.
    check(&schema, b"\x08\x85\x80\x80\x80\x10\x68\x02", b"\x08\x05\x68\x01", |_| {});
}

#[test]
fn repeated_singular_messages_are_merged() {
    let schema = proto3();
    let parts =
        b"\x8a\x01\x05\x08\x01\x9a\x01\x00\x8a\x01\x06\x10\x03\x9a\x01\x01\x07\x8a\x01\x04\x9a\x01\x01\x08";
    check(&schema, parts, b"\x8a\x01\x09\x08\x01\x10\x03\x9a\x01\x02\x07\x08", |message| {
        let inner = get(message, "message").as_message().expect("a message");
        assert_eq!(inner.get("i32"), Some(Value::I32(1)));
        assert_eq!(inner.get("packed").and_then(Value::as_list).expect("a list").len(), 2);
    });
}

#[test]
fn setting_a_oneof_member_clears_the_others() {
    let schema = proto3();
    let choice = |message: &Message| {
        let oneof = schema.message("M").and_then(|m| m.oneof("choice")).expect("a oneof");
        message.as_ref().which(oneof).map(|field| field.name().to_owned())
    };
    check(&schema, b"\xb8\x01\x05\xc2\x01\x01x", b"\xc2\x01\x01x", |message| {
        assert_eq!(choice(message).as_deref(), Some("text"));
        assert!(!message.as_ref().has("number"));
        assert_eq!(get(message, "number"), Value::I32(0));
    });
    // A replaced message does not come back; without a replacement in between, messages are merged.
    check(&schema, b"\xca\x01\x02\x08\x01\xb8\x01\x05\xca\x01\x02\x10\x02", b"\xca\x01\x02\x10\x02", |_| {});
    check(&schema, b"\xca\x01\x02\x08\x01\xca\x01\x02\x10\x02", b"\xca\x01\x04\x08\x01\x10\x02", |message| {
        assert_eq!(choice(message).as_deref(), Some("inner"));
    });
    unchanged(&schema, b"\xb8\x01\x00", |message| assert_eq!(choice(message).as_deref(), Some("number")));
    let mut message = Message::new(schema.message("M").expect("M"));
    message.as_mut().set("text", Value::String("x")).expect("a string");
    message.as_mut().set("number", Value::I32(0)).expect("a number");
    assert_eq!(message.as_ref().encode_to_vec(), b"\xb8\x01\x00");
    message.as_mut().clear("number");
    assert_eq!((message.as_ref().encode_to_vec(), choice(&message)), (vec![], None));
}

#[test]
fn repeated_numbers_decode_packed_and_unpacked() {
    let schema = proto3();
    let packed = b"\x9a\x01\x03\x01\x96\x01";
    unchanged(&schema, packed, |message| {
        let values: Vec<_> = get(message, "packed").as_list().expect("a list").iter().collect();
        assert_eq!(values, [Value::I32(1), Value::I32(150)]);
    });
    check(&schema, b"\x98\x01\x01\x98\x01\x96\x01", packed, |_| {});
    check(&schema, b"\x98\x01\x01\x9a\x01\x02\x96\x01\x9a\x01\x00", packed, |_| {});
    let loose = b"\xd0\x01\x01\xd0\x01\x02";
    unchanged(&schema, loose, |_| {});
    check(&schema, b"\xd2\x01\x02\x01\x02", loose, |_| {});
    unchanged(&schema, b"\xe2\x01\x08\x01\x00\x00\x00\xff\xff\xff\xff", |_| {});
    unchanged(&schema, b"\xa2\x01\x01a\xa2\x01\x00\xa2\x01\x02bc", |message| {
        let values: Vec<_> = get(message, "strings").as_list().expect("a list").iter().collect();
        assert_eq!(values, ["a", "", "bc"].map(Value::String));
    });
    let elements: Vec<u8> = (1..=100).flat_map(|age| [0xaa, 0x01, 0x04, 0x08, 0x01, 0x10, age]).collect();
    check(&schema, &elements, &elements, |message| {
        let list = get(message, "messages").as_list().expect("a list");
        assert_eq!(list.len(), 100);
        let last = list.get(99).and_then(Value::as_message).expect("a message");
        assert_eq!(last.get("s32"), Some(Value::I32(50)));
    });
}

#[test]
fn last_map_entry_of_a_key_wins() {
    let schema = proto3();
    let entry = |key: &str, value: u8| [b"\xb2\x01\x05\x0a\x01", key.as_bytes(), &[0x10, value]].concat();
    let bytes = [entry("a", 1), entry("b", 2), entry("a", 3)].concat();
    check(&schema, &bytes, &[entry("b", 2), entry("a", 3)].concat(), |message| {
        let map = get(message, "map").as_map().expect("a map");
        assert_eq!(map.len(), 2);
        assert_eq!(map.get(Value::String("a")), Some(Value::I32(3)));
        assert_eq!(map.get(Value::String("c")), None);
    });
    // With many keys as with few.
    let twice: Vec<u8> = (0..2)
        .flat_map(|round| (b'A'..=b'z').flat_map(move |key| entry(&char::from(key).to_string(), round)))
        .collect();
    let once: Vec<u8> = (b'A'..=b'z').flat_map(|key| entry(&char::from(key).to_string(), 1)).collect();
    check(&schema, &twice, &once, |_| {});
    // Missing parts of an entry have their defaults; the order in it is free, and unknown fields are dropped.
    check(&schema, b"\xb2\x01\x00", b"\xb2\x01\x04\x0a\x00\x10\x00", |_| {});
    check(&schema, b"\xb2\x01\x07\x10\x01\x18\x07\x0a\x01x", &entry("x", 1), |_| {});
    check(&schema, b"\xda\x01\x02\x08\x05", b"\xda\x01\x04\x08\x05\x12\x00", |_| {});
    let mut message = Message::new(schema.message("M").expect("M"));
    for (key, value) in [("a", 1), ("b", 2), ("a", 3)] {
        message.as_mut().insert("map", Value::String(key), Value::I32(value)).expect("the right types");
    }
    assert_eq!(message.as_ref().encode_to_vec(), [entry("a", 3), entry("b", 2)].concat());
}

#[test]
fn unknown_fields_keep_their_order() {
    let schema = proto3();
    // Number 100, around a known field, and as a group; 17 with another wire type.
    let bytes = b"\xa0\x06\x01\x08\x01\xa3\x06\x08\x05\xa4\x06\x88\x01\x05\x10\x02";
    let encoded = b"\x08\x01\x10\x02\xa0\x06\x01\xa3\x06\x08\x05\xa4\x06\x88\x01\x05";
    check(&schema, bytes, encoded, |message| {
        assert_eq!(&*message.as_ref().unknown_fields(), &encoded[4..]);
    });
    let mut message = Message::decode(schema.message("M").expect("M"), &bytes[..]).expect("right bytes");
    message.as_mut().clear_unknown_fields();
    assert_eq!(message.as_ref().encode_to_vec(), b"\x08\x01\x10\x02");
}

#[test]
fn unknown_values_of_closed_enums_become_unknown_fields() {
    let schema = proto2();
    unchanged(&schema, b"\x20\x03", |message| assert_eq!(get(message, "closed"), Value::Enum(3)));
    check(&schema, b"\x20\x04", b"\x20\x04", |message| {
        assert!(!message.as_ref().has("closed") && message.as_ref().has_unknown_fields());
        assert_eq!(get(message, "closed"), Value::Enum(3), "the first value is the default");
    });
    check(&schema, b"\x28\x03\x28\x04\x28\x05", b"\x28\x03\x28\x05\x28\x04", |_| {});
    check(&schema, b"\x32\x03\x03\x04\x05", b"\x32\x02\x03\x05\x30\x04", |_| {});
    check(&schema, b"\x60\x01\x58\x04", b"\x60\x01\x58\x04", |message| {
        assert!(message.as_ref().has("other"), "a value without a name does not change the oneof");
    });
    check(&schema, b"\x4a\x04\x08\x01\x10\x04", b"\x4a\x04\x08\x01\x10\x04", |message| {
        assert!(message.as_ref().has_unknown_fields() && !message.as_ref().has("map"));
    });
    check(&schema, b"\x4a\x02\x08\x01", b"\x4a\x04\x08\x01\x10\x00", |_| {});
}

#[test]
fn groups_and_extensions_round_trip() {
    let schema = proto2();
    unchanged(&schema, b"\x3b\x08\x01\x12\x02\x08\x02\x3c", |message| {
        let group = get(message, "g").as_message().expect("a message");
        assert_eq!(group.get("a"), Some(Value::I32(1)));
    });
    check(&schema, b"\x3b\x08\x01\x3c\x3b\x12\x00\x3c", b"\x3b\x08\x01\x12\x00\x3c", |_| {});
    unchanged(&schema, b"\x43\x08\x01\x44\x43\x44", |message| {
        assert_eq!(get(message, "r").as_list().map(|list| list.len()), Some(2));
    });
    check(&schema, b"\x60\x01\x6b\x08\x01\x6c", b"\x6b\x08\x01\x6c", |_| {});
    unchanged(&schema, b"\xa2\x06\x01x\xaa\x06\x02\x08\x01", |message| {
        assert_eq!(get(message, "[more]"), Value::String("x"));
        assert_eq!(message.as_ref().get(100), Some(Value::String("x")));
        assert!(message.as_ref().get("more").is_none(), "an extension is no field of the message");
    });
}

#[test]
fn message_set_items_round_trip() {
    let schema = proto2();
    let set = schema.message("Set").expect("Set");
    // { 1: { 2: 500000000, 3: { 1: 5 } } }, and an unknown item.
    let known = b"\x0b\x10\x80\xca\xb5\xee\x01\x1a\x02\x08\x05\x0c";
    let unknown = b"\x0b\x10\x07\x1a\x00\x0c";
    let bytes = [&unknown[..], known].concat();
    let message = Message::decode(set, bytes).expect("right bytes");
    let item = message.as_ref().get("[Item.item]").and_then(Value::as_message).expect("a message");
    assert_eq!(item.get("a"), Some(Value::I32(5)));
    assert_eq!(message.as_ref().encode_to_vec(), [&known[..], unknown].concat());
    assert_eq!(message.as_ref().encoded_len(), known.len() + unknown.len());
    let swapped = b"\x0b\x1a\x02\x08\x05\x10\x80\xca\xb5\xee\x01\x0c";
    let message = Message::decode(set, &swapped[..]).expect("right bytes");
    assert_eq!(message.as_ref().encode_to_vec(), known);
}

#[test]
fn proto2_defaults_and_required_fields_are_reported() {
    let schema = proto2();
    let m = schema.message("M").expect("M");
    let message = Message::new(m);
    assert_eq!((get(&message, "number"), get(&message, "text")), (Value::I32(7), Value::String("hi")));
    assert_eq!(message.as_ref().missing_required().as_deref(), Some("must"));
    let message = Message::decode(m, &b"\x18\x00\x52\x00\x52\x00"[..]).expect("right bytes");
    assert_eq!(message.as_ref().missing_required().as_deref(), Some("message.must"));
    let message = Message::decode(m, &b"\x18\x00\xaa\x06\x02\x18\x01\xaa\x06\x00"[..]).expect("right bytes");
    assert_eq!(message.as_ref().missing_required().as_deref(), Some("mores[1].must"));
    let message = Message::decode(m, &b"\x18\x00\x52\x02\x18\x00"[..]).expect("right bytes");
    assert_eq!(message.as_ref().missing_required(), None);
}

#[test]
fn strings_are_utf8_checked_by_edition() {
    let (three, two) = (proto3(), proto2());
    let error = Message::decode(three.message("M").expect("M"), &b"\x08\x01\x72\x02a\xff"[..]);
    let error = error.expect_err("no UTF-8");
    assert_eq!(error.to_string(), "at byte 4: the string of M.string is not UTF-8");
    unchanged(&two, b"\x12\x02a\xff", |message| assert_eq!(get(message, "text"), Value::Bytes(b"a\xff")));
}

#[test]
fn decode_errors_have_kind_and_offset() {
    let schema = proto3();
    let m = schema.message("M").expect("M");
    let fails = |bytes: &[u8]| match Message::decode(m, bytes.to_vec()).expect_err("wrong bytes") {
        DecodeError::Wire(error) => (error.offset, error.kind),
        other => panic!("{other}"),
    };
    assert_eq!(fails(b"\x08"), (1, WireErrorKind::Truncated));
    assert_eq!(fails(b"\x08\x01\x72\x05ab"), (3, WireErrorKind::Length));
    assert_eq!(fails(b"\x00\x01"), (0, WireErrorKind::FieldNumber));
    assert_eq!(fails(b"\x08\x01\x0f"), (2, WireErrorKind::WireType));
    assert_eq!(fails(b"\x0c"), (0, WireErrorKind::EndGroup));
    assert_eq!(fails(b"\xa3\x06\x08\x01"), (2, WireErrorKind::GroupOpen));
    assert_eq!(fails(b"\x9a\x01\x02\x01\x80"), (4, WireErrorKind::Truncated));
    assert_eq!(fails(b"\xe2\x01\x05\x01\x00\x00\x00\x01"), (7, WireErrorKind::Truncated));
    assert_eq!(fails(b"\x8a\x01\x02\x08\x80\x01"), (4, WireErrorKind::Truncated));
}

#[test]
fn nesting_depth_is_limited() {
    let schema = proto2();
    let m = schema.message("M").expect("M");
    let nested = |depth: usize| {
        (0..depth).fold(Vec::new(), |inner, _| {
            let mut outer = vec![0x52];
            thalweg_protobuf::wire::put_varint(&mut outer, inner.len() as u64);
            [outer, inner].concat()
        })
    };
    let deep = |bytes: Vec<u8>| {
        let error = Message::decode(m, bytes).map_err(|error| error.to_string());
        error.is_err_and(|error| error.contains("messages are nested deeper than allowed"))
    };
    assert!(!deep(nested(100)) && deep(nested(101)));
    let groups = |start: &[u8], end: &[u8], depth| [start.repeat(depth), end.repeat(depth)].concat();
    // Unknown groups; then group G with unknown groups in it.
    assert!(deep(groups(b"\xa3\x1f", b"\xa4\x1f", 101)) && !deep(groups(b"\xa3\x1f", b"\xa4\x1f", 100)));
    assert!(deep(b"\x3b".repeat(10_000)) || Message::decode(m, b"\x3b".repeat(10_000)).is_err());
}

#[test]
fn memory_is_limited_in_proportion_to_the_input() {
    let schema = proto3();
    let m = schema.message("M").expect("M");
    // Empty messages in a list: three bytes on the wire, more than 250 in memory.
    let bytes = b"\xaa\x01\x00".repeat(100_000);
    let error = Message::decode(m, bytes.clone()).expect_err("more than 32 bytes for each");
    assert!(matches!(error, DecodeError::Memory { .. }), "{error}");
    assert_eq!(
        error.to_string().split_once(": ").map(|(_, text)| text),
        Some("the message would take more than 13794304 bytes of memory")
    );
    let mut limits = Limits::default();
    limits.memory_per_input_byte = 1000;
    Message::decode_within(m, bytes, &limits).expect("allowed now");
    Message::decode(m, b"\xaa\x01\x00".repeat(1000)).expect("little memory is free");
}

#[test]
fn set_rejects_values_of_other_types() {
    let schema = proto3();
    let mut message = Message::new(schema.message("M").expect("M"));
    let error = |result: Result<(), SetError>| result.expect_err("not possible").to_string();
    assert_eq!(error(message.as_mut().set("i32", Value::I64(1))), "M.i32 holds int32, not an i64");
    assert_eq!(error(message.as_mut().set("nothing", Value::I64(1))), "M has no field nothing");
    assert_eq!(error(message.as_mut().set(99, Value::I64(1))), "M has no field number 99");
    assert_eq!(
        error(message.as_mut().set("packed", Value::I32(1))),
        "M.packed holds a list of int32, not an i32"
    );
    assert_eq!(error(message.as_mut().push("i32", Value::I32(1))), "M.i32 holds int32, not an i32");
    assert_eq!(
        error(message.as_mut().push("map", Value::I32(1))),
        "M.map holds a map of M.MapEntry, not an i32"
    );
    let inner = Message::new(schema.message("M").expect("M"));
    assert_eq!(
        error(message.as_mut().push("strings", Value::Message(inner.as_ref()))),
        "M.strings holds a list of string, not a message"
    );
    assert_eq!(message.as_ref().encode_to_vec(), b"");
}

#[test]
fn messages_are_built_field_by_field() {
    let schema = proto3();
    let m = schema.message("M").expect("M");
    let mut message = Message::new(m);
    let mut root = message.as_mut();
    root.message("message").expect("a message").set("i32", Value::I32(1)).expect("a number");
    for value in [1, 150] {
        root.push("packed", Value::I32(value)).expect("a list");
        root.push_message("messages").expect("a list").set("i32", Value::I32(value)).expect("a number");
    }
    root.append_message("inners", Value::I32(5))
        .expect("a map")
        .set("bool", Value::Bool(true))
        .expect("a bool");
    let expected = b"\x8a\x01\x02\x08\x01\x9a\x01\x03\x01\x96\x01\xaa\x01\x02\x08\x01\xaa\x01\x03\
        \x08\x96\x01\xda\x01\x06\x08\x05\x12\x02\x68\x01";
    assert_eq!(message.as_ref().encode_to_vec(), expected);
    // Copies are deep, even of a message into itself.
    let copy = message.clone();
    let mut root = message.as_mut();
    root.set("message", Value::Message(copy.as_ref())).expect("a message");
    root.set("messages", copy.as_ref().get("messages").expect("a list")).expect("a list");
    root.set("inners", copy.as_ref().get("inners").expect("a map")).expect("a map");
    let inner = message.as_ref().get("message").and_then(Value::as_message).expect("a message");
    assert_eq!(inner, copy.as_ref());
    assert_eq!(inner.to_message(), copy);
    assert_eq!(inner.encode_to_vec(), expected);
    message.clear();
    assert_eq!(message, Message::new(m));
}

#[test]
fn decoders_and_encoders_are_reusable() {
    let (three, two) = (proto3(), proto2());
    let (mut decoder, mut encoder) = (Decoder::default(), Encoder::new());
    let inputs: [(&Schema, &[u8]); 4] = [
        (&three, b"\x08\x01\x72\x03abc\x9a\x01\x03\x01\x96\x01"),
        (&two, b"\x08\x05\x3b\x08\x01\x3c"),
        (&three, b""),
        (&two, b"\x52\x02\x08\x01"),
    ];
    for (schema, input) in inputs.iter().cycle().take(40) {
        let m = schema.message("M").expect("M");
        assert!(decoder.decode(m, b"\x08").is_err());
        let message = decoder.decode(m, input).expect("right bytes");
        assert_eq!(encoder.encode(message), *input);
    }
}
