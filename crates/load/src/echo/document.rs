//! Objects to echo, and their encoding: prost messages for Protobuf, serde structs for JSON and MessagePack.

use std::sync::LazyLock;

use prost::Message;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thalweg_messages::{Kind, SEED, generate, plain};
use thalweg_protobuf::{Schema, json};

use super::own::{OwnEcho, OwnMessage};
use super::protocol::Format;
use super::shape::Shape;
use crate::services::echo_proto as proto;
use crate::services::shapes_proto::{LogRecord, Order, Samples, SeveralData, Visit};

/// A document as a client of the protocol holds it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Document {
    ProtoStrings(proto::Strings),
    ProtoPerson(proto::Person),
    SerdeStrings(Strings),
    SerdePerson(Person),
    // Messages of the codec study are both prost and serde types.
    SeveralData(SeveralData),
    Order(Order),
    LogRecord(LogRecord),
    Visit(Visit),
    Samples(Samples),
    Own(OwnMessage),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Strings {
    strings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Person {
    name: String,
    age: i32,
    hobbies: Option<Vec<String>>,
    address: Option<Address>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Address {
    city: String,
    zip_code: String,
}

impl Document {
    /// Returns all documents of a shape, sent in turn. [`Shape::Own`] yields those of `own`.
    pub(super) fn all(shape: Shape, format: Format, own: Option<&OwnEcho>) -> Vec<Self> {
        match (shape, format) {
            (Shape::Strings { count, letters }, Format::Protobuf) => {
                vec![Self::ProtoStrings(proto::Strings { strings: strings(count, letters) })]
            }
            (Shape::Strings { count, letters }, Format::Json | Format::Msgpack) => {
                vec![Self::SerdeStrings(Strings { strings: strings(count, letters) })]
            }
            (Shape::Person, _) => vec![Self::person(ada(), format)],
            (Shape::Study(kind), _) => Self::of_study(kind, format),
            (Shape::Own, _) => own.into_iter().flat_map(|own| own.0.iter().cloned().map(Self::Own)).collect(),
        }
    }

    fn of_study(kind: Kind, format: Format) -> Vec<Self> {
        match kind {
            Kind::PersonFull => persons(generate::person_full(), format),
            Kind::PersonSparse => persons(generate::person_sparse(), format),
            Kind::SeveralData => typed(kind, &generate::several_data(SEED), Self::SeveralData),
            Kind::Order => typed(kind, &generate::orders(SEED), Self::Order),
            Kind::LogRecord => typed(kind, &generate::log_records(SEED), Self::LogRecord),
            Kind::Visit => typed(kind, &generate::visits(SEED), Self::Visit),
            Kind::Samples => typed(kind, &generate::samples(SEED), Self::Samples),
        }
    }

    fn person(person: plain::Person, format: Format) -> Self {
        let plain::Person { name, age, hobbies, address } = person;
        match format {
            Format::Protobuf => {
                let address =
                    address.map(|plain::Address { city, zip_code }| proto::Address { city, zip_code });
                Self::ProtoPerson(proto::Person { name, age, hobbies: hobbies.unwrap_or_default(), address })
            }
            Format::Json | Format::Msgpack => {
                let address = address.map(|plain::Address { city, zip_code }| Address { city, zip_code });
                Self::SerdePerson(Person { name, age, hobbies, address })
            }
        }
    }

    /// Encodes the document after `prefix_len` zero bytes.
    pub(super) fn encode_after_prefix(&self, format: Format, prefix_len: usize) -> Vec<u8> {
        match self {
            Self::ProtoStrings(message) => protobuf(message, prefix_len),
            Self::ProtoPerson(message) => protobuf(message, prefix_len),
            Self::SerdeStrings(object) => by_serde(object, format, prefix_len),
            Self::SerdePerson(object) => by_serde(object, format, prefix_len),
            Self::SeveralData(both) => by_either(both, format, prefix_len),
            Self::Order(both) => by_either(both, format, prefix_len),
            Self::LogRecord(both) => by_either(both, format, prefix_len),
            Self::Visit(both) => by_either(both, format, prefix_len),
            Self::Samples(both) => by_either(both, format, prefix_len),
            Self::Own(message) => message.encode_after_prefix(format, prefix_len),
        }
    }

    /// Decodes a document of the same kind. The error says what is wrong with the bytes.
    pub(super) fn decode_like(&self, format: Format, bytes: &[u8]) -> Result<Self, String> {
        match self {
            Self::ProtoStrings(_) => message(bytes).map(Self::ProtoStrings),
            Self::ProtoPerson(_) => message(bytes).map(Self::ProtoPerson),
            Self::SerdeStrings(_) => object(bytes, format).map(Self::SerdeStrings),
            Self::SerdePerson(_) => object(bytes, format).map(Self::SerdePerson),
            Self::SeveralData(_) => either(bytes, format).map(Self::SeveralData),
            Self::Order(_) => either(bytes, format).map(Self::Order),
            Self::LogRecord(_) => either(bytes, format).map(Self::LogRecord),
            Self::Visit(_) => either(bytes, format).map(Self::Visit),
            Self::Samples(_) => either(bytes, format).map(Self::Samples),
            Self::Own(like) => like.decode_like(format, bytes).map(Self::Own),
        }
    }

    /// Compares cheaply, without comparing each character: number and lengths of the strings, or a unique field.
    pub(super) fn is_alike(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::ProtoStrings(one), Self::ProtoStrings(other)) => are_alike(&one.strings, &other.strings),
            (Self::SerdeStrings(one), Self::SerdeStrings(other)) => are_alike(&one.strings, &other.strings),
            (Self::ProtoPerson(one), Self::ProtoPerson(other)) => one.name == other.name,
            (Self::SerdePerson(one), Self::SerdePerson(other)) => one.name == other.name,
            (Self::SeveralData(one), Self::SeveralData(other)) => are_alike(&one.strings, &other.strings),
            (Self::Order(one), Self::Order(other)) => one.id == other.id,
            (Self::LogRecord(one), Self::LogRecord(other)) => one.trace == other.trace,
            (Self::Visit(one), Self::Visit(other)) => one.session == other.session,
            (Self::Samples(one), Self::Samples(other)) => one.sensor == other.sensor,
            (Self::Own(one), Self::Own(other)) => one.is_alike(other),
            _ => false,
        }
    }
}

