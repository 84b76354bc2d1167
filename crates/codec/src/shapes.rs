//! The messages of `proto/shapes.proto`, made from a seed, with every codec that can convert them.

use std::marker::PhantomData;

use buffa::HasMessageView;
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codecs::engine::{Engine, Json, MessagePack, Transcoded};
use crate::codecs::{buffa as buffa_codec, engine, prost as prost_codec, reflect, serde as serde_codec};
use crate::converter::{Entry, NotConverted};
use crate::read::Read;
use crate::{generate, plain, viewed};
use generate::Random;

/// Messages as prost and pbjson have them.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic, reason = "generated code")]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/shapes.rs"));
    include!(concat!(env!("OUT_DIR"), "/shapes.serde.rs"));
}

/// The descriptors of `proto/shapes.proto`.
pub(crate) const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/shapes.bin"));

/// A kind of message and its converters.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) messages: usize,
    pub(crate) entries: Vec<Entry>,
}

/// All kinds of message.
pub(crate) fn shapes(seed: u64) -> Result<Vec<Shape>, NotConverted> {
    let pool = DescriptorPool::decode(DESCRIPTORS).map_err(NotConverted::new)?;
    // Each shape has a generator of its own: what one draws does not change another.
    let random = |shape: u64| Random::new(seed.wrapping_add(shape << 32));
    Ok(vec![
        shape::<_, generated::Person, viewed::Person>(
            ("person-full", "name, age, three hobbies, an address"),
            &pool,
            generate::person_full(),
        )?,
        shape::<_, generated::Person, viewed::Person>(
            ("person-sparse", "name and age: 17 bytes of Protobuf, 63 of JSON"),
            &pool,
            generate::person_sparse(),
        )?,
        shape::<_, generated::SeveralData, viewed::SeveralData>(
            ("several-data", "a field of each type, and 5,000 strings of 20 characters"),
            &pool,
            generate::several_data(&mut random(1)),
        )?,
        shape::<_, generated::Order, viewed::Order>(
            ("order", "a flat record of 13 fields"),
            &pool,
            generate::orders(&mut random(2)),
        )?,
        shape::<_, generated::LogRecord, viewed::LogRecord>(
            ("log-record", "a line of a log"),
            &pool,
            generate::log_records(&mut random(3)),
        )?,
        shape::<_, generated::Visit, viewed::Visit>(
            ("visit", "analytics: messages in messages, and maps"),
            &pool,
            generate::visits(&mut random(4)),
        )?,
        shape::<_, generated::Samples, viewed::Samples>(
            ("samples", "five rows of 160 numbers"),
            &pool,
            generate::samples(&mut random(5)),
        )?,
    ])
}

/// The Protobuf type of a kind of message.
pub(crate) fn type_of(name: &str) -> Option<&'static str> {
    Some(match name {
        "person-full" | "person-sparse" => plain::Person::NAME,
        "several-data" => plain::SeveralData::NAME,
        "order" => plain::Order::NAME,
        "log-record" => plain::LogRecord::NAME,
        "visit" => plain::Visit::NAME,
        "samples" => plain::Samples::NAME,
        _ => return None,
    })
}

