//! ProtoJSON and MessagePack, case by case. `json_random.rs` compares with another implementation.

use thalweg_protobuf::json::{self, ParseOptions, PrintOptions};
use thalweg_protobuf::{MessageType, Schema, msgpack, sources};

fn schema() -> Schema {
    let read = |name: &str| match name {
        "everything.proto" => Some(include_str!("../proto/everything.proto").to_owned()),
        "extended.proto" => Some(include_str!("../proto/extended.proto").to_owned()),
        _ => None,
    };
    let set = sources::compile(&["everything.proto", "extended.proto"], read).expect("the files compile");
    Schema::from_descriptor_set(&set).expect("a schema")
}

fn everything(schema: &Schema) -> MessageType<'_> {
    schema.message("everything.Everything").expect("declared in the file")
}

fn extended(schema: &Schema) -> MessageType<'_> {
    schema.message("extended.Extended").expect("declared in the file")
}

/// Checks that `json` is accepted and printed as `printed`, and that its wire form survives MessagePack.
fn check(message_type: MessageType<'_>, json: &str, printed: &str) {
    let wire = json::to_wire(message_type, json.as_bytes()).unwrap_or_else(|error| panic!("{json}: {error}"));
    assert_eq!(json::from_wire(message_type, &wire).as_deref(), Ok(printed), "{json}");
    assert_eq!(json::to_wire(message_type, printed.as_bytes()).as_ref(), Ok(&wire), "{printed}");
    let msgpack = msgpack::from_wire(message_type, &wire).unwrap_or_else(|error| panic!("{json}: {error}"));
    assert_eq!(msgpack::to_wire(message_type, &msgpack).as_ref(), Ok(&wire), "{json}");
    let message = json::to_message(message_type, json.as_bytes()).expect("it was accepted before");
    let again = json::from_message(message.as_ref()).expect("printed before");
    let again = json::to_message(message_type, again.as_bytes()).expect("it is JSON of the type");
    // Compared as bytes, because NaN is not equal to itself.
    assert_eq!(again.as_ref().encode_to_vec(), message.as_ref().encode_to_vec(), "{json}");
}

fn refused(message_type: MessageType<'_>, json: &str, problem: &str) {
    let error = json::to_wire(message_type, json.as_bytes()).expect_err(json).to_string();
    assert!(error.contains(problem), "{json}: {error}");
}

