//! What a program has in its hands, and its bytes: prost's messages for gRPC, plain structs for JSON.

use bytes::{BufMut, Bytes};
use prost::Message;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::protocol::Format;
use super::shape::Shape;
use crate::services::echo_proto as proto;

/// The prefix of a message of gRPC: whether it is compressed, and its length.
const PREFIX_LEN: usize = 5;

/// One of them, as its protocol's client has it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Document {
    ProtoStrings(proto::Strings),
    ProtoPerson(proto::Person),
    JsonStrings(Strings),
    JsonPerson(Person),
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
            (Shape::Strings { count, letters }, Format::Envelope) => {
                Self::ProtoStrings(proto::Strings { strings: strings(count, letters) })
            }
            (Shape::Strings { count, letters }, Format::Json) => {
                Self::JsonStrings(Strings { strings: strings(count, letters) })
            }
            (Shape::Person, Format::Envelope) => {
                let address = Some(proto::Address { city, zip_code });
                Self::ProtoPerson(proto::Person { name, age: 36, hobbies: hobbies(), address })
            }
            (Shape::Person, Format::Json) => {
                let address = Some(Address { city, zip_code });
                Self::JsonPerson(Person { name, age: 36, hobbies: hobbies(), address })
            }
        }
    }

    pub(super) fn encode(&self) -> Bytes {
        match self {
            Self::ProtoStrings(message) => envelope(message),
            Self::ProtoPerson(message) => envelope(message),
            Self::JsonStrings(object) => json(object),
            Self::JsonPerson(object) => json(object),
        }
    }

    /// What these bytes are, which are to be of the same kind; the error is what is wrong with them.
    pub(super) fn decode_like(&self, bytes: &[u8]) -> Result<Self, String> {
        match self {
            Self::ProtoStrings(_) => message(bytes).map(Self::ProtoStrings),
            Self::ProtoPerson(_) => message(bytes).map(Self::ProtoPerson),
            Self::JsonStrings(_) => object(bytes).map(Self::JsonStrings),
            Self::JsonPerson(_) => object(bytes).map(Self::JsonPerson),
        }
    }

    /// As sure as one can be without looking at each letter: the number of strings and their lengths, or the name.
    pub(super) fn is_alike(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::ProtoStrings(one), Self::ProtoStrings(other)) => are_alike(&one.strings, &other.strings),
            (Self::JsonStrings(one), Self::JsonStrings(other)) => are_alike(&one.strings, &other.strings),
            (Self::ProtoPerson(one), Self::ProtoPerson(other)) => one.name == other.name,
            (Self::JsonPerson(one), Self::JsonPerson(other)) => one.name == other.name,
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

fn envelope(message: &impl Message) -> Bytes {
    let len = message.encoded_len();
    let mut bytes = Vec::with_capacity(PREFIX_LEN + len);
    bytes.put_u8(0);
    bytes.put_u32(len as u32);
    message.encode_raw(&mut bytes);
    bytes.into()
}

fn message<M: Message + Default>(bytes: &[u8]) -> Result<M, String> {
    let [0, a, b, c, d, message @ ..] = bytes else {
        return Err("the answer is no plain message".to_owned());
    };
    let len = u32::from_be_bytes([*a, *b, *c, *d]);
    if len as usize != message.len() {
        return Err(format!("the answer's message should have {len} bytes and has {}", message.len()));
    }
    M::decode(message).map_err(|error| format!("the answer is no such message: {error}"))
}

fn json(object: &impl Serialize) -> Bytes {
    serde_json::to_vec(object).expect("strings and numbers").into()
}

fn object<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|error| format!("the answer is no such JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPES: [Shape; 3] =
        [Shape::Strings { count: 30, letters: 20 }, Shape::Strings { count: 0, letters: 0 }, Shape::Person];

    #[test]
    fn documents_come_back_from_their_bytes() {
        for shape in SHAPES {
            for format in [Format::Envelope, Format::Json] {
                let document = Document::new(shape, format);
                let back = document.decode_like(&document.encode()).unwrap();
                assert_eq!(back, document);
                assert!(back.is_alike(&document));
                let bytes = document.encode();
                assert!(document.decode_like(&bytes[..bytes.len() - 1]).is_err(), "{shape} {format:?}");
            }
        }
    }

    #[test]
    fn what_is_not_the_same_is_not_alike() {
        for format in [Format::Envelope, Format::Json] {
            let strings = |count, letters| Document::new(Shape::Strings { count, letters }, format);
            assert!(!strings(2, 3).is_alike(&strings(3, 2)));
            assert!(!strings(3, 2).is_alike(&strings(3, 3)));
            assert!(!strings(3, 2).is_alike(&Document::new(Shape::Person, format)));
        }
    }

    #[test]
    fn json_has_the_names_of_the_contract() {
        let person = Document::new(Shape::Person, Format::Json).encode();
        let person: serde_json::Value = serde_json::from_slice(&person).unwrap();
        assert_eq!(person["address"]["zipCode"], "W1J 7NT");
        assert_eq!(person["age"], 36);
        let strings = Document::new(Shape::Strings { count: 2, letters: 1 }, Format::Json).encode();
        let strings: serde_json::Value = serde_json::from_slice(&strings).unwrap();
        assert_eq!(strings["strings"].as_array().map(Vec::len), Some(2));
    }
}
