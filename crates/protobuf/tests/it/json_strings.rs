//! Lists of strings in JSON. Short, plain strings are processed in batches; the result must equal that of each by
//! itself.

use thalweg_protobuf::json::{self, ParseOptions, PrintError, PrintOptions};
use thalweg_protobuf::wire::{self, Tag, WireType};
use thalweg_protobuf::{MessageType, Schema, sources};

/// Fields with tags of one byte, two and five.
const NUMBERS: [u32; 4] = [1, 15, 16, 536_870_911];

fn schema() -> Schema {
    let lists = NUMBERS.map(|number| {
        format!("message Of{number} {{ repeated string texts = {number}; int32 end = 2; string note = 3; }}")
    });
    let source = format!("syntax = 'proto3'; {}", lists.concat());
    let set = sources::compile(&["texts.proto"], move |_| Some(source.clone())).expect("the file compiles");
    Schema::from_descriptor_set(&set).expect("a schema")
}

fn message_of(schema: &Schema, number: u32) -> MessageType<'_> {
    schema.message(&format!("Of{number}")).expect("declared in the file")
}

fn records<T: AsRef<[u8]>>(number: u32, texts: &[T]) -> Vec<u8> {
    let mut wire = Vec::new();
    for text in texts {
        wire::put_tag(&mut wire, Tag::new(number, WireType::Len));
        wire::put_varint(&mut wire, text.as_ref().len() as u64);
        wire.extend(text.as_ref());
    }
    wire
}

/// Converts wire bytes to JSON and back.
fn check(schema: &Schema, number: u32, texts: &[String]) {
    let message_type = message_of(schema, number);
    let what = || format!("{number}: {texts:?}");
    let wire = [records(number, texts), b"\x10\x05".to_vec()].concat();
    // Another library defines the expected quoted form.
    let quoted: Vec<String> = texts.iter().map(|text| serde_json::to_string(text).expect("a text")).collect();
    for separator in [",", ", ", " ,\n"] {
        let text = format!("{{\"texts\":[{}],\"end\":5}}", quoted.join(separator));
        assert_eq!(json::to_wire(message_type, text.as_bytes()).as_ref(), Ok(&wire), "{}", what());
    }
    let printed = json::from_wire(message_type, &wire);
    assert_eq!(
        printed.as_deref(),
        Ok(&*format!("{{\"texts\":[{}],\"end\":5}}", quoted.join(","))),
        "{}",
        what()
    );
    let mut pretty = Vec::new();
    let options = PrintOptions::default().pretty(true);
    json::print(message_type, &wire, &options, &mut pretty).expect("it has a JSON");
    assert_eq!(json::to_wire(message_type, &pretty).as_ref(), Ok(&wire), "{}", what());
}

fn letters(len: usize) -> String {
    ('a'..='z').cycle().take(len).collect()
}

#[test]
fn strings_of_all_lengths_print_the_same_in_batches() {
    let schema = schema();
    for number in NUMBERS {
        for len in (0..=34).chain(110..=150) {
            check(&schema, number, &[letters(len)]);
            check(&schema, number, &[letters(3), letters(len), letters(20)]);
            check(&schema, number, &vec![letters(len); 40]);
        }
    }
}

#[test]
fn special_characters_are_escaped_at_any_offset() {
    let schema = schema();
    for special in ['"', '\\', '\n', '\0', '\u{1f}', '\u{7f}', 'é', '\u{80}', '😀'] {
        for len in [0, 7, 15, 16, 17, 31, 126, 127] {
            for at in [0, len / 2, len] {
                let mut text = letters(len);
                text.insert(at, special);
                check(&schema, 1, &[letters(20), text.clone(), letters(20)]);
                check(&schema, 1, &[text.clone(), text.clone(), text]);
            }
        }
    }
}

/// Texts of another field that differ only in their tag.
#[test]
fn string_batches_end_before_another_field() {
    let schema = schema();
    let message_type = message_of(&schema, 1);
    // Three batch steps long, so that nothing needs to follow.
    let note = letters(48);
    let wire = [records(1, &["a", "b", "c"]), records(3, &[&note])].concat();
    let text = format!("{{\"texts\":[\"a\",\"b\",\"c\"],\"note\":\"{note}\"}}");
    assert_eq!(json::from_wire(message_type, &wire).as_deref(), Ok(&*text));
    assert_eq!(json::to_wire(message_type, text.as_bytes()), Ok(wire));
}

#[test]
fn truncated_string_lists_are_rejected() {
    let schema = schema();
    let message_type = message_of(&schema, 1);
    let text = format!("{{\"texts\":[\"a\",\"{}\",\"b\"],\"end\":5}}", letters(40));
    for end in 0..text.len() {
        let mut wire = b"kept".to_vec();
        let parsed = json::parse(message_type, &text.as_bytes()[..end], &ParseOptions::default(), &mut wire);
        assert!(parsed.is_err(), "{end}");
        assert_eq!(wire, b"kept");
    }
}

/// The error names the element that contains the problem.
#[test]
fn invalid_element_is_reported_by_its_index() {
    let schema = schema();
    for (element, place) in [("7", 30), ("null", 30), ("\"\\x\"", 30), ("\"\u{1}\"", 30)] {
        let mut elements = vec!["\"abc\""; place];
        elements.push(element);
        let text = format!("{{\"texts\":[{}]}}", elements.join(","));
        let error = json::to_wire(message_of(&schema, 1), text.as_bytes()).expect_err(element);
        assert!(error.to_string().contains("texts[30]"), "{element}: {error}");
    }
}

#[test]
fn non_utf8_strings_are_rejected() {
    let schema = schema();
    let message_type = message_of(&schema, 1);
    for bytes in [&b"\xff"[..], b"0123456789012345678\xc3", b"\xed\xa0\x80"] {
        let wire = records(1, &[b"plain", bytes, b"a text of more than sixteen bytes"]);
        assert_eq!(
            json::from_wire(message_type, &wire),
            Err(PrintError::NotText { field: "Of1.texts".into() })
        );
    }
    // A record that ends inside its text.
    let whole = records(1, &vec![letters(20); 30]);
    for len in whole.len() - 21..whole.len() {
        assert!(matches!(json::from_wire(message_type, &whole[..len]), Err(PrintError::Decode(_))), "{len}");
    }
}

#[test]
fn string_batches_count_toward_the_length_limit() {
    let schema = schema();
    let wire = records(1, &vec![letters(20); 5000]);
    let printed = |len_max| {
        let options = PrintOptions::default().len_max(len_max);
        let mut json = Vec::new();
        json::print(message_of(&schema, 1), &wire, &options, &mut json)
    };
    assert_eq!(printed(10 + 23 * 5000), Ok(()));
    assert_eq!(printed(50_000), Err(PrintError::TooLong { max: 50_000 }));
}
