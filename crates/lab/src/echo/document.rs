//! What a program has in its hands, and its bytes: prost's messages for Protobuf, structs of serde's for JSON and
//! MessagePack.

use prost::Message;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::protocol::Format;
use super::shape::Shape;
use crate::services::echo_proto as proto;

/// One of them, as its protocol's client has it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Document {
    ProtoStrings(proto::Strings),
    ProtoPerson(proto::Person),
    SerdeStrings(Strings),
    SerdePerson(Person),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Strings {
    strings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Person {
    name: String,
    age: i32,
    hobbies: Vec<String>,
    address: Option<Address>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Address {
    city: String,
    zip_code: String,
}

impl Document {
    pub(super) fn new(shape: Shape, format: Format) -> Self {
        let hobbies = || ["reading", "hiking", "chess"].map(str::to_owned).to_vec();
        let (name, city, zip_code) = ("Ada Lovelace".to_owned(), "London".to_owned(), "W1J 7NT".to_owned());
        match (shape, format) {
            (Shape::Strings { count, letters }, Format::Protobuf) => {
                Self::ProtoStrings(proto::Strings { strings: strings(count, letters) })
            }
            (Shape::Strings { count, letters }, Format::Json | Format::Msgpack) => {
                Self::SerdeStrings(Strings { strings: strings(count, letters) })
            }
            (Shape::Person, Format::Protobuf) => {
                let address = Some(proto::Address { city, zip_code });
                Self::ProtoPerson(proto::Person { name, age: 36, hobbies: hobbies(), address })
            }
            (Shape::Person, Format::Json | Format::Msgpack) => {
                let address = Some(Address { city, zip_code });
                Self::SerdePerson(Person { name, age: 36, hobbies: hobbies(), address })
            }
        }
    }

    /// Its bytes behind so many others, which are zero.
    pub(super) fn encode_behind(&self, format: Format, prefix_len: usize) -> Vec<u8> {
        match self {
            Self::ProtoStrings(message) => protobuf(message, prefix_len),
            Self::ProtoPerson(message) => protobuf(message, prefix_len),
            Self::SerdeStrings(object) => by_serde(object, format, prefix_len),
            Self::SerdePerson(object) => by_serde(object, format, prefix_len),
        }
    }

    /// What these bytes are, which are to be of the same kind; the error is what is wrong with them.
    pub(super) fn decode_like(&self, format: Format, bytes: &[u8]) -> Result<Self, String> {
        match self {
            Self::ProtoStrings(_) => message(bytes).map(Self::ProtoStrings),
            Self::ProtoPerson(_) => message(bytes).map(Self::ProtoPerson),
            Self::SerdeStrings(_) => object(bytes, format).map(Self::SerdeStrings),
            Self::SerdePerson(_) => object(bytes, format).map(Self::SerdePerson),
        }
    }

    /// As sure as one can be without looking at each letter: the number of strings and their lengths, or the name.
    pub(super) fn is_alike(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::ProtoStrings(one), Self::ProtoStrings(other)) => are_alike(&one.strings, &other.strings),
            (Self::SerdeStrings(one), Self::SerdeStrings(other)) => are_alike(&one.strings, &other.strings),
            (Self::ProtoPerson(one), Self::ProtoPerson(other)) => one.name == other.name,
            (Self::SerdePerson(one), Self::SerdePerson(other)) => one.name == other.name,
            _ => false,
        }
    }
}

fn are_alike(some: &[String], others: &[String]) -> bool {
    some.len() == others.len() && some.iter().zip(others).all(|(one, other)| one.len() == other.len())
}

/// Letters that differ from string to string, and are the same in each run.
fn strings(count: u32, letters: u32) -> Vec<String> {
    let mut state = 1_u32;
    let mut letter = || {
        // A generator of Lehmer's: the product of two numbers below 2^31 fits 64 bits.
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
    M::decode(bytes).map_err(|error| format!("the answer is no such message: {error}"))
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
            .map_err(|error| format!("the answer is no such MessagePack: {error}")),
        _ => serde_json::from_slice(bytes).map_err(|error| format!("the answer is no such JSON: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPES: [Shape; 3] =
        [Shape::Strings { count: 30, letters: 20 }, Shape::Strings { count: 0, letters: 0 }, Shape::Person];
    const FORMATS: [Format; 3] = [Format::Protobuf, Format::Json, Format::Msgpack];

    #[test]
    fn documents_come_back_from_their_bytes() {
        for shape in SHAPES {
            for format in FORMATS {
                let document = Document::new(shape, format);
                let bytes = document.encode_behind(format, 3);
                assert_eq!(bytes[..3], [0; 3]);
                let back = document.decode_like(format, &bytes[3..]).unwrap();
                assert_eq!(back, document);
                assert!(back.is_alike(&document));
                // Nothing is a message of Protobuf, too.
                if bytes.len() > 3 {
                    let cut = document.decode_like(format, &bytes[3..bytes.len() - 1]);
                    assert!(cut.is_err(), "{shape} {format:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_not_the_same_is_not_alike() {
        for format in FORMATS {
            let strings = |count, letters| Document::new(Shape::Strings { count, letters }, format);
            assert!(!strings(2, 3).is_alike(&strings(3, 2)));
            assert!(!strings(3, 2).is_alike(&strings(3, 3)));
            assert!(!strings(3, 2).is_alike(&Document::new(Shape::Person, format)));
        }
    }

    #[test]
    fn json_has_the_names_of_the_contract() {
        let json = |shape| {
            let bytes = Document::new(shape, Format::Json).encode_behind(Format::Json, 0);
            serde_json::from_slice::<serde_json::Value>(&bytes).unwrap()
        };
        let person = json(Shape::Person);
        assert_eq!(person["address"]["zipCode"], "W1J 7NT");
        assert_eq!(person["age"], 36);
        let strings = json(Shape::Strings { count: 2, letters: 1 });
        assert_eq!(strings["strings"].as_array().map(Vec::len), Some(2));
    }
}