fn ada() -> plain::Person {
    let hobbies = ["reading", "hiking", "chess"].map(str::to_owned).to_vec();
    let address = plain::Address { city: "London".to_owned(), zip_code: "W1J 7NT".to_owned() };
    plain::Person { name: "Ada Lovelace".to_owned(), age: 36, hobbies: Some(hobbies), address: Some(address) }
}

fn persons(persons: Vec<plain::Person>, format: Format) -> Vec<Document> {
    persons.into_iter().map(|person| Document::person(person, format)).collect()
}

/// Converts plain structs to generated messages via JSON, which both support.
fn typed<M: Message + Default>(
    kind: Kind,
    plain: &[impl Serialize],
    document: fn(M) -> Document,
) -> Vec<Document> {
    static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
        Schema::from_descriptor_set(proto::FILE_DESCRIPTOR_SET).expect("generated with the stubs")
    });
    let of = SCHEMA.message(kind.type_name()).expect("the service imports it");
    let one = |plain| {
        let text = serde_json::to_vec(plain).expect("strings, numbers and maps of strings");
        let wire = json::to_wire(of, &text).expect("the structs are those of the messages");
        document(M::decode(wire.as_slice()).expect("a message of the type"))
    };
    plain.iter().map(one).collect()
}

fn by_either(both: &(impl Message + Serialize), format: Format, prefix_len: usize) -> Vec<u8> {
    match format {
        Format::Protobuf => protobuf(both, prefix_len),
        Format::Json | Format::Msgpack => by_serde(both, format, prefix_len),
    }
}

fn either<T: Message + Default + DeserializeOwned>(bytes: &[u8], format: Format) -> Result<T, String> {
    match format {
        Format::Protobuf => message(bytes),
        Format::Json | Format::Msgpack => object(bytes, format),
    }
}

fn are_alike(some: &[String], others: &[String]) -> bool {
    some.len() == others.len() && some.iter().zip(others).all(|(one, other)| one.len() == other.len())
}

/// Generates different strings, the same in each run.
fn strings(count: u32, letters: u32) -> Vec<String> {
    let mut state = 1_u32;
    let mut letter = || {
        // A Lehmer generator; the product of two numbers below 2^31 fits in 64 bits.
        state = (u64::from(state) * 48_271 % 0x7fff_ffff) as u32;
        char::from(b'a' + (state % 26) as u8)
    };
    (0..count).map(|_| (0..letters).map(|_| letter()).collect()).collect()
}

fn protobuf(message: &impl Message, prefix_len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(prefix_len + message.encoded_len());
    bytes.resize(prefix_len, 0);
    message.encode_raw(&mut bytes);
    bytes
}

fn message<M: Message + Default>(bytes: &[u8]) -> Result<M, String> {
    M::decode(bytes).map_err(|error| format!("the response is not a valid message: {error}"))
}

fn by_serde(object: &impl Serialize, format: Format, prefix_len: usize) -> Vec<u8> {
    let mut bytes = vec![0; prefix_len];
    match format {
        Format::Msgpack => {
            rmp_serde::encode::write_named(&mut bytes, object).expect("strings and numbers");
        }
        _ => serde_json::to_writer(&mut bytes, object).expect("strings and numbers"),
    }
    bytes
}

