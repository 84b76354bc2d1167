//! Single fields, as HTTP transcoding uses them: as a whole body, as an unquoted value, and as paths.

use thalweg_protobuf::json::{self, ParseOptions, PrintOptions};
use thalweg_protobuf::{Field, Message, Schema, sources};

const SOURCE: &str = r#"
    syntax = "proto3";
    import "google/protobuf/any.proto";
    import "google/protobuf/field_mask.proto";
    import "google/protobuf/struct.proto";
    import "google/protobuf/timestamp.proto";
    import "google/protobuf/wrappers.proto";
    enum Colour { NONE = 0; RED = 1; }
    message Item { string long_name = 1; int32 size = 2; Item inner = 3; }
    message All {
        Item item = 1; repeated Item items = 2; map<string, Item> by_name = 3; repeated sint32 numbers = 4;
        repeated Colour colours = 5; fixed64 fixed = 6; string text = 7; bool flag = 8;
        google.protobuf.Timestamp time = 9; google.protobuf.FieldMask mask = 10; google.protobuf.Struct object = 11;
        google.protobuf.Any any = 12; google.protobuf.BytesValue bytes = 13; repeated float floats = 14;
        google.protobuf.Value value = 15;
    }"#;

fn schema() -> Schema {
    let set = sources::compile(&["all.proto"], |name| (name == "all.proto").then(|| SOURCE.to_owned()));
    Schema::from_descriptor_set(&set.unwrap()).unwrap()
}

fn field<'s>(schema: &'s Schema, name: &str) -> Field<'s> {
    schema.message("All").unwrap().field(name).unwrap()
}

/// Returns the JSON of the message with these wire records.
fn json_of(schema: &Schema, wire: Vec<u8>) -> String {
    let message = Message::decode(schema.message("All").unwrap(), wire).unwrap();
    json::from_message(message.as_ref()).unwrap()
}

