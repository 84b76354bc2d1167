//! Encoded messages dissected, printed as text, and reassembled.
//!
//! For any bytes, the text reassembles to the same bytes, each byte is covered exactly once, and no span is out of
//! bounds. The bytes as text are assembled, too, or rejected.

use std::sync::OnceLock;

use thalweg_protobuf::{Field, MessageType, Schema, sources};
use thalweg_protobuf_text::dissect::account::ByteAccount;
use thalweg_protobuf_text::dissect::framing::{Framing, detect, split};
use thalweg_protobuf_text::dissect::known::Meaning;
use thalweg_protobuf_text::dissect::{Limits, Message, Span, Value, dissect, text};

use super::features::{Features, feature};

/// All kinds of fields.
const SOURCE: &str = r#"
    syntax = "proto2";
    import "google/protobuf/any.proto";
    message M {
        required int32 number = 1;
        optional string text = 2;
        optional bytes raw = 3;
        repeated sint64 row = 4 [packed = true];
        repeated fixed32 fixed = 5;
        optional double real = 6;
        optional M inner = 7;
        optional group G = 8 { optional bool truth = 1; }
        map<string, M> by_name = 9;
        optional E choice = 10;
        oneof either { uint64 left = 11; float right = 12; }
        repeated E choices = 13 [packed = true];
        optional google.protobuf.Any any = 14;
    }
    enum E { A = 0; B = 1; }
"#;

fn message_type() -> MessageType<'static> {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    let schema = SCHEMA.get_or_init(|| {
        let set = sources::compile(&["m.proto"], |name| (name == "m.proto").then(|| SOURCE.to_owned()));
        Schema::from_descriptor_set(&set.expect("the source is right")).expect("the descriptors are right")
    });
    schema.message("M").expect("declared above")
}

pub(super) fn target(data: &[u8]) -> Features {
    let mut features = Features::new();
    let Some((mode, input)) = data.split_first() else { return features };
    let limits = match mode & 0x18 {
        0x08 => Limits::default().depth_max(3),
        0x10 => Limits::default().records_max(5),
        _ => Limits::default(),
    };
    let message_type = (mode & 4 == 0).then(message_type);
    let framing = match mode & 3 {
        0 => Framing::Protobuf,
        1 => Framing::Grpc,
        2 => Framing::Delimited,
        _ => detect(input, &limits, |_| true).framing,
    };
    let frames = split(input, framing, &limits);
    let messages: Vec<Option<Message>> = frames
        .frames
        .iter()
        .map(|frame| Some(dissect(input, frame.payload, message_type, &limits)))
        .collect();
    for message in messages.iter().flatten() {
        check_message(input, message, &mut features, 0);
        let mut account = ByteAccount::default();
        account.add(input, message);
        let covered = account.rest() + account.parts().iter().sum::<usize>();
        assert_eq!(covered, message.span.len(), "{message:?}");
    }
    let written = text::write_frames(input, &frames, &messages);
    assert_eq!(text::assemble(&written).as_deref(), Ok(input), "{written}");
    if let Ok(text_input) = std::str::from_utf8(input) {
        match text::assemble(text_input) {
            Ok(bytes) => {
                let message = dissect(&bytes, Span::all(&bytes), message_type, &limits);
                assert_eq!(text::assemble(&text::write(&bytes, &message)), Ok(bytes));
            }
            Err(error) => drop(features.insert(feature(("refused", error_kind(&error.what))))),
        }
    }
    features
}

/// Removes quoted input from an error.
fn error_kind(error: &str) -> String {
    error.split('`').step_by(2).flat_map(str::chars).filter(|c| c.is_alphabetic()).collect()
}

/// Collects features of a message and checks that all its spans are within it.
fn check_message(input: &[u8], message: &Message, features: &mut Features, depth: usize) {
    let Span { start, end } = message.span;
    assert!(start <= end && end <= input.len(), "{message:?}");
    let mut at = start;
    for (record, remarks) in message.records.iter().zip(message.remarks()) {
        let span = record.span();
        assert!(span.start == at && span.end <= end && !span.is_empty(), "{record:?} at {at}");
        at = span.end;
        let kind = record.known().map(Field::kind);
        features.insert(feature((kind, record.tag.wire_type(), depth.min(4))));
        features.extend(remarks.iter().map(|remark| feature(std::mem::discriminant(remark))));
        features.extend(record.problem.iter().map(|problem| feature(std::mem::discriminant(&problem.kind))));
        if let Some(Meaning::Packed(values)) = record.meaning(input) {
            features.insert(feature(("packed", values.len().min(3))));
        }
        if record.tag.excess_bytes() > 0 {
            features.insert(feature("long tag"));
        }
        if matches!(record.value, Value::Varint(varint) if varint.overflows) {
            features.insert(feature("overflow"));
        }
        let readings = record.value.readings(input);
        features.insert(feature((readings.len(), readings.first().map(std::mem::discriminant))));
        assert!(readings.iter().all(|reading| !reading.to_string().is_empty()));
        if let Some(inner) = record.value.message() {
            check_message(input, inner, features, depth + 1);
        }
    }
    assert_eq!(message.rest(), Span { start: at, end });
    features.extend(message.problem.iter().map(|problem| {
        assert!(problem.offset >= start && problem.offset <= end, "{problem:?}");
        feature((std::mem::discriminant(&problem.kind), problem.tag.is_some(), problem.length.is_some()))
    }));
    features.insert(feature(("absent", message.absent().len().min(3))));
}

pub(super) fn corpus() -> Vec<Vec<u8>> {
    let texts = [
        "1: 20 2: {\"polar penguin\"} 3: {`00ff`} 4: {-1z 5z} 5: 7i32 5: {1i32 2i32} 6: 2.5",
        "7: {1: 1 7: {2: {\"x\"}}} 8: !{1: true} 9: {1: {\"k\"} 2: {1: 3}} 10: 1 11: 5 12: 1.5i32 13: {0 1 2}",
        "14: {1: {\"type.googleapis.com/M\"} 2: {1: 1}} 15: 1700000000 16: !{} 200000: {}",
        "long-form:1 1: long-form:2 150 2:LEN long-form:1 {\"a\"} 8:SGROUP 1: 1 long-form:1 8:EGROUP",
        "2: 5 1: {\"mismatch\"} 10: 99 1:VARINT `ffffffffffffffffff7f` `ff`",
    ];
    let messages = texts.map(|text_input| text::assemble(text_input).expect("these are right"));
    let mut corpus = Vec::new();
    for message in messages {
        let len = message.len() as u32;
        for mode in [0, 4, 8, 16] {
            corpus.push([&[mode][..], &message].concat());
        }
        let grpc = [&[0][..], &len.to_be_bytes(), &message].concat();
        corpus.push([&[1][..], &grpc, &grpc].concat());
        corpus.push([&[3][..], &[len as u8], &message].concat());
        corpus.push(
            [
                &[4][..],
                text::write(&message, &dissect(&message, Span::all(&message), None, &Limits::default()))
                    .as_bytes(),
            ]
            .concat(),
        );
    }
    corpus
}