fn object<T: DeserializeOwned>(bytes: &[u8], format: Format) -> Result<T, String> {
    match format {
        Format::Msgpack => rmp_serde::from_slice(bytes)
            .map_err(|error| format!("the response is not valid MessagePack: {error}")),
        _ => {
            serde_json::from_slice(bytes).map_err(|error| format!("the response is not valid JSON: {error}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use thalweg_protobuf::msgpack;

    use super::*;

    fn shapes() -> impl Iterator<Item = Shape> {
        let own = [
            Shape::Strings { count: 30, letters: 20 },
            Shape::Strings { count: 0, letters: 0 },
            Shape::Person,
        ];
        own.into_iter().chain(Kind::ALL.map(Shape::Study))
    }

    fn first(shape: Shape, format: Format) -> Document {
        Document::all(shape, format, None).remove(0)
    }

    const FORMATS: [Format; 3] = [Format::Protobuf, Format::Json, Format::Msgpack];

    #[test]
    fn documents_round_trip_through_bytes() {
        for shape in shapes() {
            for format in FORMATS {
                let document = first(shape, format);
                let bytes = document.encode_after_prefix(format, 3);
                assert_eq!(bytes[..3], [0; 3]);
                let back = document.decode_like(format, &bytes[3..]).unwrap();
                assert_eq!(back, document);
                assert!(back.is_alike(&document));
                // An empty Protobuf message is valid and cannot be cut.
                if bytes.len() > 3 {
                    let cut = document.decode_like(format, &bytes[3..bytes.len() - 1]);
                    assert!(cut.is_err(), "{shape} {format:?}");
                }
            }
        }
    }

    #[test]
    fn different_documents_are_not_alike() {
        for format in FORMATS {
            let strings = |count, letters| first(Shape::Strings { count, letters }, format);
            assert!(!strings(2, 3).is_alike(&strings(3, 2)));
            assert!(!strings(3, 2).is_alike(&strings(3, 3)));
            assert!(!strings(3, 2).is_alike(&first(Shape::Person, format)));
        }
    }

    #[test]
    fn json_has_field_names_of_contract() {
        let json = |shape| {
            let bytes = first(shape, Format::Json).encode_after_prefix(Format::Json, 0);
            serde_json::from_slice::<serde_json::Value>(&bytes).unwrap()
        };
        let person = json(Shape::Person);
        assert_eq!(person["address"]["zipCode"], "W1J 7NT");
        assert_eq!(person["age"], 36);
        let strings = json(Shape::Strings { count: 2, letters: 1 });
        assert_eq!(strings["strings"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn echoed_study_messages_equal_codec_messages() {
        let bytes = |kind, format| first(Shape::Study(kind), format).encode_after_prefix(format, 0);
        assert_eq!(bytes(Kind::PersonSparse, Format::Protobuf), b"\x0a\x0dpolar penguin\x10\x14");
        assert_eq!(
            bytes(Kind::PersonSparse, Format::Json),
            br#"{"name":"polar penguin","age":20,"hobbies":null,"address":null}"#
        );
        for kind in [Kind::Order, Kind::LogRecord, Kind::Visit, Kind::Samples] {
            let all = Document::all(Shape::Study(kind), Format::Protobuf, None);
            assert_eq!(all.len(), 64);
            assert!(!all[0].is_alike(&all[1]), "{kind:?}");
        }
    }

    /// For each message, the server accepts the client's encoding and the client the server's.
    #[test]
    fn serde_output_equals_protobuf_json_mapping() {
        let schema = Schema::from_descriptor_set(proto::FILE_DESCRIPTOR_SET).unwrap();
        for kind in [Kind::SeveralData, Kind::Order, Kind::LogRecord, Kind::Visit, Kind::Samples] {
            let of = schema.message(kind.type_name()).unwrap();
            for document in Document::all(Shape::Study(kind), Format::Protobuf, None) {
                let written = |format| document.encode_after_prefix(format, 0);
                let wires = [
                    json::to_wire(of, &written(Format::Json)).unwrap(),
                    msgpack::to_wire(of, &written(Format::Msgpack)).unwrap(),
                ];
                for wire in wires {
                    assert_eq!(document.decode_like(Format::Protobuf, &wire).unwrap(), document);
                }
                let wire = written(Format::Protobuf);
                let json = json::from_wire(of, &wire).unwrap();
                assert_eq!(document.decode_like(Format::Json, json.as_bytes()).unwrap(), document);
                let msgpack = msgpack::from_wire(of, &wire).unwrap();
                assert_eq!(document.decode_like(Format::Msgpack, &msgpack).unwrap(), document);
            }
        }
    }
}
