//! One codec at one shape of message, and the loops that are timed.

use std::hint::black_box;

use crate::contract::{Decodes, Operation};

/// Turns objects to bytes, and bytes to objects.
///
/// Both are inlined into the loops of [`Converter`]: nothing is called through a pointer for each message.
pub(crate) trait Codec: Send + 'static {
    /// What a program holds.
    type Object: Send + 'static;
    /// What bytes become; it may borrow from them, and from the codec.
    type Decoded<'w>;
    /// Whose memory holds what is decoded.
    const DECODES: Decodes;

    /// Appends the object's bytes.
    fn encode(&mut self, object: &Self::Object, out: &mut Vec<u8>) -> Result<(), NotConverted>;

    /// Reads what fills the whole of `wire`.
    fn decode<'w>(&'w mut self, wire: &'w [u8]) -> Result<Self::Decoded<'w>, NotConverted>;

    /// Reads every field of what is borrowed, see [`Read`](crate::read::Read). What is owned has been read.
    fn read(_: &Self::Decoded<'_>) -> u64 {
        0
    }

    /// What was read is what was written.
    fn same(object: &Self::Object, decoded: &Self::Decoded<'_>) -> bool;
}

/// A codec refused an object, or bytes.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NotConverted(String);

#[expect(clippy::needless_pass_by_value, reason = "errors come as `map_err` passes them on")]
impl NotConverted {
    pub(crate) fn new(reason: impl ToString) -> Self {
        Self(reason.to_string())
    }
}

/// A codec and its messages, behind one interface for all codecs.
pub(crate) trait Convert: Send {
    /// Converts so many times, message after message, and begins anew behind the last.
    fn convert(&mut self, operation: Operation, conversions: u64) -> Result<(), NotConverted>;

    /// What the messages are as bytes.
    fn wires(&self) -> &[Vec<u8>];

    /// Whose memory holds what is decoded.
    fn decodes(&self) -> Decodes;
}

/// A codec at a kind of message.
pub(crate) struct Entry {
    /// The codec's name.
    pub(crate) codec: &'static str,
    pub(crate) converter: Box<dyn Convert>,
}

impl Entry {
    /// A codec with its messages, under its name.
    pub(crate) fn new<C: Codec>(
        name: &'static str,
        codec: C,
        objects: Vec<C::Object>,
    ) -> Result<Self, NotConverted> {
        let converter =
            Converter::new(codec, objects).map_err(|error| NotConverted::new(format!("{name}: {error}")))?;
        Ok(Self { codec: name, converter: Box::new(converter) })
    }
}

/// A [`Codec`] with its messages, as objects and as bytes.
struct Converter<C: Codec> {
    codec: C,
    objects: Vec<C::Object>,
    wires: Vec<Vec<u8>>,
    /// What is encoded into, again and again.
    out: Vec<u8>,
}

impl<C: Codec> Converter<C> {
    /// Encodes every object once, and sees that it can be read back as it was.
    fn new(mut codec: C, objects: Vec<C::Object>) -> Result<Self, NotConverted> {
        let mut wires = Vec::with_capacity(objects.len());
        for object in &objects {
            let mut wire = Vec::new();
            codec.encode(object, &mut wire)?;
            let decoded = codec.decode(&wire)?;
            if !C::same(object, &decoded) {
                return Err(NotConverted::new("what it reads is not what it wrote"));
            }
            drop(decoded);
            wires.push(wire);
        }
        Ok(Self { codec, objects, wires, out: Vec::new() })
    }

    fn encode(&mut self, conversions: u64) -> Result<(), NotConverted> {
        let Self { codec, objects, out, .. } = self;
        for object in in_turn(objects, conversions) {
            out.clear();
            codec.encode(black_box(object), out)?;
            black_box(&mut *out);
        }
        Ok(())
    }

    fn decode(&mut self, conversions: u64) -> Result<(), NotConverted> {
        let Self { codec, wires, .. } = self;
        for wire in in_turn(wires, conversions) {
            use_up::<C>(&codec.decode(black_box(wire))?);
        }
        Ok(())
    }

    fn round_trip(&mut self, conversions: u64) -> Result<(), NotConverted> {
        let Self { codec, objects, out, .. } = self;
        for object in in_turn(objects, conversions) {
            out.clear();
            codec.encode(black_box(object), out)?;
            use_up::<C>(&codec.decode(black_box(out))?);
        }
        Ok(())
    }
}

/// All of it is wanted, wherever it lies.
#[inline]
fn use_up<C: Codec>(decoded: &C::Decoded<'_>) {
    black_box(C::read(black_box(decoded)));
}

/// `count` of the items, in order, over and over.
fn in_turn<T>(items: &[T], count: u64) -> impl Iterator<Item = &T> {
    items.iter().cycle().take(usize::try_from(count).unwrap_or(usize::MAX))
}

impl<C: Codec> Convert for Converter<C> {
    fn convert(&mut self, operation: Operation, conversions: u64) -> Result<(), NotConverted> {
        match operation {
            Operation::Encode => self.encode(conversions),
            Operation::Decode => self.decode(conversions),
            Operation::RoundTrip => self.round_trip(conversions),
        }
    }

    fn wires(&self) -> &[Vec<u8>] {
        &self.wires
    }

    fn decodes(&self) -> Decodes {
        C::DECODES
    }
}
