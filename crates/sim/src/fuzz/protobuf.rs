//! Protobuf at run time compared with two other implementations, prost-reflect and buffa.
//!
//! An input is a byte that selects a random schema, and the bytes of a message. All three implementations decode it and
//! must agree on whether it is valid. For the others, our encoding must be the same message as the input.

mod canonical;
mod messages;
mod schemas;

use std::cell::OnceCell;

use buffa_descriptor::{DynamicMessage as BuffaMessage, MessageIndex};
use prost_reflect::DynamicMessage;
use thalweg_protobuf::wire::{Reader, WireType};
use thalweg_protobuf::{Decoder, Limits, Message, MessageRef, Schema, Value};

use super::features::{Features, feature};
use crate::random::Random;
use schemas::{SCHEMAS, Subject};

thread_local! {
    static SUBJECTS: OnceCell<Vec<Subject>> = const { OnceCell::new() };
}

/// Calls `check` with the schema selected by `index`.
fn with_subject<T>(index: u8, check: impl FnOnce(usize, &Subject) -> T) -> T {
    SUBJECTS.with(|subjects| {
        let subjects = subjects.get_or_init(schemas::all);
        let index = usize::from(index) % subjects.len();
        check(index, &subjects[index])
    })
}

/// Random messages of each schema.
pub(super) fn corpus() -> Vec<Vec<u8>> {
    (0..SCHEMAS * 12)
        .map(|index| {
            let mut random = Random::new(index as u64);
            let mut input = vec![(index % SCHEMAS) as u8];
            with_subject(input[0], |index, subject| {
                input.extend(messages::random(
                    &mut random,
                    subject.schema.message(&subject.root).expect("the root"),
                ));
                check(index, subject, &input[1..], true);
            });
            input
        })
        .collect()
}

pub(super) fn target(input: &[u8]) -> Features {
    let Some((&pick, bytes)) = input.split_first() else { return Features::new() };
    with_subject(pick, |index, subject| check(index, subject, bytes, !subject.loose))
}

/// Compares with the other implementations only if `regular`: they accept maps and groups with wrong wire types, which
/// mutation creates.
fn check(index: usize, subject: &Subject, bytes: &[u8], regular: bool) -> Features {
    let of = subject.schema.message(&subject.root).expect("the root");
    let mut decoder = Decoder::default();
    let ours = decoder.decode(of, bytes);
    let buffa = BuffaMessage::decode(subject.buffa.0.clone(), subject.buffa.1, bytes);
    let reflect = subject.reflect.as_ref().map(|of| DynamicMessage::decode(of.clone(), bytes));
    let mut features = Features::new();
    match &ours {
        Ok(message) => {
            features.insert(feature((index, shape(*message, 3))));
            let encoded = message.encode_to_vec();
            assert_eq!(message.encoded_len(), encoded.len(), "{message:?}");
            ways_agree(&subject.schema, &subject.root, bytes, *message);
            if !regular || is_mistyped(*message) {
                return features;
            }
            same_to_buffa(subject, buffa.as_ref().map_err(ToString::to_string), &encoded);
            if let Some(reflect) = reflect.filter(|_| !subject.closed_enums) {
                same_to_reflect(subject, reflect.as_ref().ok(), &encoded);
            }
        }
        Err(error) => {
            let text = error.to_string();
            let what = text.split_once(": ").map_or(text.as_str(), |(_, what)| what);
            features.insert(feature((index, what)));
            assert!(error.offset() <= bytes.len(), "{error}");
            assert!(
                strict(&text) || !regular || buffa.is_err(),
                "{}: {error}, and buffa accepts it",
                subject.source
            );
        }
    }
    features
}

/// Whether a known field has a group's wire type and is therefore unknown; buffa reads it as a message.
fn is_mistyped(message: MessageRef<'_>) -> bool {
    let (of, unknown) = (message.message_type(), message.unknown_fields());
    let mut reader = Reader::new(&unknown);
    while let Ok(tag) = reader.tag() {
        let known = of.field_by_number(tag.number).is_some();
        if known && tag.wire_type == WireType::StartGroup || reader.skip(tag, usize::MAX).is_err() {
            return true;
        }
    }
    message.fields().any(|(_, value)| match value {
        Value::Message(message) => is_mistyped(message),
        Value::List(list) => list.iter().filter_map(Value::as_message).any(is_mistyped),
        _ => false,
    })
}

