//! Any bytes as a message in wire format, JSON or MessagePack. An accepted message survives conversion to the other
//! formats: the final JSON is the same.

use std::collections::HashSet;
use std::sync::OnceLock;

use thalweg_protobuf::json::{self, ParseOptions, PrintOptions};
use thalweg_protobuf::{MessageType, Schema, msgpack, sources};

use super::features::{Features, feature};

/// Messages to mutate: JSON of both types, each also in wire format and in MessagePack.
const JSON: &[(&str, &str)] = &[
    (
        "everything.Everything",
        r#"{"aDouble":1.5,"aFloat":"NaN","anInt32":-7,"anInt64":"9007199254740993","aUint32":4294967295,"aUint64":"1",
        "aSint32":-1,"aSint64":"-2","aFixed32":3,"aFixed64":"4","aSfixed32":-5,"aSfixed64":"-6","aBool":true,
        "aString":"a\"\\\né😀","someBytes":"+/8=","aColor":"RED"}"#,
    ),
    (
        "everything.Everything",
        r#"{"inner":{"inner":{"maybeInt32":0,"maybeString":""}},"doubles":[1,2.5,-0.0],"int32s":[1,2,300],
        "strings":["a",""],"colors":["BLUE",-1,7],"inners":[{},{"anInt32":1}],
        "looseInt64s":["1"],"textsByText":{"a":"b","":""},
        "innersByInt32":{"-1":{"aBool":true}},"colorsByBool":{"true":"RED"},
        "bytesByUint64":{"7":"AQ=="},"chosenString":"x"}"#,
    ),
    (
        "everything.Everything",
        r#"{"any":{"@type":"x/everything.Everything","anInt32":1,"inner":{}},"timestamp":"2024-02-29T12:00:00.5Z",
        "duration":"-1.5s","fieldMask":"a,bC.d","struct":{"a":[1,"x",null,true,{"b":{}}]},"value":null,"listValue":[[]],
        "empty":{},"int64Value":"5","stringValue":"x","bytesValue":"","doubleValue":"Infinity","boolValue":false,
        "anys":[{"@type":"x/google.protobuf.Duration","value":"1s"},{}],"valuesByText":{"a":1}}"#,
    ),
    (
        "extended.Extended",
        r#"{"id":1,"name":"n","level":"HIGH","levels":["LOW",7],"switchesByText":{"a":"ON"},
        "part":{"size":1,"whole":{"id":2}},"piece":[{"label":"a"},{}],"packed":[1,2],"[extended.number_extension]":"5",
        "[extended.Scope.nested_extension]":{"id":3},"[extended.text_extensions]":["x"]}"#,
    ),
];

/// JSON of each type: the type's number for [`message_type`], and the text.
pub(super) fn jsons() -> impl Iterator<Item = (u8, &'static str)> {
    let number = |name| TYPES.iter().position(|of| of == name).expect("one of them") as u8;
    JSON.iter().map(move |(name, json)| (number(name), *json))
}

/// The type selected by the lowest bit of an input's first byte.
pub(super) fn message_type(selector: u8) -> MessageType<'static> {
    schema().message(TYPES[usize::from(selector & 1)]).expect("in the schema")
}

/// The MessagePack inputs of [`corpus`].
pub(super) fn msgpack_corpus() -> Vec<Vec<u8>> {
    corpus().into_iter().filter(|input| input[0] >> 1 & 3 == MSGPACK).collect()
}

/// Like [`target`], only for MessagePack.
pub(super) fn msgpack(data: &[u8]) -> Features {
    let Some((&selector, bytes)) = data.split_first() else { return Features::new() };
    target(&[&[selector & !6 | MSGPACK << 1][..], bytes].concat())
}

/// An input begins with a byte that selects type and format.
pub(super) fn corpus() -> Vec<Vec<u8>> {
    let mut corpus = Vec::new();
    for (kind, json) in jsons() {
        let message_type = message_type(kind);
        let wire = json::to_wire(message_type, json.as_bytes()).expect("JSON of the type");
        let msgpack = msgpack::from_wire(message_type, &wire).expect("MessagePack form exists");
        let formats = [wire, json.as_bytes().to_vec(), msgpack];
        corpus.extend((0..).zip(formats).map(|(format, bytes)| [&[kind | format << 1][..], &bytes].concat()));
    }
    corpus
}

/// The number of the format.
const MSGPACK: u8 = 2;

const TYPES: [&str; 2] = ["everything.Everything", "extended.Extended"];