#[test]
fn numbers() {
    let schema = schema();
    let check = |json, printed| check(everything(&schema), json, printed);
    check("{}", "{}");
    check(
        r#"{"anInt32": 1e2, "anInt64": 7, "aUint64": "18446744073709551615"}"#,
        r#"{"anInt32":100,"anInt64":"7","aUint64":"18446744073709551615"}"#,
    );
    check(
        r#"{"anInt32":"-3","aSint64":-9223372036854775808,"aFixed32":4294967295}"#,
        r#"{"anInt32":-3,"aSint64":"-9223372036854775808","aFixed32":4294967295}"#,
    );
    check(r#"{"aDouble":0.1,"aFloat":0.1}"#, r#"{"aDouble":0.1,"aFloat":0.1}"#);
    check(r#"{"aDouble":"NaN","aFloat":"-Infinity"}"#, r#"{"aDouble":"NaN","aFloat":"-Infinity"}"#);
    check(r#"{"aDouble":-0.0,"aFloat":"1e3"}"#, r#"{"aDouble":-0,"aFloat":1000}"#);
    // Fields without presence that are zero count as absent.
    check(
        r#"{"anInt32":0,"aString":"","maybeInt32":0,"maybeString":""}"#,
        r#"{"maybeInt32":0,"maybeString":""}"#,
    );
    check(
        r#"{"aBool":true,"bools":[true,false],"loose_int64s":["1",2]}"#,
        r#"{"aBool":true,"bools":[true,false],"looseInt64s":["1","2"]}"#,
    );
    check(
        r#"{"doublesBySint32":{"-1":1.5,"2":"Infinity"}}"#,
        r#"{"doublesBySint32":{"-1":1.5,"2":"Infinity"}}"#,
    );
    check(
        r#"{"colorsByBool":{"true":"RED","false":2}}"#,
        r#"{"colorsByBool":{"true":"RED","false":"BLUE"}}"#,
    );
}

#[test]
fn invalid_numbers_are_rejected() {
    let schema = schema();
    let refused = |json, problem| refused(everything(&schema), json, problem);
    refused(r#"{"anInt32":1.5}"#, "line 1, column 12: anInt32: `1.5` is not a whole number");
    refused(r#"{"anInt32":2147483648}"#, "anInt32: 2147483648 is out of range");
    refused(r#"{"aUint32":-1}"#, "out of range");
    refused(r#"{"anInt64":"0x10"}"#, "`0x10` is not a number");
    refused(r#"{"anInt32":true}"#, "expected a number, found true");
    refused(r#"{"aBool":"true"}"#, "expected true or false, found a string");
    refused(r#"{"aDouble":1e999}"#, "out of range");
    refused(r#"{"aFloat":3.5e38}"#, "out of range");
    refused(r#"{"aDouble":NaN}"#, "expected a value");
    refused(r#"{"int32s":[1,null]}"#, "int32s[1]: ");
    refused(r#"{"colorsByBool":{"1":"RED"}}"#, "`1` is neither true nor false");
    refused(
        r#"{"innersByInt32":{"1":{"aColor":"GREEN"}}}"#,
        "innersByInt32.1.aColor: everything.Color has no value `GREEN`",
    );
}

#[test]
fn strings_and_bytes_round_trip() {
    let schema = schema();
    let check = |json, printed| check(everything(&schema), json, printed);
    check(r#"{"aString":"a\"\\\/\n\u00e9\ud83d\ude00"}"#, "{\"aString\":\"a\\\"\\\\/\\né😀\"}");
    check(r#"{"someBytes":"-_8"}"#, r#"{"someBytes":"+/8="}"#);
    check(r#"{"byteses":["","AQI="]}"#, r#"{"byteses":["","AQI="]}"#);
    check(r#"{"named_otherwise":"x","farAway":"y"}"#, r#"{"other \"name\"":"x","farAway":"y"}"#);
    check(
        r#"{"textsByText":{"b":"1","a\n":"2"},"bytesByUint64":{"18446744073709551615":"AA=="}}"#,
        r#"{"textsByText":{"b":"1","a\n":"2"},"bytesByUint64":{"18446744073709551615":"AA=="}}"#,
    );
    refused(everything(&schema), r#"{"aString":1}"#, "expected a string, found a number");
    refused(everything(&schema), r#"{"someBytes":"?"}"#, "`?` is not base64");
}

#[test]
fn nulls_are_accepted_and_duplicates_rejected() {
    let schema = schema();
    check(
        everything(&schema),
        r#"{"anInt32":null,"inner":null,"strings":null,"any":null,"stringValue":null}"#,
        "{}",
    );
    check(
        everything(&schema),
        r#"{"value":null,"listValue":[null]}"#,
        r#"{"value":null,"listValue":[null]}"#,
    );
    check(everything(&schema), r#"{"chosenInt32":null,"chosenString":"x"}"#, r#"{"chosenString":"x"}"#);
    let refused = |json, problem| refused(everything(&schema), json, problem);
    refused(r#"{"anInt32":1,"an_int32":1}"#, "anInt32: duplicate field");
    refused(r#"{"chosenInt32":1,"chosenString":"x"}"#, "another field of the same oneof is set");
    refused(r#"{"textsByText":{"a":"1","b":"2","a":"3"}}"#, "textsByText.a: duplicate key");
    refused(r#"{"struct":{"a":1,"a":2}}"#, "duplicate key");
    refused(r#"{"strings":[null]}"#, "expected a string, found null");
    refused(r#"{"inners":[{},null]}"#, "inners[1]: an element must not be null");
    refused(r#"{"textsByText":{"a":null}}"#, "textsByText.a: a value must not be null");
}

#[test]
fn well_known_types() {
    let schema = schema();
    let check = |json, printed| check(everything(&schema), json, printed);
    check(
        r#"{"timestamp":"2024-02-29T13:00:00.5+01:00","duration":"-1.5s"}"#,
        r#"{"timestamp":"2024-02-29T12:00:00.500Z","duration":"-1.500s"}"#,
    );
    check(
        r#"{"timestamps":["0001-01-01T00:00:00Z","9999-12-31T23:59:59.999999999Z"]}"#,
        r#"{"timestamps":["0001-01-01T00:00:00Z","9999-12-31T23:59:59.999999999Z"]}"#,
    );
    check(r#"{"fieldMask":"fooBar,a.bC"}"#, r#"{"fieldMask":"fooBar,a.bC"}"#);
    check(
        r#"{"struct":{"a":[1,"x",null,true,{"b":{}}]},"value":1.5}"#,
        r#"{"struct":{"a":[1,"x",null,true,{"b":{}}]},"value":1.5}"#,
    );
    check(
        r#"{"int64Value":"5","stringValue":"","bytesValue":"AA==","doubleValue":"NaN","boolValue":false,"empty":{}}"#,
        r#"{"int64Value":"5","stringValue":"","bytesValue":"AA==","doubleValue":"NaN","boolValue":false,"empty":{}}"#,
    );
    check(
        r#"{"any":{"aString":"x","@type":"type.googleapis.com/everything.Everything"}}"#,
        r#"{"any":{"@type":"type.googleapis.com/everything.Everything","aString":"x"}}"#,
    );
    let null = r#"{"@type":"x/google.protobuf.Value","value":null}"#;
    check(
        &format!(r#"{{"anys":[{{"value":"1s","@type":"x/google.protobuf.Duration"}},{null},{{}}]}}"#),
        &format!(r#"{{"anys":[{{"@type":"x/google.protobuf.Duration","value":"1s"}},{null},{{}}]}}"#),
    );
    let refused = |json, problem| refused(everything(&schema), json, problem);
    refused(
        r#"{"timestamp":"2024-02-30T00:00:00Z"}"#,
        "timestamp: `2024-02-30T00:00:00Z` is not a timestamp",
    );
    refused(r#"{"duration":"1"}"#, "`1` is not a duration");
    refused(r#"{"fieldMask":"foo_bar"}"#, "`foo_bar` is not a path");
    refused(r#"{"any":{"@type":"x/no.Such"}}"#, "unknown type `x/no.Such`");
    refused(r#"{"any":{"@type":"everything.Everything"}}"#, "unknown type");
    refused(r#"{"any":{"aString":"x"}}"#, "missing member `@type` of an Any");
    refused(r#"{"any":{"@type":"x/google.protobuf.Duration"}}"#, "lacks the member `value`");
    refused(
        r#"{"any":{"@type":"x/everything.Everything","@type":"x/everything.Everything"}}"#,
        "duplicate member",
    );
    refused(r#"{"value":"#, "found the end of the text");
}

#[test]
fn values_without_json_form_are_errors() {
    let schema = schema();
    let message_type = everything(&schema);
    for (wire, problem) in [
        // A timestamp and a duration with 10^9 nanoseconds.
        (&b"\xc2\x04\x06\x10\x80\x94\xeb\xdc\x03"[..], "google.protobuf.Timestamp: out of range"),
        (b"\xca\x04\x06\x10\x80\x94\xeb\xdc\x03", "google.protobuf.Duration: out of range"),
        (b"\x72\x01\xff", "everything.Everything.a_string: a string is not UTF-8"),
        // An infinite number in a Value; a path with capitals; an Any of an unknown type.
        (b"\xe2\x04\x09\x11\0\0\0\0\0\0\xf0\x7f", "google.protobuf.Value: JSON cannot represent"),
        (b"\xd2\x04\x03\x0a\x01A", "google.protobuf.FieldMask: a path"),
        (b"\xba\x04\x05\x0a\x03x/y", "an Any holds the unknown type `x/y`"),
        (b"\x72\x05a", "at byte 1: a length exceeds the rest"),
        (b"\x0f", "at byte 0: invalid wire type 6 or 7"),
    ] {
        let error = json::from_wire(message_type, wire).expect_err(problem).to_string();
        assert!(error.contains(problem), "{wire:02x?}: {error}");
    }
}

#[test]
fn extensions_groups_and_closed_enums() {
    let schema = schema();
    let check = |json, printed| check(extended(&schema), json, printed);
    check(
        r#"{"id":0,"part":{"size":1,"whole":{"id":2}},"piece":[{"label":"a"},{}],"packed":[1,2]}"#,
        r#"{"id":0,"part":{"size":1,"whole":{"id":2}},"piece":[{"label":"a"},{}],"packed":[1,2]}"#,
    );
    let extensions = concat!(
        r#"{"id":1,"[extended.number_extension]":"5","[extended.Scope.nested_extension]":{"id":2},"#,
        r#""[extended.text_extensions]":["x"]}"#
    );
    check(extensions, extensions);
    check(
        r#"{"id":1,"level":7,"levels":["LOW",1],"switchesByText":{"a":"ON"}}"#,
        r#"{"id":1,"level":"HIGH","levels":["LOW","LOW"],"switchesByText":{"a":"ON"}}"#,
    );
    refused(
        extended(&schema),
        r#"{"level":3}"#,
        "the closed enum extended.Level has no value with the number 3",
    );
    refused(extended(&schema), r#"{"[extended.other]":3}"#, "has no field `[extended.other]`");
    // Unknown numbers of a closed enum are unknown fields.
    let wire = b"\x08\x01\x18\x03\x20\x01\x20\x63\x2a\x05\x0a\x01a\x10\x05\x2a\x05\x0a\x01b\x10\x01";
    assert_eq!(
        json::from_wire(extended(&schema), wire).as_deref(),
        Ok(r#"{"id":1,"levels":["LOW"],"switchesByText":{"b":"ON"}}"#)
    );
    // An omitted map value is the enum's first value.
    assert_eq!(
        json::from_wire(extended(&schema), b"\x08\x01\x2a\x03\x0a\x01a").as_deref(),
        Ok(r#"{"id":1,"switchesByText":{"a":"OFF"}}"#)
    );
}

#[test]
fn missing_required_fields_are_errors() {
    let schema = schema();
    let message_type = extended(&schema);
    let whole = b"\x08\x01\x33\x12\x02\x08\x02\x34";
    let printed = r#"{"id":1,"part":{"whole":{"id":2}}}"#;
    check(message_type, printed, printed);
    assert_eq!(json::from_wire(message_type, whole).as_deref(), Ok(printed));

    let (mut partial, options) = (Vec::new(), ParseOptions::default().allow_partial(true));
    for (json, problem) in [
        ("{}", "line 1, column 3: missing required field `id`"),
        (r#"{"part":{}}"#, "missing required field `id`"),
        (r#"{"id":null}"#, "id: a required field must not be null"),
        (r#"{"id":1,"part":{"whole":{}}}"#, "part.whole: missing required field `id`"),
        (r#"{"id":1,"[extended.Scope.nested_extension]":{"name":"x"}}"#, "missing required field `id`"),
    ] {
        refused(message_type, json, problem);
        partial.clear();
        json::parse(message_type, json.as_bytes(), &options, &mut partial).expect(json);
        let error = json::from_wire(message_type, &partial).expect_err(json);
        assert_eq!(error.to_string(), "missing required field extended.Extended.id", "{json}");
        assert_eq!(msgpack::from_wire(message_type, &partial), Err(error));
        let (mut text, options) = (Vec::new(), PrintOptions::default().allow_partial(true));
        json::print(message_type, &partial, &options, &mut text).expect("it may be partial");
        assert_eq!(String::from_utf8_lossy(&text), json.replace(r#""id":null"#, ""));
    }
    // A field missing in one piece may come in another.
    let pieces = b"\x33\x12\x02\x12\x00\x34\x08\x01\x33\x12\x02\x08\x02\x34";
    let printed = r#"{"id":1,"part":{"whole":{"id":2,"name":""}}}"#;
    assert_eq!(json::from_wire(message_type, pieces).as_deref(), Ok(printed));
    // Inside an Any.
    let any = r#"{"any":{"@type":"x/extended.Extended","name":"x"}}"#;
    refused(everything(&schema), any, "any: missing required field `id`");
    partial.clear();
    json::parse(everything(&schema), any.as_bytes(), &options, &mut partial).expect(any);
    let error = json::from_wire(everything(&schema), &partial).expect_err(any).to_string();
    assert_eq!(error, "missing required field extended.Extended.id");
}

/// Each level of an Any is normalised; the levels must not multiply the work.
#[test]
fn unordered_nested_records_take_linear_time() {
    use thalweg_protobuf::wire::{Tag, WireType, put_tag, put_varint};
    let schema = schema();
    let len = |number: u32, bytes: &[u8]| {
        let mut record = Vec::new();
        put_tag(&mut record, Tag::new(number, WireType::Len));
        put_varint(&mut record, bytes.len() as u64);
        record.extend_from_slice(bytes);
        record
    };
    let deep = (0..49).fold(Vec::new(), |inner, _| {
        let any = [len(1, b"x/everything.Everything"), len(2, &inner)].concat();
        [&len(71, &any)[..], b"\x18\x01\x18\x02"].concat()
    });
    let printed = json::from_wire(everything(&schema), &deep).map(|json| json.matches("anInt32").count());
    assert_eq!(printed, Ok(49));
}

/// The wire format allows a field's records to be scattered and repeated.
#[test]
fn records_in_any_order_are_merged() {
    let schema = schema();
    let message_type = everything(&schema);
    for (wire, json) in [
        (&b"\x18\x01\x18\x02"[..], r#"{"anInt32":2}"#),
        (b"\x18\x01\x18\x00", "{}"),
        (b"\xa8\x01\x01\xa8\x01\x00", r#"{"maybeInt32":0}"#),
        (b"\xaa\x02\x01a\x18\x01\xaa\x02\x01b", r#"{"anInt32":1,"strings":["a","b"]}"#),
        (b"\x8a\x01\x02\x18\x01\x8a\x01\x02\x20\x02", r#"{"inner":{"anInt32":1,"anInt64":"2"}}"#),
        (b"\xe8\x03\x01\xf2\x03\x01a", r#"{"chosenString":"a"}"#),
        (b"\xfa\x03\x02\x18\x01\xfa\x03\x02\x20\x02", r#"{"chosenInner":{"anInt32":1,"anInt64":"2"}}"#),
        (b"\x9a\x03\x06\x0a\x01a\x12\x01b\x9a\x03\x06\x0a\x01a\x12\x01c", r#"{"textsByText":{"a":"c"}}"#),
        (
            b"\xa2\x03\x0a\x08\x01\x12\x02\x18\x01\x12\x02\x20\x02",
            r#"{"innersByInt32":{"1":{"anInt32":1,"anInt64":"2"}}}"#,
        ),
        (b"\xe2\x04\x02\x20\x01\xe2\x04\x03\x1a\x01x", r#"{"value":"x"}"#),
        // In an Any, and mixed packed and unpacked.
        (
            b"\xba\x04\x1f\x0a\x17x/everything.Everything\x12\x04\x18\x01\x18\x02",
            r#"{"any":{"@type":"x/everything.Everything","anInt32":2}}"#,
        ),
        (b"\x88\x02\x01\x8a\x02\x02\x02\x03\x88\x02\x04", r#"{"int32s":[1,2,3,4]}"#),
    ] {
        assert_eq!(json::from_wire(message_type, wire).as_deref(), Ok(json), "{wire:02x?}");
        let msgpack = msgpack::from_wire(message_type, wire).expect(json);
        let wire = msgpack::to_wire(message_type, &msgpack).expect(json);
        assert_eq!(json::from_wire(message_type, &wire).as_deref(), Ok(json), "{msgpack:02x?}");
    }
}

#[test]
fn print_options_take_effect() {
    let schema = schema();
    let message_type = extended(&schema);
    let wire =
        json::to_wire(message_type, br#"{"id":1,"part":{"size":2},"levels":[1]}"#).expect("JSON of the type");
    let printed = |options: &PrintOptions| {
        let mut json = b"> ".to_vec();
        json::print(message_type, &wire, options, &mut json).expect("it has JSON");
        String::from_utf8(json).expect("JSON is UTF-8")
    };
    let plain = PrintOptions::default();
    assert_eq!(printed(&plain), r#"> {"id":1,"part":{"size":2},"levels":["LOW"]}"#);
    let defaults = plain.clone().defaults(true);
    assert_eq!(
        printed(&defaults),
        r#"> {"id":1,"part":{"size":2},"levels":["LOW"],"switchesByText":{},"piece":[],"packed":[]}"#
    );
    let schema_names = plain.clone().schema_names(true).enum_numbers(true);
    assert_eq!(printed(&schema_names), r#"> {"id":1,"part":{"size":2},"levels":[1]}"#);
    let pretty = plain.pretty(true).defaults(true);
    let expected = r#"> {
  "id": 1,
  "part": {
    "size": 2
  },
  "levels": [
    "LOW"
  ],
  "switchesByText": {},
  "piece": [],
  "packed": []
}"#;
    assert_eq!(printed(&pretty), expected);
    let mut json = Vec::new();
    json::print(everything(&schema), b"", &defaults, &mut json).expect("it has JSON");
    let json = String::from_utf8(json).expect("JSON is UTF-8");
    assert!(json.starts_with(r#"{"aDouble":0,"aFloat":0,"anInt32":0,"anInt64":"0","#), "{json}");
    assert!(json.contains(r#""aColor":"UNKNOWN","doubles":[]"#), "{json}");
    assert!(!json.contains("maybe") && !json.contains("chosen") && !json.contains("inner\""), "{json}");
}

#[test]
fn unknown_names_are_rejected_or_ignored() {
    let schema = schema();
    let json = concat!(
        r#"{"anInt32":1,"new":{"a":[1,{"b":null}]},"aColor":"GREEN","#,
        r#""colors":["RED","GREEN"],"colorsByBool":{"true":"GREEN","false":"RED"}}"#
    );
    refused(everything(&schema), json, "line 1, column 14: everything.Everything has no field `new`");
    let options = ParseOptions::default().ignore_unknown(true);
    let mut wire = b"kept".to_vec();
    json::parse(everything(&schema), json.as_bytes(), &options, &mut wire)
        .expect("what is unknown is ignored");
    assert_eq!(
        json::from_wire(everything(&schema), &wire[4..]).as_deref(),
        Ok(r#"{"anInt32":1,"colors":["RED"],"colorsByBool":{"false":"RED"}}"#)
    );
    // Nothing is appended on error.
    let mut wire = b"kept".to_vec();
    json::parse(everything(&schema), br#"{"anInt32":1"#, &options, &mut wire).expect_err("it has no end");
    assert_eq!(wire, b"kept");
}

#[test]
fn nesting_depth_is_limited() {
    let schema = schema();
    let message_type = everything(&schema);
    let nested = |name: &str, open: &str, close: &str, depth: usize| {
        format!("{{\"{name}\":{}1{}}}", open.repeat(depth), close.repeat(depth))
    };
    for (name, open, close, per_level) in
        [("inner", "{\"inner\":", "}", 1), ("value", "[", "]", 2), ("value", "{\"a\":", "}", 3)]
    {
        let json = nested(name, open, close, 100_000);
        let error = json::to_wire(message_type, json.as_bytes()).expect_err("it is deep").to_string();
        assert!(error.contains("too deep"), "{error}");
        let json = nested(name, open, close, 99 / per_level).replace("{\"inner\":1}", "{}");
        let wire = json::to_wire(message_type, json.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(json::from_wire(message_type, &wire).as_deref(), Ok(&*json));
        let msgpack = msgpack::from_wire(message_type, &wire).expect("as deep as JSON");
        assert_eq!(msgpack::to_wire(message_type, &msgpack), Ok(wire));
    }
    let ignored = format!("{{\"new\":{}", "[".repeat(1_000_000));
    let options = ParseOptions::default().ignore_unknown(true);
    let error =
        json::parse(message_type, ignored.as_bytes(), &options, &mut Vec::new()).expect_err("it is deep");
    assert!(error.to_string().contains("too deep"), "{error}");
    // 200 nested messages on the wire.
    let deep = (0..200).fold(Vec::new(), |inner: Vec<u8>, _| {
        let mut outer = vec![0x8a, 0x01];
        thalweg_protobuf::wire::put_varint(&mut outer, inner.len() as u64);
        outer.extend(inner);
        outer
    });
    let error = json::from_wire(message_type, &deep).expect_err("it is deep").to_string();
    assert!(error.contains("deeper than allowed"), "{error}");
}

#[test]
fn printed_length_is_limited() {
    let schema = schema();
    let wire = [0xc2, 0x02, 0x00].repeat(1000);
    let printed = |len_max| {
        let options = PrintOptions::default().defaults(true).len_max(len_max);
        json::print(everything(&schema), &wire, &options, &mut Vec::new())
    };
    assert_eq!(printed(10 << 20), Ok(()));
    assert_eq!(printed(100_000), Err(json::PrintError::TooLong { max: 100_000 }));
}

#[test]
fn msgpack_uses_its_native_types() {
    let schema = schema();
    let message_type = everything(&schema);
    let json = br#"{"anInt64":"-5","someBytes":"AQI=","timestamp":"1970-01-01T00:00:01.5Z","innersByInt32":{"7":{}}}"#;
    let wire = json::to_wire(message_type, json).expect("JSON of the type");
    let msgpack = msgpack::from_wire(message_type, &wire).expect("MessagePack form exists");
    let expected = [
        &b"\x84\xa7anInt64\xfb\xa9someBytes\xc4\x02\x01\x02\xa9timestamp\xd7\xff"[..],
        &(500_000_000_u64 << 34 | 1).to_be_bytes(),
        b"\xadinnersByInt32\x81\x07\x80",
    ];
    assert_eq!(msgpack, expected.concat());
    for (bytes, problem) in [
        (&b""[..], "at byte 0: expected a value, found the end"),
        (b"\x81", "found the end of the bytes"),
        (b"\x81\xa3new\x01", "at byte 1: everything.Everything has no field `new`"),
        (b"\x81\xa7anInt32\xa1x", "anInt32: `x` is not a whole number"),
        (b"\x81\xa7anInt32\xcb\x3f\xf8\0\0\0\0\0\0", "anInt32: 1.5 is not a whole number"),
        (b"\x81\xa7aString\xa2\xff\xff", "a string is not UTF-8"),
        (b"\x81\xa7aString\xdb\xff\xff\xff\xff", "unexpected end inside a value"),
        (b"\x81\xa7strings\xdd\xff\xff\xff\xff", "found the end of the bytes"),
        (b"\x80\x80", "trailing bytes after the message"),
        (b"\xc1", "invalid byte 0xc1"),
        (b"\x81\xa9timestamp\xd4\x01\x00", "timestamp outside"),
        (b"\x81\xa5value\xcb\x7f\xf8\0\0\0\0\0\0", "value: a google.protobuf.Value cannot hold NaN"),
        (b"\x81\xa5value\xca\xff\x80\0\0", "value: a google.protobuf.Value cannot hold -inf"),
        (b"\x81\xa5value\x91\xcb\x7f\xf0\0\0\0\0\0\0", "a google.protobuf.Value cannot hold inf"),
    ] {
        let error = msgpack::to_wire(message_type, bytes).expect_err(problem).to_string();
        assert!(error.contains(problem), "{bytes:02x?}: {error}");
    }
    // More than 15 members, and more than 65,535 elements, have longer headers.
    let json = format!(r#"{{"int32s":[{}1],"anInt32":1}}"#, "1,".repeat(70_000));
    check(message_type, &json, &json);
}
