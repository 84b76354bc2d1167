//! Random messages in the text format, exchanged with prost-reflect in both directions.

use prost_reflect::DynamicMessage;
use prost_reflect::prost::Message;
use thalweg_protobuf_text::text_format;

use crate::random::{Case, compare};

// Fewer than for JSON, because the other library's parser is slow.

#[test]
fn proto3() {
    compare("everything.proto", "everything.Everything", 200, check);
}

#[test]
fn proto2() {
    compare("extended.proto", "extended.Extended", 400, check);
}

fn check(case: &Case<'_>) {
    let Case { ours, theirs, message, wire, seed } = case;
    let text =
        text_format::from_wire(*ours, wire).unwrap_or_else(|error| panic!("{seed}: {error}: {wire:02x?}"));
    let read = DynamicMessage::parse_text_format((*theirs).clone(), &text);
    let read = read.unwrap_or_else(|error| panic!("{seed}: {error}: {text}"));
    // Decoded again: prost-reflect distinguishes explicit empty values from absent ones, but the wire format does not.
    assert!(case.decode(&read.encode_to_vec()) == *message, "{seed}: {text}");

    let theirs_text = message.to_text_format();
    let read = text_format::to_wire(*ours, theirs_text.as_bytes())
        .unwrap_or_else(|error| panic!("{seed}: {error}: {theirs_text}"));
    assert!(case.decode(&read) == *message, "{seed}: {theirs_text}");
}
