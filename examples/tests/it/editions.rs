//! Messages of a file of edition 2023 are encoded as their features require.

use code::editions::v1::fields::{Choice, Part};
use code::editions::v1::{Fields, Kind};
use thalweg::prost::Message;

#[expect(unreachable_pub, clippy::pedantic, reason = "generated code")]
mod code {
    include!("../../../crates/build/tests/golden/editions/mod.rs");
}

#[track_caller]
fn check(message: &Fields, expected: &[u8]) {
    // The required field is always present; the expected bytes follow it.
    let wire = message.encode_to_vec();
    assert_eq!(wire, [&[0x1a, 0], expected].concat());
    assert_eq!(Fields::decode(&*wire).expect("its own wire format"), *message);
}

#[test]
fn features_decide_the_wire_format() {
    check(&Fields::default(), &[]);
    check(&Fields { expanded: vec![1, 2], ..Fields::default() }, &[0x28, 1, 0x28, 2]);
    check(&Fields { packed: vec![1, 2], ..Fields::default() }, &[0x32, 2, 1, 2]);
    let part = Part { size: Some(0) };
    check(&Fields { part: Some(part), ..Fields::default() }, &[0x3a, 2, 8, 0]);
    check(&Fields { group: Some(part), ..Fields::default() }, &[0x43, 8, 0, 0x44]);
    check(&Fields { groups: vec![part], ..Fields::default() }, &[0x4b, 8, 0, 0x4c]);
    let choice = Some(Choice::Delimited(part));
    check(&Fields { choice, ..Fields::default() }, &[0x63, 8, 0, 0x64]);
    let kind = Some(Kind::One.into());
    check(&Fields { kind, ..Fields::default() }, &[0x68, 1]);
}

#[test]
fn features_decide_presence_and_defaults() {
    let zero = Fields { preset: Some(0), explicit: Some(String::new()), ..Fields::default() };
    assert_eq!(zero.encode_to_vec(), [0x0a, 0, 0x1a, 0, 0x20, 0]);
    assert_eq!((Fields::default().preset(), zero.preset()), (7, 0));
    let implicit = Fields { implicit: 0, ..Fields::default() };
    assert_eq!(implicit.encode_to_vec(), [0x1a, 0]);
}
