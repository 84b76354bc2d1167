//! Printed text compiles to the original descriptors.

use thalweg_protobuf::sources;
use thalweg_protobuf::{Message, Schema};

use super::Declarations;
use super::descriptor::{list, text};

const OPTIONS: &str = r#"
    syntax = "proto2";
    package opts;
    import "google/protobuf/descriptor.proto";
    message Rule { optional string get = 1; repeated Rule more = 2; optional double weight = 3; }
    extend google.protobuf.MethodOptions { optional Rule http = 50001; }
    extend google.protobuf.FieldOptions { repeated string tags = 50001; optional bool hidden = 50002; }
    extend google.protobuf.MessageOptions { optional Rule rule = 50001; }
    extend google.protobuf.EnumValueOptions { optional int32 weight = 50001; }
"#;

const OLD: &str = r#"
    syntax = "proto2";
    package shop.old;
    import public "opts.proto";
    option java_package = "com.shop";
    option optimize_for = CODE_SIZE;
    // A message with all that proto2 has.
    // On two lines.
    message Order { // Behind the brace.
      option (opts.rule) = { get: "a\nb" more { weight: 1.5 } more { get: "c" } };
      option deprecated = true;
      reserved 5, 7 to 9, 1000 to max;
      reserved "gone", "lost";
      extensions 100 to 199;
      extensions 300;
      required int32 id = 1 [default = -7];
      optional string name = 2 [default = "a \"quoted\"\n\\ tab\t\001", (opts.tags) = "x", (opts.tags) = "y"];
      optional bytes data = 3 [default = "\000\xff\"q"];
      optional double ratio = 4 [default = -inf];
      optional Size size = 6 [default = LARGE, json_name = "HowLarge"];
      repeated int32 numbers = 10 [packed = true, deprecated = true, (opts.hidden) = true,
        (opts.tags) = "a long text for a long line"];
      map<string, Item> items = 11;
      // A group.
      repeated group Part = 12 {
        // In it.
        optional int32 x = 1;
      }
      message Item { optional Size of = 1; message Deep {} }
      oneof choice { // Which?
        string left = 13;
        group Right = 14 { optional bool y = 1; }
      }
      enum Size { SMALL = 0; LARGE = 1 [(opts.weight) = 3]; option allow_alias = true; BIG = 1;
        reserved 4 to 6, 9 to max; reserved "NONE"; }
      extend Order { optional int32 inner = 100; }
      map<int32, Size> sizes = 15;
    }
    extend Order { optional string outer = 101; repeated Order orders = 102; }
    extend Order.Item.Deep { }
"#;

const NEW: &str = r#"
    syntax = "proto3";
    package shop.v1;
    import "opts.proto";
    import weak "old.proto";
    /* A service. */
    service Orders {
      option deprecated = true;
      // Places an order.
      rpc Place(Order) returns (stream Order) {
        option (opts.http) = { get: "/v1/{id}" more { get: "/v2" } }; option idempotency_level = IDEMPOTENT; }
      rpc Watch(stream shop.old.Order) returns (Order); // Behind it.
    }
    message Order {
      optional int32 id = 1;
      repeated int32 unpacked = 2 [packed = false];
      shop mine = 3;
      message shop { int32 x = 1; }
      .shop.v1.Order next = 4;
      oneof by { string mail = 5; int32 number = 6; }
      .shop.old.Order other = 7;
    }
    message Empty {}
"#;

const EDITION_2023: &str = include_str!("../../../protobuf/tests/proto/editions.proto");
const EDITION_2024: &str = include_str!("../../../protobuf/tests/proto/editions_2024.proto");

fn source(name: &str) -> Option<String> {
    let text = match name {
        "opts.proto" => OPTIONS,
        // An empty `extend` block is not valid Protobuf.
        "old.proto" => return Some(OLD.replace("extend Order.Item.Deep { }", "")),
        "new.proto" => NEW,
        "editions.proto" => EDITION_2023,
        "editions_2024.proto" => EDITION_2024,
        _ => return None,
    };
    Some(text.to_owned())
}

