//! The messages of `shapes.proto`, generated from a seed, with every codec that can convert them.

use std::marker::PhantomData;

use buffa::HasMessageView;
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use serde::Serialize;
use serde::de::DeserializeOwned;
use thalweg_messages::{Kind, generate};

use crate::codecs::engine::{Engine, Json, MessagePack, Transcoded};
use crate::codecs::{buffa as buffa_codec, engine, prost as prost_codec, reflect, serde as serde_codec};
use crate::converter::{ConversionError, Entry};
use crate::read::Read;
use crate::viewed;

/// Messages of prost and pbjson.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic, reason = "generated code")]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/shapes.rs"));
    include!(concat!(env!("OUT_DIR"), "/shapes.serde.rs"));
}

/// The descriptors of `shapes.proto`.
pub(crate) const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/shapes.bin"));

/// A kind of message and its converters.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) messages: usize,
    pub(crate) entries: Vec<Entry>,
}

/// Creates all kinds of message.
pub(crate) fn shapes(seed: u64) -> Result<Vec<Shape>, ConversionError> {
    let pool = DescriptorPool::decode(DESCRIPTORS).map_err(ConversionError::new)?;
    Ok(vec![
        shape::<_, generated::Person, viewed::Person>(Kind::PersonFull, &pool, generate::person_full())?,
        shape::<_, generated::Person, viewed::Person>(Kind::PersonSparse, &pool, generate::person_sparse())?,
        shape::<_, generated::SeveralData, viewed::SeveralData>(
            Kind::SeveralData,
            &pool,
            generate::several_data(seed),
        )?,
        shape::<_, generated::Order, viewed::Order>(Kind::Order, &pool, generate::orders(seed))?,
        shape::<_, generated::LogRecord, viewed::LogRecord>(
            Kind::LogRecord,
            &pool,
            generate::log_records(seed),
        )?,
        shape::<_, generated::Visit, viewed::Visit>(Kind::Visit, &pool, generate::visits(seed))?,
        shape::<_, generated::Samples, viewed::Samples>(Kind::Samples, &pool, generate::samples(seed))?,
    ])
}

/// Creates a shape. P is the plain struct, M prost's message with pbjson's mapping, B buffa's message.
fn shape<P, M, B>(kind: Kind, pool: &DescriptorPool, plain: Vec<P>) -> Result<Shape, ConversionError>
where
    P: Serialize + DeserializeOwned + PartialEq + Send + 'static,
    M: Message + Default + PartialEq + Serialize + DeserializeOwned + Clone + 'static,
    B: HasMessageView + PartialEq + 'static,
    for<'w> B::View<'w>: Read,
{
    let descriptor = pool
        .get_message_by_name(kind.type_name())
        .ok_or_else(|| ConversionError::new(format!("{} is not in shapes.proto", kind.type_name())))?;
    let dynamic = convert_each(&plain, |plain| dynamic(&descriptor, plain))?;
    let wires: Vec<Vec<u8>> = dynamic.iter().map(Message::encode_to_vec).collect();
    let typed = convert_each(&wires, |wire| M::decode(wire.as_slice()))?;
    let buffa = || convert_each(&wires, |wire| B::decode_from_slice(wire));
    let copies = || convert_each(&plain, |plain| serde_json::from_value::<P>(serde_json::to_value(plain)?));
    let messages = plain.len();
    let message_type = engine::message_type(DESCRIPTORS, kind.type_name())?;
    let engine_messages = || engine::messages(message_type, &wires);
    let entries = vec![
        Entry::new("prost", prost_codec::Prost(PhantomData), typed.clone())?,
        Entry::new("buffa", buffa_codec::Owned::<B>::default(), buffa()?)?,
        Entry::new("buffa-view", buffa_codec::View::<B>::default(), buffa()?)?,
        Entry::new("thalweg", Engine::new(message_type), engine_messages()?)?,
        Entry::new("prost-reflect", reflect::Reflect(descriptor.clone()), dynamic)?,
        Entry::new("serde_json", serde_codec::SerdeJson(PhantomData), copies()?)?,
        Entry::new("sonic-rs", serde_codec::SonicRs(PhantomData), copies()?)?,
        Entry::new("pbjson", serde_codec::SerdeJson(PhantomData), typed)?,
        Entry::new("thalweg-json", Transcoded::<Json>::new(message_type), engine_messages()?)?,
        Entry::new("rmp-serde", serde_codec::RmpSerde(PhantomData), plain)?,
        Entry::new("thalweg-msgpack", Transcoded::<MessagePack>::new(message_type), engine_messages()?)?,
    ];
    Ok(Shape { name: kind.name(), about: kind.about(), messages, entries })
}

