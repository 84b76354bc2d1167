//! Random messages in JSON and MessagePack, exchanged with prost-reflect in both directions.

use prost_reflect::DynamicMessage;
use prost_reflect::prost::Message;
use thalweg_protobuf::{json, msgpack};

use crate::random::{Case, compare};

#[test]
fn proto3() {
    compare("everything.proto", "everything.Everything", 1500, check);
}

#[test]
fn proto2() {
    compare("extended.proto", "extended.Extended", 3000, check);
}

fn check(case: &Case<'_>) {
    let Case { ours, theirs, message, wire, seed } = case;
    let json = json::from_wire(*ours, wire).unwrap_or_else(|error| panic!("{seed}: {error}: {wire:02x?}"));
    let mut reader = serde_json::Deserializer::from_str(&json);
    let read = DynamicMessage::deserialize((*theirs).clone(), &mut reader);
    let read = read.unwrap_or_else(|error| panic!("{seed}: {error}: {json}"));
    assert!(read == *message, "{seed}: {json}\n{wire:02x?}\n{:02x?}", read.encode_to_vec());

    let theirs_json = serde_json::to_string(message).expect("it has JSON");
    let read = json::to_wire(*ours, theirs_json.as_bytes())
        .unwrap_or_else(|error| panic!("{seed}: {error}: {theirs_json}"));
    assert!(case.decode(&read) == *message, "{seed}: {theirs_json}");

    let packed =
        msgpack::from_wire(*ours, wire).unwrap_or_else(|error| panic!("{seed}: {error}: {wire:02x?}"));
    let read =
        msgpack::to_wire(*ours, &packed).unwrap_or_else(|error| panic!("{seed}: {error}: {packed:02x?}"));
    assert!(case.decode(&read) == *message, "{seed}: {packed:02x?}");
}
