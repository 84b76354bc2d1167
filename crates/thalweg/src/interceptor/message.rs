//! Type-erased messages: [`AnyMessage`].

use std::any::{Any, type_name};
use std::fmt;

use bytes::Bytes;
use thalweg_core::Status;
use thalweg_engine::{Chain, Payload};

use crate::codec;
use crate::message::{DecodeError, Message, Raw};

/// A message of any type, as an interceptor sees it: decoded, like those of the handler or the caller.
///
/// [`downcast_ref`](Self::downcast_ref) returns the message if its type is known; [`encoded_len`](Message::encoded_len)
/// and [`to_bytes`](Self::to_bytes) work for all types. A replacement may have another type if its encoding is
/// compatible; [`Raw`] always works.
pub struct AnyMessage(Box<dyn Erased>);

/// Methods of a message whose type is erased.
trait Erased: Any + Send + Sync {
    fn encoded_len(&self) -> usize;
    fn encode(&self, out: &mut Vec<u8>);
    fn encode_chained(&self, out: &mut Chain);
    fn type_name(&self) -> &'static str;
}

impl<M: Message> Erased for M {
    fn encoded_len(&self) -> usize {
        Message::encoded_len(self)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        Message::encode(self, out);
    }

    fn encode_chained(&self, out: &mut Chain) {
        Message::encode_chained(self, out);
    }

    fn type_name(&self) -> &'static str {
        type_name::<M>()
    }
}

impl AnyMessage {
    /// Erases the type of a message.
    pub fn new<M: Message>(message: M) -> Self {
        let mut message = Some(message);
        // Avoids wrapping an `AnyMessage` again.
        if let Some(any) = (&mut message as &mut dyn Any).downcast_mut::<Option<AnyMessage>>() {
            return any.take().expect("set above");
        }
        Self(Box::new(message.expect("set above")))
    }

    /// Returns the message if it is an `M`.
    pub fn downcast_ref<M: Message>(&self) -> Option<&M> {
        let message: &dyn Any = &*self.0;
        message.downcast_ref()
    }

    /// Returns the message for changes if it is an `M`.
    pub fn downcast_mut<M: Message>(&mut self) -> Option<&mut M> {
        let message: &mut dyn Any = &mut *self.0;
        message.downcast_mut()
    }

    /// Returns the encoded message, without prefix or compression.
    pub fn to_bytes(&self) -> Bytes {
        if let Some(Raw(bytes)) = self.downcast_ref() {
            return bytes.clone();
        }
        let mut bytes = Vec::with_capacity(self.0.encoded_len());
        self.0.encode(&mut bytes);
        bytes.into()
    }

    /// Returns the name of its Rust type, for diagnostics.
    pub fn type_name(&self) -> &'static str {
        self.0.type_name()
    }

    /// Returns the message as an `M`, decoding its bytes if an interceptor replaced it by another type.
    ///
    /// # Errors
    /// INTERNAL if the bytes do not decode as an `M`.
    pub fn into_message<M: Message>(self) -> Result<M, Status> {
        if self.downcast_ref::<M>().is_none() {
            return codec::decode(Payload::Owned(self.to_bytes())).map_err(|error| {
                let (actual, expected, error) = (self.type_name(), type_name::<M>(), error.message());
                Status::internal(format!("an interceptor replaced {actual} by {expected}: {error}"))
            });
        }
        let message: Box<dyn Any> = self.0;
        Ok(*message.downcast().expect("its type was checked"))
    }
}

impl Message for AnyMessage {
    fn encoded_len(&self) -> usize {
        self.0.encoded_len()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn encode_chained(&self, out: &mut Chain) {
        self.0.encode_chained(out);
    }

    /// Keeps the bytes as [`Raw`].
    fn decode(wire: &[u8]) -> Result<Self, DecodeError> {
        Raw::decode(wire).map(Self::new)
    }

    fn decode_owned(wire: Bytes) -> Result<Self, DecodeError> {
        Raw::decode_owned(wire).map(Self::new)
    }
}

impl fmt::Debug for AnyMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AnyMessage").field(&self.type_name()).finish()
    }
}