/// Converts a plain struct to a message of the descriptor, by its JSON.
fn dynamic(
    descriptor: &MessageDescriptor,
    plain: &impl Serialize,
) -> Result<DynamicMessage, ConversionError> {
    let text = serde_json::to_vec(plain).map_err(ConversionError::new)?;
    let message = reflect::from_json(descriptor, &text)?;
    // An empty list in JSON counts as set, but no longer does after encoding and decoding.
    DynamicMessage::decode(descriptor.clone(), message.encode_to_vec().as_slice())
        .map_err(ConversionError::new)
}

fn convert_each<T, U, E: ToString>(
    from: &[T],
    make: impl Fn(&T) -> Result<U, E>,
) -> Result<Vec<U>, ConversionError> {
    from.iter().map(make).collect::<Result<_, _>>().map_err(ConversionError::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wires(shapes: &[Shape], name: &str, codec: &str) -> Vec<Vec<u8>> {
        let shape = shapes.iter().find(|shape| shape.name == name).unwrap();
        shape.entries.iter().find(|entry| entry.codec == codec).unwrap().converter.wires().to_vec()
    }

    #[test]
    fn sparse_person_has_published_bytes() {
        let shapes = shapes(1).unwrap();
        let check =
            |codec: &str, expected: &[u8]| assert_eq!(wires(&shapes, "person-sparse", codec), [expected]);
        for codec in ["prost", "buffa", "thalweg", "prost-reflect"] {
            check(codec, b"\x0a\x0dpolar penguin\x10\x14");
        }
        let json = br#"{"name":"polar penguin","age":20,"hobbies":null,"address":null}"#;
        assert_eq!(json.len(), 63);
        check("serde_json", json);
        check("sonic-rs", json);
        for codec in ["pbjson", "thalweg-json"] {
            check(codec, br#"{"name":"polar penguin","age":20}"#);
        }
        check("thalweg-msgpack", b"\x82\xa4name\xadpolar penguin\xa3age\x14");
    }

    #[test]
    fn shapes_have_documented_sizes() {
        let shapes = shapes(1).unwrap();
        let check = |name: &str, expected: f64| {
            let wires = wires(&shapes, name, "prost");
            let mean = wires.iter().map(Vec::len).sum::<usize>() as f64 / wires.len() as f64;
            assert!((mean / expected - 1.0).abs() < 0.05, "{name} has {mean} bytes, not some {expected}");
        };
        check("order", 228.0);
        check("log-record", 129.0);
        check("visit", 637.0);
        check("samples", 3200.0);
        check("several-data", 5000.0 * 22.0);
    }

    #[test]
    fn seed_determines_the_messages() {
        let log = |seed| wires(&shapes(seed).unwrap(), "log-record", "prost");
        assert_eq!(log(7), log(7));
        assert_ne!(log(7), log(8));
    }

    #[test]
    fn protobuf_codecs_write_messages_of_equal_length() {
        for shape in shapes(3).unwrap() {
            let lengths = |codec: &str| {
                let entry = shape.entries.iter().find(|entry| entry.codec == codec).unwrap();
                entry.converter.wires().iter().map(Vec::len).collect::<Vec<_>>()
            };
            // Maps are unordered, so lengths are compared instead of bytes.
            for codec in ["buffa", "thalweg", "prost-reflect"] {
                assert_eq!(lengths(codec), lengths("prost"), "{} of {codec}", shape.name);
            }
        }
    }
}