/// A shape: P is plain, M prost's message with pbjson's mapping, B buffa's.
fn shape<P, M, B>(
    (name, about): (&'static str, &'static str),
    pool: &DescriptorPool,
    plain: Vec<P>,
) -> Result<Shape, NotConverted>
where
    P: Serialize + DeserializeOwned + PartialEq + Named + Send + 'static,
    M: Message + Default + PartialEq + Serialize + DeserializeOwned + Clone + 'static,
    B: HasMessageView + PartialEq + 'static,
    for<'w> B::View<'w>: Read,
{
    let descriptor = pool
        .get_message_by_name(P::NAME)
        .ok_or_else(|| NotConverted::new(format!("{} is not in shapes.proto", P::NAME)))?;
    let dynamic = each(&plain, |plain| dynamic(&descriptor, plain))?;
    let wires: Vec<Vec<u8>> = dynamic.iter().map(Message::encode_to_vec).collect();
    let typed = each(&wires, |wire| M::decode(wire.as_slice()))?;
    let buffa = || each(&wires, |wire| B::decode_from_slice(wire));
    let copies = || each(&plain, |plain| serde_json::from_value::<P>(serde_json::to_value(plain)?));
    let messages = plain.len();
    let of = engine::message_type(DESCRIPTORS, P::NAME)?;
    let of_engine = || engine::messages(of, &wires);
    let entries = vec![
        Entry::new("prost", prost_codec::Prost(PhantomData), typed.clone())?,
        Entry::new("buffa", buffa_codec::Owned::<B>::default(), buffa()?)?,
        Entry::new("buffa-view", buffa_codec::View::<B>::default(), buffa()?)?,
        Entry::new("thalweg", Engine::new(of), of_engine()?)?,
        Entry::new("prost-reflect", reflect::Reflect(descriptor.clone()), dynamic)?,
        Entry::new("serde_json", serde_codec::SerdeJson(PhantomData), copies()?)?,
        Entry::new("sonic-rs", serde_codec::SonicRs(PhantomData), copies()?)?,
        Entry::new("pbjson", serde_codec::SerdeJson(PhantomData), typed)?,
        Entry::new("thalweg-json", Transcoded::<Json>::new(of), of_engine()?)?,
        Entry::new("rmp-serde", serde_codec::RmpSerde(PhantomData), plain)?,
        Entry::new("thalweg-msgpack", Transcoded::<MessagePack>::new(of), of_engine()?)?,
    ];
    Ok(Shape { name, about, messages, entries })
}

/// What a plain struct says in JSON, as the message of the descriptor.
fn dynamic(descriptor: &MessageDescriptor, plain: &impl Serialize) -> Result<DynamicMessage, NotConverted> {
    let text = serde_json::to_vec(plain).map_err(NotConverted::new)?;
    let message = reflect::from_json(descriptor, &text)?;
    // An empty list that JSON named is one that is set, and is no longer when it was bytes.
    DynamicMessage::decode(descriptor.clone(), message.encode_to_vec().as_slice()).map_err(NotConverted::new)
}

fn each<T, U, E: ToString>(from: &[T], make: impl Fn(&T) -> Result<U, E>) -> Result<Vec<U>, NotConverted> {
    from.iter().map(make).collect::<Result<_, _>>().map_err(NotConverted::new)
}

/// The message that a plain struct stands for.
trait Named {
    const NAME: &'static str;
}

impl Named for plain::Person {
    const NAME: &'static str = "shapes.Person";
}

impl Named for plain::SeveralData {
    const NAME: &'static str = "shapes.SeveralData";
}

impl Named for plain::Order {
    const NAME: &'static str = "shapes.Order";
}

impl Named for plain::LogRecord {
    const NAME: &'static str = "shapes.LogRecord";
}

impl Named for plain::Visit {
    const NAME: &'static str = "shapes.Visit";
}

impl Named for plain::Samples {
    const NAME: &'static str = "shapes.Samples";
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wires(shapes: &[Shape], name: &str, codec: &str) -> Vec<Vec<u8>> {
        let shape = shapes.iter().find(|shape| shape.name == name).unwrap();
        shape.entries.iter().find(|entry| entry.codec == codec).unwrap().converter.wires().to_vec()
    }

    #[test]
    fn the_sparse_person_has_the_published_bytes() {
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
    fn shapes_have_the_sizes_that_they_stand_for() {
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
    fn a_seed_makes_the_same_messages_and_another_makes_others() {
        let log = |seed| wires(&shapes(seed).unwrap(), "log-record", "prost");
        assert_eq!(log(7), log(7));
        assert_ne!(log(7), log(8));
    }

    #[test]
    fn codecs_of_one_format_write_the_same_message() {
        for shape in shapes(3).unwrap() {
            let lengths = |codec: &str| {
                let entry = shape.entries.iter().find(|entry| entry.codec == codec).unwrap();
                entry.converter.wires().iter().map(Vec::len).collect::<Vec<_>>()
            };
            // Maps have no order: lengths are compared, not bytes.
            for codec in ["buffa", "thalweg", "prost-reflect"] {
                assert_eq!(lengths(codec), lengths("prost"), "{} of {codec}", shape.name);
            }
        }
    }
}
