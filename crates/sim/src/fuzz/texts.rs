//! Texts written by users: the text format, JSON with named fields, and `.proto` files.

use thalweg_protobuf::json::{self, ParseOptions};
use thalweg_protobuf::{MessageType, Schema, sources};
use thalweg_protobuf_text::text_format;

use super::features::{Features, feature};
use super::transcode::{self, error_kind};

/// An input is a byte that selects the type, and the text.
pub(super) fn text_format_corpus() -> Vec<Vec<u8>> {
    let printed = |(kind, json): (u8, &str)| {
        let message_type = transcode::message_type(kind);
        let wire = json::to_wire(message_type, json.as_bytes()).expect("JSON of the type");
        let text = text_format::from_wire(message_type, &wire).expect("text form exists");
        [&[kind][..], text.as_bytes()].concat()
    };
    let written = "a_double: -1.5e3; an_int32: 0x1f, inner < inner { } > strings: ['a\\n\\x41' \"b\"] # comment\n\
                   inners [{an_int32: -007}, {}] any { [x/everything.Everything] { an_int32: 1 } } a_float: nan";
    transcode::jsons().map(printed).chain([[&[0][..], written.as_bytes()].concat()]).collect()
}

/// An accepted message is the same after printing and parsing.
pub(super) fn text_format(data: &[u8]) -> Features {
    let Some((&selector, text)) = data.split_first() else { return Features::new() };
    let message_type = transcode::message_type(selector);
    let mut wire = b"before".to_vec();
    let options = ParseOptions::default().ignore_unknown(selector & 8 != 0);
    let parsed = text_format::parse(message_type, text, &options, &mut wire);
    let wire = wire.split_off(6);
    assert!(wire.len() <= 16 * text.len(), "{} bytes became {}", text.len(), wire.len());
    if let Err(error) = parsed {
        assert!(wire.is_empty() && error.offset <= text.len(), "{error}");
        return Features::from([feature((selector & 9, error_kind(&error.problem)))]);
    }
    let printed = text_format::from_wire(message_type, &wire).unwrap_or_else(|error| panic!("{error}"));
    let again = text_format::to_wire(message_type, printed.as_bytes())
        .unwrap_or_else(|error| panic!("{error}: {printed}"));
    assert_eq!(text_format::from_wire(message_type, &again).as_deref(), Ok(&*printed));
    let names = printed.lines().filter_map(|line| line.split([':', '{']).next());
    names.map(|name| feature((name.trim_end(), name.len() - name.trim_start().len()))).collect()
}

/// An input is a byte that selects the type and the options, and the JSON.
pub(super) fn field_paths_corpus() -> Vec<Vec<u8>> {
    transcode::jsons().map(|(kind, json)| [&[kind][..], json.as_bytes()].concat()).collect()
}

/// Each path names a field, all paths are within their bound, and valid JSON of the type has paths.
pub(super) fn field_paths(data: &[u8]) -> Features {
    let Some((&selector, json)) = data.split_first() else { return Features::new() };
    let message_type = transcode::message_type(selector);
    let len_max = if selector & 4 != 0 { 200 } else { 256 << 20 };
    let options = ParseOptions::default().ignore_unknown(selector & 8 != 0).len_max(len_max);
    let unbounded = options.clone().len_max(usize::MAX);
    let is_message = json::parse(message_type, json, &unbounded, &mut Vec::new()).is_ok();
    match json::field_paths(message_type, json, &options) {
        Ok(paths) => {
            assert!(paths.iter().map(String::len).sum::<usize>() <= len_max);
            for path in &paths {
                assert_names_a_field(message_type, path);
            }
            paths.iter().map(|path| feature(("path", path))).collect()
        }
        Err(error) => {
            assert!(!is_message || error.is_too_long, "{error}: {}", String::from_utf8_lossy(json));
            Features::from([feature(("error", error_kind(&error.problem)))])
        }
    }
}

fn assert_names_a_field(message_type: MessageType<'_>, path: &str) {
    let mut message = Some(message_type);
    for name in path.split('.') {
        let field = message.and_then(|message| message.field(name));
        message = field.unwrap_or_else(|| panic!("{path}")).message_type();
    }
}

pub(super) fn sources_corpus() -> Vec<Vec<u8>> {
    let small = "edition = \"2023\"; package a.b; import public \"google/protobuf/any.proto\";\n\
                 option java_package = 'x' \"y\"; message M { reserved 5 to 7, \"z\"; extensions 100 to max;\n\
                 oneof o { string s = 1 [deprecated = true, json_name = \"S\"]; group G = 2 { optional M m = 1; } }\n\
                 map<int32, .a.b.M> m = 3; enum E { option allow_alias = true; A = 0; B = -0x1; } }\n\
                 extend M { repeated E e = 100 [packed = true]; } service S { rpc R(stream M) returns (M) { } }";
    let files = [include_str!("../../../protobuf/tests/proto/extended.proto"), small];
    let older = ["proto2", "proto3"]
        .map(|syntax| small.replace("edition = \"2023\"", &format!("syntax = '{syntax}'")));
    files.iter().map(|text| text.as_bytes().to_vec()).chain(older.map(String::into_bytes)).collect()
}

/// Compiled sources form a schema.
pub(super) fn sources(data: &[u8]) -> Features {
    let Ok(text) = str::from_utf8(data) else { return Features::new() };
    let text = text.to_owned();
    match sources::compile(&["fuzz.proto"], move |name| (name == "fuzz.proto").then(|| text.clone())) {
        Ok(set) => match Schema::from_descriptor_set(&set) {
            Ok(schema) => {
                let fields = schema.messages().flat_map(MessageType::fields);
                fields.map(|field| feature((field.kind(), field.cardinality(), field.is_map()))).collect()
            }
            Err(error) => Features::from([feature(("schema", error_kind(&error.to_string())))]),
        },
        Err(error) => Features::from([feature(("source", error_kind(&error.to_string())))]),
    }
}