/// The schema of the crate's own tests.
fn schema() -> &'static Schema {
    static COMPILED: OnceLock<Schema> = OnceLock::new();
    COMPILED.get_or_init(|| {
        let read = |name: &str| match name {
            "everything.proto" => {
                Some(include_str!("../../../protobuf/tests/proto/everything.proto").to_owned())
            }
            "extended.proto" => Some(include_str!("../../../protobuf/tests/proto/extended.proto").to_owned()),
            _ => None,
        };
        let set = sources::compile(&["everything.proto", "extended.proto"], read).expect("the files compile");
        Schema::from_descriptor_set(&set).expect("a schema")
    })
}

pub(super) fn target(data: &[u8]) -> Features {
    let Some((&selector, bytes)) = data.split_first() else { return Features::new() };
    let message_type = message_type(selector);
    let options = ParseOptions::default().ignore_unknown(selector & 8 != 0);
    let mut wire = Vec::new();
    let read = match selector >> 1 & 3 {
        0 => {
            wire.extend_from_slice(bytes);
            Ok(())
        }
        1 => json::parse(message_type, bytes, &options, &mut wire).map_err(|error| error.problem),
        _ => msgpack::parse(message_type, bytes, &options, &mut wire).map_err(|error| error.problem),
    };
    assert!(wire.len() <= 16 * bytes.len(), "{} bytes became {}", bytes.len(), wire.len());
    let outcome = read.map_err(|problem| error_kind(&problem)).and_then(|()| {
        let printed = json::from_wire(message_type, &wire);
        // A message parsed from JSON or MessagePack can be printed as JSON.
        assert!(printed.is_ok() || selector & 6 == 0, "{printed:?} of {}", bytes.escape_ascii());
        printed.map_err(|error| error_kind(&error.to_string()))
    });
    let mut features = Features::from([feature((selector & 15, outcome.as_ref().err()))]);
    if let Ok(json) = &outcome {
        features.extend(members(json));
        assert_survives(message_type, &wire, json);
    }
    features
}

fn assert_survives(message_type: MessageType<'_>, wire: &[u8], json: &str) {
    let reparsed =
        json::to_wire(message_type, json.as_bytes()).unwrap_or_else(|error| panic!("{error}: {json}"));
    assert_eq!(json::from_wire(message_type, &reparsed).as_deref(), Ok(json));
    let msgpack = msgpack::from_wire(message_type, wire).unwrap_or_else(|error| panic!("{error}: {json}"));
    let reparsed =
        msgpack::to_wire(message_type, &msgpack).unwrap_or_else(|error| panic!("{error}: {msgpack:02x?}"));
    assert_eq!(json::from_wire(message_type, &reparsed).as_deref(), Ok(json), "{msgpack:02x?}");
    // Pretty-printed JSON is the same message.
    let (mut pretty, options) = (Vec::new(), PrintOptions::default().pretty(true));
    json::print(message_type, wire, &options, &mut pretty).expect("printed before");
    let reparsed = json::to_wire(message_type, &pretty).expect("valid JSON");
    assert_eq!(json::from_wire(message_type, &reparsed).as_deref(), Ok(json));
}

/// A problem up to its quoted input, which may be anything.
pub(super) fn error_kind(problem: &str) -> String {
    let unquoted = problem.split(['`', '"', '\'']).next().unwrap_or_default();
    let words = unquoted.split(' ').filter(|word| word.bytes().all(|byte| byte.is_ascii_lowercase()));
    words.collect::<Vec<_>>().join(" ")
}

/// Members of the schema in the JSON, with depth and first character of the value: few enough to cover all.
fn members(json: &str) -> Features {
    let mut features = Features::new();
    let (mut depth, mut quoted) = (0_usize, None);
    // Strings that contain quotes may hide or add members, which does not matter.
    for (at, character) in json.char_indices() {
        match (character, quoted) {
            ('"', None) => quoted = Some(at + 1),
            ('"', Some(start)) => {
                let (name, rest) = (&json[start..at], &json[at + 1..]);
                if let Some(value) = rest.strip_prefix(':')
                    && is_member(name)
                {
                    let first = value.chars().next().filter(|first| !first.is_ascii_digit());
                    features.insert(feature((name, depth.min(4), first)));
                }
                quoted = None;
            }
            ('{' | '[', None) => depth += 1,
            ('}' | ']', None) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    features
}

/// Whether a message of the schema has a member with this name.
fn is_member(name: &str) -> bool {
    static NAMES: OnceLock<HashSet<String>> = OnceLock::new();
    let names = || {
        let types = TYPES.iter().filter_map(|of| schema().message(of));
        types
            .flat_map(|of| of.fields().map(|field| field.json_name().to_owned()).collect::<Vec<_>>())
            .collect()
    };
    NAMES.get_or_init(names).contains(name)
}