#[test]
fn single_fields_are_parsed_and_printed() {
    let schema = schema();
    for (name, json_name, value) in [
        ("item", "item", r#"{"longName":"a","inner":{"size":1}}"#),
        ("items", "items", r#"[{"size":1},{},{"longName":"x"}]"#),
        ("by_name", "byName", r#"{"a":{"size":1},"b":{}}"#),
        ("numbers", "numbers", "[1,-2,300]"),
        ("colours", "colours", r#"["RED","NONE"]"#),
        ("fixed", "fixed", "\"5\""),
        ("text", "text", "\"a\\nb\""),
        ("time", "time", "\"1970-01-01T00:00:05Z\""),
        ("object", "object", r#"{"a":[1,{"b":null}]}"#),
    ] {
        let (field, mut wire) = (field(&schema, name), vec![0x38, 1]);
        json::parse_field(field, value.as_bytes(), &ParseOptions::default(), &mut wire).unwrap();
        assert_eq!(wire[..2], [0x38, 1], "{name}");
        assert_eq!(json_of(&schema, wire[2..].to_vec()), format!("{{\"{json_name}\":{value}}}"));
        // It is found among other fields, and existing output is kept.
        wire[..2].copy_from_slice(&[0x40, 1]);
        let mut printed = b"x".to_vec();
        json::print_field(field, &wire, &PrintOptions::default(), &mut printed).unwrap();
        assert_eq!(String::from_utf8(printed).unwrap(), format!("x{value}"));
    }
}

#[test]
fn invalid_field_leaves_the_output_unchanged() {
    let schema = schema();
    for (name, value, expected) in [
        ("items", "[{\"size\":\n\"x\"}]", "line 2, column 1: items[0].size: `x` is not a number"),
        ("items", "{}", "line 1, column 1: items: expected an array, found an object"),
        ("text", "\"a\" 1", "line 1, column 5: expected the end of the text, found '1'"),
    ] {
        let mut wire = vec![7];
        let error =
            json::parse_field(field(&schema, name), value.as_bytes(), &ParseOptions::default(), &mut wire);
        assert_eq!(error.unwrap_err().to_string(), expected);
        assert_eq!(wire, [7]);
    }
}

#[test]
fn unquoted_values_are_parsed() {
    let schema = schema();
    let parse = |name: &str, text: &str| {
        let mut wire = Vec::new();
        match json::parse_text(field(&schema, name), text, &ParseOptions::default(), &mut wire) {
            Ok(()) => json_of(&schema, wire),
            Err(error) => {
                assert!(wire.is_empty());
                error.problem
            }
        }
    };
    for (name, text, expected) in [
        ("numbers", "-3", r#"{"numbers":[-3]}"#),
        ("floats", "1.5", r#"{"floats":[1.5]}"#),
        ("colours", "RED", r#"{"colours":["RED"]}"#),
        ("colours", "1", r#"{"colours":["RED"]}"#),
        ("colours", "5", r#"{"colours":[5]}"#),
        ("fixed", "18446744073709551615", r#"{"fixed":"18446744073709551615"}"#),
        ("text", "\"a\" 1", r#"{"text":"\"a\" 1"}"#),
        ("flag", "true", r#"{"flag":true}"#),
        ("time", "1970-01-01T00:00:05Z", r#"{"time":"1970-01-01T00:00:05Z"}"#),
        ("mask", "a_b.c,dE", r#"{"mask":"aB.c,dE"}"#),
        ("object", r#"{"a":1}"#, r#"{"object":{"a":1}}"#),
        ("value", "null", r#"{"value":null}"#),
        ("bytes", "-_8", r#"{"bytes":"+/8="}"#),
        ("any", r#"{"@type":"x/Item","size":1}"#, r#"{"any":{"@type":"x/Item","size":1}}"#),
        ("numbers", "2147483648", "2147483648 is out of range"),
        ("colours", "BLUE", "Colour has no value `BLUE`"),
        ("flag", "True", "`True` is neither true nor false"),
        ("mask", "a__b", "invalid field path `a__b`"),
        ("item", "{}", "Item is a message and cannot be set from a single value"),
        ("by_name", "{}", "a map cannot be set from a single value"),
        ("object", "1", "expected an object, found a number"),
        ("object", "{} 1", "expected the end of the text, found '1'"),
    ] {
        assert_eq!(parse(name, text), expected, "{name} {text}");
    }
    // Zero is written, to replace an earlier value.
    let mut wire = Vec::new();
    json::parse_text(field(&schema, "flag"), "false", &ParseOptions::default(), &mut wire).unwrap();
    assert_eq!(wire, [0x40, 0]);
}

#[test]
fn field_paths_lists_the_present_fields() {
    let schema = schema();
    let paths = |text: &str, options: &ParseOptions| {
        json::field_paths(schema.message("All").unwrap(), text.as_bytes(), options)
            .map_or_else(|error| error.to_string(), |paths| paths.join(" "))
    };
    let strict = ParseOptions::default();
    for (text, expected) in [
        ("{}", ""),
        (
            r#"{"item":{"longName":"a","inner":{"size":null}},"text":null}"#,
            "item.long_name item.inner.size text",
        ),
        (r#"{"item":{},"items":[{"size":1}],"byName":{"a":{"size":1}}}"#, "item items by_name"),
        (r#"{"item":null,"time":"x","object":{"a":{"b":1}},"mask":""}"#, "item time object mask"),
        (r#"{"item":{"x":1}}"#, "line 1, column 10: item: Item has no field `x`"),
        ("{\"text\":", "line 1, column 9: text: expected a value, found the end of the text"),
        ("[]", "line 1, column 1: expected an object, found an array"),
        ("{} {}", "line 1, column 4: expected the end of the text, found '{'"),
    ] {
        assert_eq!(paths(text, &strict), expected, "{text}");
    }
    let lenient = strict.clone().ignore_unknown(true);
    assert_eq!(paths(r#"{"x":{"y":[1]},"item":{"z":1,"size":2}}"#, &lenient), "item.size");
    // The nesting depth is limited.
    let deep = |len: usize| {
        format!("{}{{}}{}", "{\"item\":".to_owned() + &"{\"inner\":".repeat(len), "}".repeat(len + 1))
    };
    assert!(!paths(&deep(99), &strict).contains("deep"));
    assert!(paths(&deep(100), &strict).contains("too deep"));
}

#[test]
fn field_paths_stop_at_the_length_limit() {
    let schema = schema();
    let text =
        format!("{}{{\"size\":1}}{}", "{\"item\":".to_owned() + &"{\"inner\":".repeat(80), "}".repeat(81));
    let paths = |len_max| {
        let options = ParseOptions::default().len_max(len_max);
        json::field_paths(schema.message("All").unwrap(), text.as_bytes(), &options)
    };
    let path = format!("item.{}size", "inner.".repeat(80));
    let len = path.len() + 40;
    assert_eq!(paths(len).unwrap(), [path]);
    assert!(paths(len - 1).unwrap_err().is_too_long);
}

/// Two bytes of JSON can become eleven on the wire: building stops at the limit, not at the end of the text.
#[test]
fn parsing_stops_at_the_length_limit() {
    let schema = schema();
    let list = |element: &str, count: usize| format!("[{}]", vec![element; count].join(","));
    for (field_name, value) in [
        ("value", list("0", 10_000)),
        ("items", list("{}", 10_000)),
        ("mask", format!("\"{}\"", vec!["A"; 10_000].join(","))),
        ("object", format!("{{{}}}", (0..5_000).map(|n| format!("\"{n}\":0")).collect::<Vec<_>>().join(","))),
        (
            "byName",
            format!("{{{}}}", (0..5_000).map(|n| format!("\"{n}\":{{}}")).collect::<Vec<_>>().join(",")),
        ),
    ] {
        let text = format!("{{\"{field_name}\":{value}}}");
        let parse = |len_max| {
            let options = ParseOptions::default().len_max(len_max);
            // Existing bytes do not count.
            let mut wire = vec![1, 2, 3];
            let parsed = json::parse(schema.message("All").unwrap(), text.as_bytes(), &options, &mut wire);
            assert_eq!(&wire[..3], [1, 2, 3]);
            parsed.map(|()| wire.len() - 3)
        };
        let len = parse(usize::MAX).unwrap();
        assert_eq!(parse(len), Ok(len));
        let error = parse(len / 10).unwrap_err();
        assert!(error.is_too_long, "{field_name}: {error}");
        let is_early = field_name == "mask" || error.offset < text.len() / 5;
        assert!(is_early, "{field_name}: {} of {}", error.offset, text.len());
        assert!(parse(len - 1).is_err(), "{field_name}");
    }
}
