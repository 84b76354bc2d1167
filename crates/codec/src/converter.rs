//! One codec with one kind of message, and the timed loops.

use std::hint::black_box;

use crate::contract::{Decodes, Operation};

/// Converts objects to bytes, and bytes to objects.
///
/// Both are inlined into the loops of [`Converter`], without an indirect call per message.
pub(crate) trait Codec: Send + 'static {
    /// Type of objects in a program.
    type Object: Send + 'static;
    /// Type of decoded messages, which may borrow from the bytes and the codec.
    type Decoded<'w>;
    /// Ownership of decoded messages.
    const DECODES: Decodes;

    /// Appends the object's bytes.
    fn encode(&mut self, object: &Self::Object, out: &mut Vec<u8>) -> Result<(), ConversionError>;

    /// Decodes all of `wire`.
    fn decode<'w>(&'w mut self, wire: &'w [u8]) -> Result<Self::Decoded<'w>, ConversionError>;

    /// Reads every field of a borrowed message, see [`Read`](crate::read::Read). An owned message has already been
    /// read.
    fn read(_: &Self::Decoded<'_>) -> u64 {
        0
    }

    /// Returns whether the decoded message equals the object.
    fn equals(object: &Self::Object, decoded: &Self::Decoded<'_>) -> bool;
}

/// A codec rejected an object or bytes.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ConversionError(String);

#[expect(clippy::needless_pass_by_value, reason = "used with `map_err`")]
impl ConversionError {
    pub(crate) fn new(reason: impl ToString) -> Self {
        Self(reason.to_string())
    }
}

/// A codec and its messages, with a common interface for all codecs.
pub(crate) trait Convert: Send {
    /// Converts this many times, cycling through the messages.
    fn convert(&mut self, operation: Operation, conversions: u64) -> Result<(), ConversionError>;

    /// Returns the encoded messages.
    fn wires(&self) -> &[Vec<u8>];

    /// Returns whether decoded messages are owned or borrowed.
    fn decodes(&self) -> Decodes;
}

/// A codec for a kind of message.
pub(crate) struct Entry {
    /// The codec's name.
    pub(crate) codec: &'static str,
    pub(crate) converter: Box<dyn Convert>,
}

impl Entry {
    /// Creates a codec with its messages.
    pub(crate) fn new<C: Codec>(
        name: &'static str,
        codec: C,
        objects: Vec<C::Object>,
    ) -> Result<Self, ConversionError> {
        let converter = Converter::new(codec, objects)
            .map_err(|error| ConversionError::new(format!("{name}: {error}")))?;
        Ok(Self { codec: name, converter: Box::new(converter) })
    }
}

/// A [`Codec`] with its messages, as objects and as bytes.
struct Converter<C: Codec> {
    codec: C,
    objects: Vec<C::Object>,
    wires: Vec<Vec<u8>>,
    /// Reused buffer for encoding.
    out: Vec<u8>,
}

impl<C: Codec> Converter<C> {
    /// Encodes every object once, and checks that it can be decoded to an equal one.
    fn new(mut codec: C, objects: Vec<C::Object>) -> Result<Self, ConversionError> {
        let mut wires = Vec::with_capacity(objects.len());
        for object in &objects {
            let mut wire = Vec::new();
            codec.encode(object, &mut wire)?;
            let decoded = codec.decode(&wire)?;
            if !C::equals(object, &decoded) {
                return Err(ConversionError::new("the decoded message differs from the encoded one"));
            }
            drop(decoded);
            wires.push(wire);
        }
        Ok(Self { codec, objects, wires, out: Vec::new() })
    }

    fn encode(&mut self, conversions: u64) -> Result<(), ConversionError> {
        let Self { codec, objects, out, .. } = self;
        for object in cycle(objects, conversions) {
            out.clear();
            codec.encode(black_box(object), out)?;
            black_box(&mut *out);
        }
        Ok(())
    }

    fn decode(&mut self, conversions: u64) -> Result<(), ConversionError> {
        let Self { codec, wires, .. } = self;
        for wire in cycle(wires, conversions) {
            consume::<C>(&codec.decode(black_box(wire))?);
        }
        Ok(())
    }

    fn round_trip(&mut self, conversions: u64) -> Result<(), ConversionError> {
        let Self { codec, objects, out, .. } = self;
        for object in cycle(objects, conversions) {
            out.clear();
            codec.encode(black_box(object), out)?;
            consume::<C>(&codec.decode(black_box(out))?);
        }
        Ok(())
    }
}

/// Prevents the compiler from optimising decoding away.
#[inline]
fn consume<C: Codec>(decoded: &C::Decoded<'_>) {
    black_box(C::read(black_box(decoded)));
}

/// Cycles through the items, `count` in total.
fn cycle<T>(items: &[T], count: u64) -> impl Iterator<Item = &T> {
    items.iter().cycle().take(usize::try_from(count).unwrap_or(usize::MAX))
}

impl<C: Codec> Convert for Converter<C> {
    fn convert(&mut self, operation: Operation, conversions: u64) -> Result<(), ConversionError> {
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
