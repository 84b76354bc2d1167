//! From descriptors to schemas: properties of fields, and errors.

use thalweg_protobuf::wire::{Tag, WireType, put_tag, put_varint};
use thalweg_protobuf::{Cardinality, Edition, Kind, Problem, Schema, SchemaError, WellKnown, sources};

const EDITIONS: &[u8] = include_bytes!("../proto/editions.binpb");

fn set_of(source: &str) -> Vec<u8> {
    let source = source.to_owned();
    sources::compile(&["a.proto"], move |name| (name == "a.proto").then(|| source.clone()))
        .expect("a right file")
}

fn schema(source: &str) -> Schema {
    Schema::from_descriptor_set(&set_of(source)).expect("a right file")
}

/// Names and numbers of an enum's values.
type Values<'v> = &'v [(&'v str, i64)];

/// Hand-written descriptors, for inputs that no compiler would write.
#[derive(Clone, Default)]
struct Proto(Vec<u8>);

impl Proto {
    fn len(mut self, number: u32, bytes: impl AsRef<[u8]>) -> Proto {
        put_tag(&mut self.0, Tag::new(number, WireType::Len));
        put_varint(&mut self.0, bytes.as_ref().len() as u64);
        self.0.extend_from_slice(bytes.as_ref());
        self
    }

    fn int(mut self, number: u32, value: i64) -> Proto {
        put_tag(&mut self.0, Tag::new(number, WireType::Varint));
        put_varint(&mut self.0, value as u64);
        self
    }
}

impl AsRef<[u8]> for Proto {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

fn proto() -> Proto {
    Proto::default()
}

/// Returns a field of type int32; a later type replaces it, because the last value wins.
fn field(name: &str, number: i64) -> Proto {
    proto().len(1, name).int(3, number).int(4, 1).int(5, 5)
}

fn message(name: &str) -> Proto {
    proto().len(1, name)
}

fn file() -> Proto {
    proto().len(1, "f.proto").len(2, "p").len(12, "proto3")
}

#[expect(clippy::needless_pass_by_value, reason = "descriptors are built where they are handed over")]
fn fails(file: Proto) -> SchemaError {
    Schema::from_files([file.as_ref()]).expect_err("a descriptor that is wrong")
}

#[test]
fn fields_follow_proto3_rules() {
    let schema = schema(
        "syntax = 'proto3'; package p;
         message M {
           int32 plain = 1; optional string maybe = 2; repeated sint64 list = 3;
           repeated bool loose = 4 [packed = false]; map<string, M> map = 5;
           oneof choice { bytes data = 6; E which = 7; } repeated string texts = 8;
           message N { fixed32 some_long_name = 536870911 [json_name = 'short']; }
         }
         enum E { option allow_alias = true; A = 0; B = -1; C = -1; }
         service S { rpc Do(M) returns (stream M.N); }",
    );
    let m = schema.message("p.M").expect("M");
    let field = |name| m.field(name).expect("a field");
    let presence = ["plain", "maybe", "list", "map", "data"].map(|name| field(name).has_presence());
    assert_eq!(presence, [false, true, false, false, true]);
    assert_eq!(["list", "loose", "texts"].map(|name| field(name).is_packed()), [true, false, false]);
    assert!(field("maybe").requires_utf8() && !field("data").requires_utf8());
    assert_eq!((field("list").kind(), field("list").cardinality()), (Kind::Sint64, Cardinality::Repeated));
    let (key, value) = field("map").map_entry().expect("a map");
    assert_eq!((key.kind(), value.message_type()), (Kind::String, Some(m)));
    assert_eq!(m.oneofs().map(thalweg_protobuf::Oneof::name).collect::<Vec<_>>(), ["choice"]);
    let members: Vec<_> =
        m.oneof("choice").expect("a oneof").fields().map(thalweg_protobuf::Field::name).collect();
    assert_eq!(members, ["data", "which"]);
    assert_eq!((field("maybe").oneof(), field("which").oneof()), (None, m.oneof("choice")));
    let long = schema.message("p.M.N").and_then(|n| n.field_by_number(536_870_911)).expect("a field");
    assert_eq!((long.name(), long.json_name()), ("some_long_name", "short"));
    assert_eq!(long.full_name(), "p.M.N.some_long_name");
    let n = long.message();
    assert_eq!(n.field_by_json_name("short"), n.field_by_json_name("some_long_name"));
    assert_eq!((n.parent(), n.name(), n.file().edition()), (Some(m), "N", Edition::Proto3));
    let e = field("which").enum_type().expect("an enum");
    assert!(!e.is_closed());
    assert_eq!(e.value_by_number(-1).map(thalweg_protobuf::EnumValue::name), Some("B"));
    assert_eq!(e.value("C").map(thalweg_protobuf::EnumValue::number), Some(-1));
    assert!(e.value_by_number(1).is_none());
    let call = schema.method("/p.S/Do").expect("a method");
    assert_eq!((call.input(), call.output(), call.path()), (m, n, "/p.S/Do".to_owned()));
    assert!(call.is_server_streaming() && !call.is_client_streaming());
    assert_eq!(schema.method("p.S.Do"), Some(call));
}

#[test]
fn fields_follow_proto2_rules() {
    let schema = schema(
        "syntax = 'proto2';
         message M {
           required int32 must = 1; optional string text = 2 [default = 'hi']; repeated int32 list = 3;
           repeated int32 packed = 4 [packed = true]; optional group G = 5 { optional M m = 1; } optional E e = 6;
           extensions 10 to 20;
         }
         enum E { FIRST = 3; }
         message Scope { extend M { optional int32 more = 10; } }",
    );
    let m = schema.message("M").expect("M");
    let field = |name| m.field(name).expect("a field");
    assert!(field("must").is_required() && field("must").has_presence());
    assert!(field("text").has_presence() && !field("text").requires_utf8());
    assert_eq!(["list", "packed"].map(|name| field(name).is_packed()), [false, true]);
    assert_eq!(field("g").kind(), Kind::Group);
    assert!(field("e").enum_type().is_some_and(thalweg_protobuf::EnumType::is_closed));
    let more = schema.extension("Scope.more").expect("an extension");
    assert_eq!((more.message(), more.name(), more.full_name()), (m, "more", "Scope.more".to_owned()));
    assert!(more.is_extension());
    assert_eq!(m.field_by_number(10), Some(more));
    assert_eq!(m.extensions().collect::<Vec<_>>(), [more]);
    assert!(m.is_extension_number(20) && !m.is_extension_number(21));
}

#[test]
fn features_are_inherited() {
    let schema = Schema::from_descriptor_set(EDITIONS).expect("protoc wrote it");
    let message = schema.message("editions.Fields").expect("in the file");
    let field = |name| message.field(name).expect("a field");
    let cardinality = ["explicit", "implicit", "required"].map(|name| field(name).cardinality());
    assert_eq!(cardinality, [Cardinality::Optional, Cardinality::Optional, Cardinality::Required]);
    let presence = ["explicit", "implicit", "required", "packed"].map(|name| field(name).has_presence());
    assert_eq!(presence, [true, false, true, false]);
    assert_eq!(["packed", "expanded"].map(|name| field(name).is_packed()), [true, false]);
    assert_eq!(["verified", "unverified"].map(|name| field(name).requires_utf8()), [true, false]);
    assert_eq!(["delimited", "prefixed"].map(|name| field(name).kind()), [Kind::Group, Kind::Message]);
    let closed =
        ["open", "closed"].map(|name| field(name).enum_type().map(thalweg_protobuf::EnumType::is_closed));
    assert_eq!(closed, [Some(false), Some(true)]);
    assert_eq!(schema.extension("editions.extra").map(thalweg_protobuf::Field::kind), Some(Kind::Group));

    let message = schema.message("later.Inherits").expect("in the file");
    assert_eq!(message.file().edition(), Edition::Edition2024);
    let field = |name| message.field(name).expect("a field");
    assert_eq!(["implicit", "explicit"].map(|name| field(name).has_presence()), [false, true]);
    assert_eq!(["expanded", "prefixed"].map(|name| field(name).is_packed()), [false, false]);
    assert_eq!(["delimited", "prefixed"].map(|name| field(name).kind()), [Kind::Group, Kind::Message]);
    let (_, value) = field("prefixed").map_entry().expect("a map");
    assert_eq!(value.kind(), Kind::Message, "values of maps are never delimited");
    let nested = schema.message("later.Inherits.Nested").expect("in the file");
    let presence =
        ["implicit", "member"].map(|name| nested.field(name).map(thalweg_protobuf::Field::has_presence));
    assert_eq!(presence, [Some(false), Some(true)]);
}

#[test]
fn files_may_be_unordered_and_duplicated() {
    let used = proto().len(1, "b.proto").len(2, "p").len(12, "proto3").len(4, message("B"));
    let user = file().len(4, message("A").len(2, field("b", 1).int(5, 11).len(6, ".p.B")));
    let files = [user.as_ref(), used.as_ref(), user.as_ref()];
    let schema = Schema::from_files(files).expect("right files");
    assert_eq!(schema.files().len(), 2);
    // A relative name without a type, as parsers write it.
    let user = file().len(4, message("A").len(2, proto().len(1, "b").int(3, 1).int(4, 1).len(6, "B")));
    let schema = Schema::from_files([user.as_ref(), used.as_ref()]).expect("right files");
    let b = schema.message("p.A").and_then(|a| a.field("b")).and_then(thalweg_protobuf::Field::message_type);
    assert_eq!(b, schema.message("p.B"));
    let other = file().len(4, message("C"));
    let error =
        Schema::from_files([user.as_ref(), used.as_ref(), other.as_ref()]).expect_err("two of one name");
    assert_eq!(error.problem, Problem::DuplicateFile);
}

#[test]
fn schema_errors_name_file_and_element() {
    let check = |file: Proto, expected: &str| assert_eq!(fails(file).to_string(), expected);
    let of = |fields: &[Proto]| {
        let fields = fields.iter().fold(message("M"), |message, field| message.len(2, field));
        file().len(4, fields)
    };
    check(
        of(&[field("a", 1).int(5, 11).len(6, ".p.N")]),
        "f.proto: p.M.a: unknown type .p.N; check the imports",
    );
    check(of(&[field("a", 1).int(5, 14).len(6, ".p.M")]), "f.proto: p.M.a: .p.M is not an enum");
    check(of(&[field("a", 1).int(5, 19)]), "f.proto: p.M.a: unknown field type 19");
    check(of(&[field("a", 1), field("b", 1)]), "f.proto: p.M.b: number 1 is already used by p.M.a");
    check(of(&[field("a", 1), field("a", 2)]), "f.proto: p.M.a: duplicate name; the other one is in f.proto");
    for number in [0, -1, 19_000, 1 << 29] {
        assert_eq!(fails(of(&[field("a", number)])).problem, Problem::Number(number as i32));
    }
    check(of(&[field("a", 1).int(9, 0)]), "f.proto: p.M.a: invalid oneof index 0");
    check(of(&[field("a b", 1)]), "f.proto: p.M.a b: invalid name \"a b\"");
    assert_eq!(fails(of(&[field("a", 1).len(7, "1")])).element, "p.M.a");
    check(file().len(4, message("")), "f.proto: p: invalid name \"\"");
    check(file().len(5, message("E")), "f.proto: p.E: the enum has no values");
    let value = |number| proto().len(1, format!("V{number}")).int(2, number);
    check(
        file().len(5, message("E").len(2, value(1))),
        "f.proto: p.E: the first value of an open enum must be 0, not 1",
    );
    check(
        file().len(4, message("E")).len(5, message("E").len(2, value(0))),
        "f.proto: p.E: duplicate name; the other one is in f.proto",
    );
    check(file().len(4, message("M").len(8, proto().len(1, "o"))), "f.proto: p.M.o: the oneof has no fields");
    check(file().len(7, field("x", 1).len(2, ".p.N")), "f.proto: p.x: unknown type .p.N; check the imports");
    check(
        file().len(4, message("M")).len(7, field("x", 1).len(2, ".p.M")),
        "f.proto: p.x: no extension range of p.M contains 1",
    );
    let method = proto().len(1, "Do").len(2, ".p.M").len(3, ".p.N");
    check(
        file().len(4, message("M")).len(6, message("S").len(2, method)),
        "f.proto: p.S.Do: unknown type .p.N; check the imports",
    );
    check(
        proto().len(1, "g.proto").len(12, "proto4"),
        "g.proto: unknown syntax \"proto4\"; use proto2, proto3 or editions",
    );
    check(
        proto().len(1, "g.proto").len(12, "editions").int(14, 1002),
        "g.proto: edition later than 2024 (number 1002) is not supported; use 2023 or 2024",
    );
}

#[test]
fn json_names_must_not_conflict() {
    let with = |file: Proto, options: &[u8], fields: &[Proto]| {
        let message =
            fields.iter().fold(message("M").len(7, options), |message, field| message.len(2, field));
        file.len(4, message)
    };
    let renamed = |name: &str, number, json_name: &str| field(name, number).len(10, json_name);
    let json_format = |format| proto().len(12, proto().int(6, format));
    let default = [field("foo_bar", 1), field("fooBar", 2)];
    let own = [field("foo_bar", 1), renamed("other", 2, "fooBar")];
    // `json_name` does not help, because field masks do not use it.
    let hidden = [renamed("foo_bar", 1, "other"), field("fooBar", 2)];
    let swapped = [renamed("a", 1, "b"), renamed("b", 2, "a")];
    let proto2 = || proto().len(1, "f.proto").len(2, "p");
    let editions = || file().len(12, "editions").int(14, 1000);
    for (fields, expected) in [
        (&default, "f.proto: p.M.fooBar: its default JSON name \"fooBar\" is also that of p.M.foo_bar"),
        (&own, "f.proto: p.M.other: its JSON name \"fooBar\" is also that of p.M.foo_bar"),
        (&hidden, "f.proto: p.M.fooBar: its default JSON name \"fooBar\" is also that of p.M.foo_bar"),
    ] {
        assert_eq!(fails(with(file(), b"", fields)).to_string(), expected);
        assert_eq!(fails(with(editions(), b"", fields)).to_string(), expected);
        assert_eq!(fails(with(editions(), json_format(1).as_ref(), fields)).to_string(), expected);
        let right = [
            with(proto2(), b"", fields),
            with(editions(), json_format(2).as_ref(), fields),
            with(file(), proto().int(11, 1).as_ref(), fields),
        ];
        for right in right {
            Schema::from_files([right.as_ref()]).expect("names may conflict");
        }
    }
    Schema::from_files([with(file(), b"", &swapped).as_ref()]).expect("names do not conflict");
    // Both names are set explicitly, which is never allowed.
    let said = [renamed("a", 1, "fooBar"), renamed("b", 2, "fooBar")];
    let expected = "f.proto: p.M.b: its JSON name \"fooBar\" is also that of p.M.a";
    assert_eq!(fails(with(file(), b"", &said)).to_string(), expected);
    assert_eq!(fails(with(proto2(), b"", &said)).to_string(), expected);
}

#[test]
fn names_of_values_must_not_conflict() {
    let with = |file: Proto, options: &[u8], values: Values<'_>| {
        let of = proto().len(1, "MyEnum").len(3, options);
        let of = values.iter().fold(of, |of, (name, number)| of.len(2, proto().len(1, name).int(2, *number)));
        file.len(4, message("M").len(4, of))
    };
    let allow_alias = proto().int(2, 1);
    let proto2 = || proto().len(1, "f.proto").len(2, "p");
    let editions = || file().len(12, "editions").int(14, 1000);
    let conflicts: [(Values<'_>, &str, &str, &str); 6] = [
        (&[("A_B", 0), ("a_b", 1)], "a_b", "AB", "A_B"),
        (&[("MY_ENUM_A", 0), ("B", 1), ("A", 2)], "A", "A", "MY_ENUM_A"),
        (&[("B", 0), ("MyEnumB", 1)], "MyEnumB", "B", "B"),
        (&[("MY_ENUM_1", 0), ("MYENUM1", 1)], "MYENUM1", "1", "MY_ENUM_1"),
        (&[("MY_ENUM", 0), ("MY_ENUM_", 1)], "MY_ENUM_", "MyEnum", "MY_ENUM"),
        (&[("_", 0), ("__", 1)], "__", "", "_"),
    ];
    for (values, value, name, other) in conflicts {
        let expected = format!(
            "f.proto: p.M.MyEnum: {value} and {other} are both {name:?} in PascalCase without the enum's name"
        );
        assert_eq!(fails(with(file(), b"", values)).to_string(), expected);
        assert_eq!(fails(with(editions(), b"", values)).to_string(), expected);
        // Neither `json_format` nor `deprecated_legacy_json_field_conflicts` lets values conflict.
        let loose = proto().len(7, proto().int(6, 2));
        assert_eq!(fails(with(editions(), loose.as_ref(), values)).to_string(), expected);
        assert_eq!(fails(with(file(), proto().int(6, 1).as_ref(), values)).to_string(), expected);
        let right = with(proto2(), b"", values);
        Schema::from_files([right.as_ref()]).expect("proto2 lets them conflict");
    }
    let right: [(&[u8], Values<'_>); 4] = [
        (allow_alias.as_ref(), &[("MY_ENUM_A", 0), ("A", 0), ("a", 0)]),
        (b"", &[("A_B", 0), ("AB", 1)]),
        (b"", &[("MY_ENUM", 0), ("MY_ENUM_ENUM", 1), ("MY_ENUM_MY_ENUM_ENUM", 2)]),
        (b"", &[("A_B", 0), ("aB", 1)]),
    ];
    for (options, values) in right {
        let right = with(file(), options, values);
        Schema::from_files([right.as_ref()]).expect("names do not conflict");
    }
    // The first of two aliases is compared, and the third value is not an alias.
    let values: Values<'_> = &[("A", 0), ("B", 1), ("MY_ENUM_B", 1), ("b", 2)];
    let error = fails(with(file(), allow_alias.as_ref(), values)).to_string();
    assert!(error.ends_with("b and B are both \"B\" in PascalCase without the enum's name"), "{error}");
}

#[test]
fn malformed_map_entries_are_rejected() {
    let entry = |key: Proto, value: Proto| {
        let entry = message("E").len(2, key).len(2, value).len(7, proto().int(7, 1));
        file().len(4, message("M").len(3, entry).len(2, field("m", 1).int(4, 3).int(5, 11).len(6, ".p.M.E")))
    };
    Schema::from_files([entry(field("key", 1), field("value", 2)).as_ref()]).expect("a map");
    let double = field("key", 1).int(5, 1);
    for wrong in [
        entry(double, field("value", 2)),
        entry(field("key", 1), field("value", 3)),
        entry(field("key", 1).int(4, 3), field("value", 2)),
    ] {
        let error = fails(wrong);
        assert_eq!((error.element.as_str(), error.problem), ("p.M.E", Problem::MapEntry));
    }
    let singular = file().len(
        4,
        message("M")
            .len(3, message("E").len(2, field("key", 1)).len(2, field("value", 2)).len(7, proto().int(7, 1)))
            .len(2, field("m", 1).int(5, 11).len(6, ".p.M.E")),
    );
    assert_eq!(fails(singular).problem, Problem::MapEntry);
}

#[test]
fn invalid_descriptors_are_rejected() {
    let error = Schema::from_descriptor_set(b"\x0a\x05hello").expect_err("no file");
    assert!(matches!(error.problem, Problem::Wire(_)), "{error}");
    let error = fails(file().len(4, b"\x0a\x01\xff"));
    assert_eq!(error.to_string(), "f.proto: a string of the descriptor is not UTF-8");
    let deep = (0..100_000).fold(Proto::default(), |inner, _| {
        // Encoding 100,000 nested messages would be quadratic, so the nesting is cut off.
        if inner.0.len() < 4000 { message("M").len(3, inner) } else { inner }
    });
    assert_eq!(fails(file().len(4, deep)).problem, Problem::Nesting { max: 64 });
}

#[test]
fn arbitrary_descriptors_do_not_panic() {
    let set = set_of(
        "syntax = 'proto2'; import 'google/protobuf/struct.proto';
         message M { optional int32 a = 1 [default = 5]; extensions 5 to max;
           oneof o { bytes b = 2; } map<int32, M> m = 4; }
         extend M { repeated M x = 5; } enum E { A = 1; } service S { rpc D(M) returns (M); }",
    );
    let (mut right, mut wrong) = (0, 0);
    for set in [set.as_slice(), EDITIONS] {
        for at in 0..set.len() {
            for change in [1, 0x80, 0xff, 0x10] {
                let mut changed = set.to_vec();
                changed[at] ^= change;
                match Schema::from_descriptor_set(&changed) {
                    Ok(_) => right += 1,
                    Err(error) => {
                        assert!(!error.to_string().is_empty());
                        wrong += 1;
                    }
                }
            }
            let _ = Schema::from_descriptor_set(&set[..at]);
        }
    }
    assert!(right > 100 && wrong > 100, "{right} right, {wrong} wrong");
}

#[test]
fn well_known_types_are_recognized() {
    let schema = schema(
        "syntax = 'proto3'; import 'google/protobuf/wrappers.proto'; import 'google/protobuf/any.proto';",
    );
    let known = |name: &str| {
        schema.message(&format!("google.protobuf.{name}")).and_then(thalweg_protobuf::MessageType::well_known)
    };
    assert_eq!(known("Any"), Some(WellKnown::Any));
    assert_eq!(known("UInt64Value"), Some(WellKnown::Wrapper));
}

#[test]
fn custom_options_are_preserved() {
    let schema = schema(
        "syntax = 'proto3'; import 'google/protobuf/descriptor.proto';
         extend google.protobuf.MethodOptions { string route = 50000; }
         message M {} service S { rpc Do(M) returns (M) { option (route) = '/x'; } }",
    );
    let options = schema.method("S.Do").expect("a method").options();
    assert!(options.ends_with(b"\x02/x"), "{options:x?}");
}
