//! Hand-written text format and its errors. The conformance suite covers the language; `text_random` checks that
//! another parser reads the output.

use thalweg_protobuf::json::{ParseOptions, PrintOptions};
use thalweg_protobuf::{Schema, json, sources};
use thalweg_protobuf_text::text_format;

const SHOP: &str = r#"
syntax = "proto2";
package shop;
import "google/protobuf/any.proto";
message Order {
  optional int32 id = 1;
  optional string note = 2;
  repeated Size sizes = 3;
  map<string, Item> items = 4;
  optional google.protobuf.Any extra = 5;
  optional group Address = 6 { optional string city = 1; }
  oneof how { bool by_post = 7; string by = 8; }
  optional bytes token = 9;
  optional double price = 10;
  extensions 100 to 200;
  reserved 20; reserved "colour";
}
message Item { optional int32 count = 1; optional Order of = 2; }
enum Size { SMALL = 1; LARGE = 2; }
extend Order { optional Item gift = 100; }
"#;

const FREE: &str = r#"
syntax = "proto3";
package free;
message Point {
  int32 x = 1; repeated int32 row = 2; optional int32 y = 3; map<int32, bool> marks = 4; Kind kind = 5;
  string name = 6;
}
enum Kind { NONE = 0; SOME = 1; }
"#;

fn schema() -> Schema {
    let set = sources::compile(&["shop.proto", "free.proto"], |name| match name {
        "shop.proto" => Some(SHOP.to_owned()),
        "free.proto" => Some(FREE.to_owned()),
        _ => None,
    });
    Schema::from_descriptor_set(&set.expect("the files compile")).expect("a schema")
}