/// Errors that only we report: tags of more than five bytes, and depth, which others count differently.
fn strict(error: &str) -> bool {
    error.contains("tag is longer") || error.contains("deeper than allowed")
}

/// The set fields, down to a depth.
fn shape(message: MessageRef<'_>, depth: usize) -> Vec<u64> {
    let below =
        |value: Value<'_>| value.as_message().filter(|_| depth > 0).map(|message| shape(message, depth - 1));
    let fields = message.fields().map(|(field, value)| {
        let inner = below(value).or_else(|| value.as_list().and_then(|list| below(list.get(0)?)));
        feature((field.number(), inner))
    });
    fields.chain([feature(message.has_unknown_fields())]).collect()
}

/// Checks that other operations give the same message: owned decoding, merging, copying, and decoding the encoding.
fn ways_agree(schema: &Schema, root: &str, bytes: &[u8], message: MessageRef<'_>) {
    let of = schema.message(root).expect("the root");
    let encoded = message.encode_to_vec();
    let owned = Message::decode(of, bytes.to_vec()).expect("the same bytes");
    assert_eq!(owned.as_ref().encode_to_vec(), encoded);
    let mut merged = Message::new(of);
    merged.as_mut().merge(bytes, &Limits::default()).expect("the same bytes");
    assert_eq!(merged.as_ref().encode_to_vec(), encoded);
    let again = Message::decode(of, encoded.clone()).expect("our own bytes");
    assert_eq!(again.as_ref().encode_to_vec(), encoded);
    assert_eq!(again.as_ref().missing_required(), message.missing_required());
    assert_eq!(format!("{again:?}"), format!("{message:?}"));
}

fn same_to_buffa(subject: &Subject, expected: Result<&BuffaMessage, String>, encoded: &[u8]) {
    let (pool, index): &(_, MessageIndex) = &subject.buffa;
    let found = BuffaMessage::decode(pool.clone(), *index, encoded);
    match (expected, found) {
        (Ok(expected), Ok(found)) => {
            assert_eq!(expected.encode_to_vec(), found.encode_to_vec(), "{}", subject.source);
        }
        (Err(error), _) => {
            assert!(
                buffa_is_strict(subject, &error),
                "{}: we accept, and buffa says {error}",
                subject.source
            );
        }
        (Ok(_), Err(error)) => panic!("{}: buffa refuses what we wrote: {error}", subject.source),
    }
}

/// Errors that only buffa reports: it has tighter limits, and requires UTF-8 in proto2.
fn buffa_is_strict(subject: &Subject, error: &str) -> bool {
    let proto3 = subject.source.contains("proto3");
    error.contains("recursion") || error.contains("limit") || !proto3 && error.contains("UTF-8")
}

fn same_to_reflect(subject: &Subject, expected: Option<&DynamicMessage>, encoded: &[u8]) {
    let of = subject.reflect.clone().expect("asked before");
    match (expected, DynamicMessage::decode(of, encoded)) {
        (Some(expected), Ok(found)) => {
            assert_eq!(canonical::text(expected), canonical::text(&found), "{}", subject.source);
        }
        // prost-reflect is stricter. It requires UTF-8 in proto2, too, counts depth differently, and rejects known
        // fields with another wire type, which the specification treats as unknown fields.
        (None, _) => {}
        (Some(_), Err(error)) => panic!("{}: prost-reflect refuses what we wrote: {error}", subject.source),
    }
}

/// Fuzzes descriptors: the result is a schema that can create messages, or an error.
pub(super) fn descriptors(input: &[u8]) -> Features {
    let what = match Schema::from_descriptor_set(input) {
        Ok(schema) => {
            let mut count = 0;
            for of in schema.messages() {
                let message = Message::decode(of, &b"\x0a\x00\x12\x00"[..]);
                count += usize::from(message.is_ok_and(|message| message.as_ref().encoded_len() > 0));
                count += of.fields().filter(|field| of.field(field.name()) == Some(*field)).count();
            }
            format!("{count}")
        }
        Err(error) => {
            let text = format!("{:?}", error.problem);
            text.split(['(', ' ']).next().unwrap_or_default().to_owned()
        }
    };
    Features::from([feature(what)])
}

pub(super) fn descriptor_corpus() -> Vec<Vec<u8>> {
    (0..SCHEMAS).map(|index| with_subject(index as u8, |_, subject| subject.set.clone())).collect()
}