/// Returns the file's descriptor without source info.
fn descriptor(set: &[u8], name: &str) -> Message {
    let schema = sources::compile(&["google/protobuf/descriptor.proto"], |_| None).expect("a built-in file");
    let schema = Schema::from_descriptor_set(&schema).expect("a complete set");
    let of = schema.message("google.protobuf.FileDescriptorSet").expect("present");
    let set = Message::decode(of, set.to_vec()).expect("a set");
    let file = list(set.as_ref(), "file").find(|file| text(*file, "name") == name);
    let wire = file.expect("in the set").encode_to_vec();
    let of = schema.message("google.protobuf.FileDescriptorProto").expect("present");
    let mut file = Message::decode(of, wire).expect("a file");
    file.as_mut().clear("source_code_info");
    file
}

#[test]
fn printed_declarations_compile_to_the_same_descriptors() {
    let names = ["opts.proto", "old.proto", "new.proto", "editions.proto", "editions_2024.proto"];
    let set = sources::compile(&names, source).expect("they compile");
    let declarations = Declarations::of(&set).expect("a set");
    for name in names {
        let text = declarations.file(name).expect("in the set");
        let printed = text.clone();
        let again =
            sources::compile(
                &[name],
                move |asked| {
                    if asked == name { Some(printed.clone()) } else { source(asked) }
                },
            );
        let again = again.unwrap_or_else(|error| panic!("{error}\n{text}"));
        let (first, second) = (descriptor(&set, name), descriptor(&again, name));
        let (first, second) = (first.as_ref(), second.as_ref());
        assert_eq!(
            first.encode_to_vec(),
            second.encode_to_vec(),
            "{text}
{first:?}
{second:?}"
        );
        // Printing again gives the same text, including comments.
        assert_eq!(Declarations::of(&again).expect("a set").file(name), Some(text));
    }
}

#[test]
fn declarations_are_found_by_full_name() {
    let set = sources::compile(&["new.proto"], source).expect("they compile");
    let declarations = Declarations::of(&set).expect("a set");
    for (name, file, expected) in [
        ("shop.v1.Empty", "new.proto", "message Empty {}\n"),
        ("shop.v1.Order.shop", "new.proto", "message shop {\n  int32 x = 1;\n}\n"),
        (
            "shop.v1.Orders.Watch",
            "new.proto",
            "rpc Watch(stream .shop.old.Order) returns (shop.v1.Order); // Behind it.\n",
        ),
        (
            "shop.v1.Orders.Place",
            "new.proto",
            "// Places an order.\nrpc Place(shop.v1.Order) returns (stream shop.v1.Order) {\n  option \
             idempotency_level = IDEMPOTENT;\n  option (opts.http) = {\n    get: \"/v1/{id}\"\n    more {\n      get: \
             \"/v2\"\n    }\n  };\n}\n",
        ),
        ("shop.old.outer", "old.proto", "extend shop.old.Order {\n  optional string outer = 101;\n}\n"),
        ("shop.old.Order.inner", "old.proto", "extend shop.old.Order {\n  optional int32 inner = 100;\n}\n"),
    ] {
        let found = declarations.get(name).unwrap_or_default();
        assert_eq!(
            found.replace(".shop.old", "shop.old"),
            expected.replace(".shop.old", "shop.old"),
            "{name}"
        );
        assert_eq!(declarations.file_of(name).as_deref(), Some(file), "{name}");
    }
    let order = declarations.get("shop.old.Order").expect("present");
    for part in [
        "// A message with all that proto2 has.\n// On two lines.\nmessage Order { // Behind the brace.\n",
        "  reserved 5, 7 to 9, 1000 to max;\n  reserved \"gone\", \"lost\";\n",
        "  extensions 100 to 199;\n  extensions 300;\n",
        "  required int32 id = 1 [default = -7];\n",
        "  optional double ratio = 4 [default = -inf];\n",
        "[default = LARGE, json_name = \"HowLarge\"];\n",
        "  // A group.\n  repeated group Part = 12 {\n",
        "  map<string, shop.old.Order.Item> items = 11;\n",
        "    reserved 4 to 6, 9 to max;\n    reserved \"NONE\";\n",
    ] {
        assert!(order.contains(part), "{part}\n{order}");
    }
    for name in ["shop.v1", "shop.v1.Nothing", "shop.v1.Order.id", "", "shop", "shop.v1.Order."] {
        assert_eq!(declarations.get(name), None, "{name}");
    }
}