#[test]
fn each_field_is_printed_on_its_own_line() {
    let schema = schema();
    let order = schema.message("shop.Order").unwrap();
    let text = r#"
        # Written by a person.
        id: 0x2a, note: 'it' 's "here"' "\n\101";
        sizes: [SMALL, LARGE] sizes: 1
        items { key: "boot" value < count: 2 > }
        extra { [type.googleapis.com/shop.Item]: { count: -3 } }
        Address { city: "Bergen" }
        by: "bike"
        token: "\000\377é"
        price: 1e3f
        [shop.gift] { of { id: 1 } }
        colour: [1, { any: "thing" }]
    "#;
    let printed = r#"id: 42
note: "its \"here\"\nA"
sizes: SMALL
sizes: LARGE
sizes: SMALL
items {
  key: "boot"
  value {
    count: 2
  }
}
extra {
  [type.googleapis.com/shop.Item] {
    count: -3
  }
}
Address {
  city: "Bergen"
}
by: "bike"
token: "\000\377\303\251"
price: 1000.0
[shop.gift] {
  of {
    id: 1
  }
}
"#;
    let wire = text_format::to_wire(order, text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(text_format::from_wire(order, &wire).unwrap(), printed);
    assert_eq!(text_format::to_wire(order, printed.as_bytes()).unwrap(), wire);

    let mut line = String::new();
    let unknown_types = text_format::print(order, &wire, &PrintOptions::default(), &mut line).unwrap();
    assert!(unknown_types.is_empty());
    let end = "Address { city: \"Bergen\" } by: \"bike\" token: \"\\000\\377\\303\\251\" price: 1000.0 \
               [shop.gift] { of { id: 1 } }";
    assert!(line.ends_with(end), "{line}");
    assert!(!line.contains('\n'), "{line}");
    assert_eq!(text_format::to_wire(order, line.as_bytes()).unwrap(), wire);
}

#[test]
fn unknown_fields_are_printed_by_number() {
    let schema = schema();
    let order = schema.message("shop.Order").unwrap();
    // A number, eight bytes, a message, bytes that are not a message, a group, four bytes; a closed enum; an Any.
    let wire = [
        &b"\x78\x05\x79\x01\0\0\0\0\0\0\0\x7a\x02\x08\x01\x7a\x02\xff\xff\x7b\x08\x01\x7c\x7d\x02\0\0\0"[..],
        b"\x18\x09",
        b"\x2a\x0d\x0a\x09a.b/c.D.E\x12\x00",
    ]
    .concat();
    let expected = "extra {\n  type_url: \"a.b/c.D.E\"\n}\n15: 5\n15: 0x0000000000000001\n15 {\n  1: 1\n}\n\
                    15: \"\\377\\377\"\n15 {\n  1: 1\n}\n15: 0x00000002\n3: 9\n";
    let mut text = String::new();
    let options = PrintOptions::default().pretty(true);
    let unknown_types = text_format::print(order, &wire, &options, &mut text).unwrap();
    assert_eq!(text, expected);
    assert_eq!(unknown_types, ["a.b/c.D.E"]);
}

#[test]
fn unset_fields_are_printed_on_request() {
    let schema = schema();
    let point = schema.message("free.Point").unwrap();
    let mut text = String::new();
    let options = PrintOptions::default().defaults(true);
    text_format::print(point, b"", &options, &mut text).unwrap();
    assert_eq!(text, "x: 0 row: [] marks: [] kind: NONE name: \"\"");
    assert_eq!(text_format::to_wire(point, text.as_bytes()).unwrap(), b"");
}

#[test]
fn invalid_text_is_rejected_with_its_position() {
    let schema = schema();
    let check = |message: &str, text: &str, expected: &str| {
        let error = text_format::to_wire(schema.message(message).unwrap(), text.as_bytes()).unwrap_err();
        assert!(error.to_string().starts_with(expected), "{text}: {error}");
    };
    let order = |text, expected| check("shop.Order", text, expected);
    order("id: 1\n  nothing: 2", "line 2, column 3: shop.Order has no field `nothing`");
    order("id 1", "line 1, column 4: id: expected `:`, found `1`");
    order("id: 'x'", "line 1, column 5: id: expected a value of type int32, found a string");
    order("id: 2147483648", "line 1, column 5: id: `2147483648` is not a valid int32");
    order("id: 1 id: 2", "line 1, column 7: id: duplicate field");
    order("by: 'x' by_post: true", "line 1, column 9: by_post: by is already set, in the same oneof how");
    order("sizes: MEDIUM", "line 1, column 8: sizes: `MEDIUM` is not a valid shop.Size");
    order("sizes: 9", "line 1, column 8: sizes: `9` is not a valid shop.Size");
    order("sizes: [SMALL LARGE]", "line 1, column 15: sizes: expected `,` or `]`, found `LARGE`");
    order("items { value { count: x } }", "line 1, column 24: items.value.count: `x` is not a valid int32");
    order("Address { city: 'x'", "line 1, column 20: address: unterminated message: expected `}`");
    order("Address { city: 'x' >", "line 1, column 21: address: expected a field name, found `>`");
    order("note: 'x", "line 1, column 7: note: unterminated string");
    check("free.Point", "name: '\\xff'", "line 1, column 7: name: the string is not UTF-8");
    order("1: 2", "line 1, column 1: expected a field name, found a number");
    order("[shop.nothing] {}", "line 1, column 1: shop.Order has no field `[shop.nothing]`");
    order("extra { [a.b/no.Type] {} }", "line 1, column 23: extra.[a.b/no.Type]: unknown type");
    order("[a.b/shop.Item] {}", "line 1, column 17: [a.b/shop.Item]: shop.Order is not google.protobuf.Any");
    check("free.Point", "kind: OTHER", "line 1, column 7: kind: `OTHER` is not a valid free.Kind");
    assert_eq!(text_format::to_wire(schema.message("free.Point").unwrap(), b"kind: 9").unwrap(), b"\x28\x09");

    let deep = "items { value { of { ".repeat(50);
    order(&deep, "line 1, column 708: items.value.of.items");
}

#[test]
fn unknown_fields_are_skipped_on_request() {
    let schema = schema();
    let point = schema.message("free.Point").unwrap();
    let options = ParseOptions::default().ignore_unknown(true);
    let text = b"a: 1 b { c: [1, -2] [d.e/F] < > } x: 3 g: 'h' 'i' j: -inf [k.l]: {} m [{}, <n: 1>]";
    let mut wire = Vec::new();
    text_format::parse(point, text, &options, &mut wire).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(json::from_wire(point, &wire).unwrap(), r#"{"x":3}"#);
    for wrong in [&b"a: }"[..], b"a { : }", b"a: [", b"a { b: 1", &[b'['; 300], &b"a{".repeat(300)] {
        text_format::parse(point, wrong, &options, &mut wire).unwrap_err();
    }
}

#[test]
fn arbitrary_text_is_parsed_or_rejected() {
    let schema = schema();
    let order = schema.message("shop.Order").unwrap();
    let text = "id: 0x2a note: 'a\\n\\u00e9' sizes: [SMALL] items { key: 'b' value < count: 2 > } \
                extra { [t.g/shop.Item]: { count: -3 } } price: 1e3f [shop.gift] { }"
        .as_bytes();
    for at in 0..text.len() {
        for byte in [b' ', b'{', b'}', b'[', b']', b'\'', b'"', b'\\', b':', b'-', b'#', b'0', b'.', 0xff] {
            let mut changed = text.to_vec();
            changed[at] = byte;
            if let Ok(wire) = text_format::to_wire(order, &changed) {
                let printed = text_format::from_wire(order, &wire).unwrap();
                assert_eq!(text_format::to_wire(order, printed.as_bytes()).unwrap(), wire, "{printed}");
            }
        }
        text_format::to_wire(order, &text[..at]).ok();
    }
}
