//! Dissecting messages with a schema.

use thalweg_protobuf::{Schema, sources};

use super::*;
use crate::dissect::{Limits, Message, dissect, text};

const SOURCE: &str = r#"
    syntax = "proto2";
    package p;
    import "google/protobuf/any.proto";
    message M {
        required int32 id = 1;
        optional string text = 2;
        optional E mood = 3;
        repeated sint32 row = 4 [packed = true];
        optional M inner = 5;
        optional group G = 6 { optional bool on = 1; }
        oneof either { bytes left = 7; float right = 8; }
        map<string, fixed64> counts = 9;
        optional google.protobuf.Any any = 10;
        optional int32 limit = 11 [default = 7];
        extensions 100 to 199;
    }
    extend M { optional string note = 100; }
    enum E { GOOD = 1; BAD = 2; }
"#;

const STRICT: &str =
    "syntax = 'proto3'; package s; message S { string text = 1; repeated fixed32 row = 2; int32 n = 3; }";

fn schema(source: &'static str) -> Schema {
    let set = sources::compile(&["m.proto"], move |name| (name == "m.proto").then(|| source.to_owned()));
    Schema::from_descriptor_set(&set.expect("the source is right")).expect("the descriptors are right")
}

/// Assembles `typed` and dissects it as a message of the given type.
fn check(source: &'static str, name: &str, typed: &str, check: impl Fn(&[u8], &Message)) {
    let schema = schema(source);
    let input = text::assemble(typed).expect("the text is right");
    let message = dissect(&input, Span::all(&input), schema.message(name), &Limits::default());
    assert_eq!(text::assemble(&text::write(&input, &message)).as_ref(), Ok(&input), "{typed}");
    check(&input, &message);
}

/// Describes each record: declaration, value, remarks.
fn field_texts(input: &[u8], message: &Message) -> Vec<String> {
    let remarks = message.remarks();
    let tell = |(record, remarks): (&Record, &Vec<Remark>)| {
        let declared = record.field.map_or("?".to_owned(), declaration);
        let value = match record.meaning(input) {
            Some(Meaning::Scalar(scalar)) => scalar.to_string(),
            Some(Meaning::Packed(row)) => {
                row.iter().map(|(_, scalar)| scalar.to_string()).collect::<Vec<_>>().join(" ")
            }
            Some(Meaning::Message(message)) => message.full_name().to_owned(),
            None => "?".to_owned(),
        };
        let remarks: Vec<String> = remarks.iter().map(|remark| format!("; {remark}")).collect();
        format!("{declared}: {value}{}", remarks.concat())
    };
    message.records.iter().zip(&remarks).map(tell).collect()
}

#[test]
fn fields_have_names_types_and_values() {
    let typed = "1: -5 2: {\"a\"} 3: 2 4: {-1z 300z} 4: 1z 5: {1: 3} 6: !{1: true} 7: {`00`} 100: {\"x\"}";
    check(SOURCE, "p.M", typed, |input, message| {
        assert_eq!(
            field_texts(input, message),
            [
                "int32 id = 1: -5",
                "string text = 2: \"a\"",
                "E mood = 3: BAD",
                "repeated sint32 row = 4: -1 300",
                "repeated sint32 row = 4: 1; not packed, but declared packed: decoders accept both",
                "M inner = 5: p.M",
                "M.G g = 6: p.M.G",
                "bytes left = 7: 00",
                "string [p.note] = 100: \"x\"",
            ]
        );
        let group = message.records[6].value.message().unwrap();
        assert_eq!(field_texts(input, group), ["bool on = 1: true"]);
    });
}

#[test]
fn unusual_encodings_have_remarks() {
    let typed = "1: 1 1: 5000000000 3: 9 2: 5 7: {} 8: 1.5i32 50: 1 5: {} 5: {}";
    check(SOURCE, "p.M", typed, |input, message| {
        assert_eq!(
            field_texts(input, message),
            [
                "int32 id = 1: 1",
                "int32 id = 1: 705032704; exceeds the type: the excess bits are dropped; \
                 duplicate: the last value counts",
                "E mood = 3: 9; not a value of the closed enum: decoders treat it as an unknown field",
                "string text = 2: ?; wire type VARINT, expected LEN: decoders treat it as an unknown field",
                "bytes left = 7: ",
                "float right = 8: 1.5; clears left, which is also in oneof either",
                "?: ?; not in the schema",
                "M inner = 5: p.M",
                "M inner = 5: p.M; duplicate: the two are merged",
            ]
        );
    });
    check(STRICT, "s.S", "3: 0 2: 1i32", |input, message| {
        assert_eq!(
            field_texts(input, message),
            [
                "int32 n = 3: 0; default value, could be omitted",
                "repeated fixed32 row = 2: 1; not packed, but declared packed: decoders accept both",
            ]
        );
    });
}

#[test]
fn absent_fields_are_listed() {
    check(SOURCE, "p.M", "2: {}", |_, message| {
        let absent = message.absent();
        assert!(absent[0].is_required() && absent[0].name() == "id");
        let limit = absent.iter().find(|field| field.name() == "limit").unwrap();
        assert_eq!(declared_default(*limit), Some("7".to_owned()));
        assert_eq!(declared_default(absent[0]), None);
    });
}

#[test]
fn invalid_values_are_problems() {
    let problem = |typed: &str, offset: usize, what: &str| {
        check(STRICT, "s.S", typed, |_, message| {
            let [problem] = message.problems()[..] else { panic!("{typed}: {message:?}") };
            assert_eq!(problem.offset, offset, "{problem}");
            assert!(problem.to_string().contains(what), "{what:?} in {problem}");
        });
    };
    problem("1: {`ff`}", 2, "text is a string");
    problem("2: {1i32 `0000`}", 6, "row has fixed32 values");
}

/// With a schema, a malformed nested message is still a message and keeps what could be understood.
#[test]
fn malformed_nested_message_keeps_the_records_before_the_problem() {
    check(SOURCE, "p.M", "5: {1: 3 2:LEN `05 61`} 1: 2", |input, message| {
        let [problem] = message.problems()[..] else { panic!("{message:?}") };
        assert_eq!(problem.offset, 5);
        let inner = message.records[0].value.message().unwrap();
        assert_eq!(field_texts(input, inner), ["int32 id = 1: 3"]);
        assert_eq!(message.records.len(), 2);
    });
}

#[test]
fn content_of_any_is_dissected() {
    check(SOURCE, "p.M", "10: {1: {\"type.googleapis.com/p.M\"} 2: {1: 3}}", |input, message| {
        let any = message.records[0].value.message().unwrap();
        let content = any.records[1].value.message().unwrap();
        assert_eq!(field_texts(input, content), ["int32 id = 1: 3"]);
    });
}

#[test]
fn declared_defaults_are_text_unless_zero() {
    let source = r#"syntax = "proto2"; message M {
        optional bool a = 1 [default = true]; optional bool b = 2 [default = false];
        optional float c = 3 [default = -0.0]; optional double d = 4 [default = 0.0];
        optional double e = 5 [default = 2.5]; optional E f = 6 [default = ONE]; optional E g = 7;
        optional uint64 h = 8 [default = 18446744073709551615]; optional sint32 i = 9 [default = -3];
        optional string j = 10 [default = "it"]; optional string k = 11 [default = ""];
        optional bytes l = 12 [default = "\377a"]; repeated int32 m = 13; optional M n = 14;
    } enum E { NONE = 0; ONE = 1; }"#;
    let set = sources::compile(&["m.proto"], |_| Some(source.to_owned())).unwrap();
    let schema = Schema::from_descriptor_set(&set).unwrap();
    let found: Vec<_> = schema
        .message("M")
        .unwrap()
        .fields()
        .filter_map(|field| Some(format!("{} {}", field.name(), declared_default(field)?)))
        .collect();
    let expected =
        ["a true", "c -0.0", "e 2.5", "f ONE", "h 18446744073709551615", "i -3", "j \"it\"", "l ff61"];
    assert_eq!(found, expected);
}
