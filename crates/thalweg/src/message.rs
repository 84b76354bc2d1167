//! Messages of calls: [`Message`], the only trait between the transport and a serialisation.

use std::error::Error;

use bytes::Bytes;

use thalweg_engine::Chain;

/// A message that a call can send or receive.
///
/// With the feature `prost` (default), every `prost::Message` that is `Default` implements it. Other serialisations
/// implement the trait by hand; generated stubs use such types through `codec_path` of `thalweg-build`. [`Raw`] passes
/// bytes through unchanged.
///
/// ```
/// use thalweg::{DecodeError, Message};
///
/// /// Big-endian numbers, four bytes each.
/// struct Numbers(Vec<u32>);
///
/// impl Message for Numbers {
///     fn encoded_len(&self) -> usize {
///         self.0.len() * 4
///     }
///
///     fn encode(&self, out: &mut Vec<u8>) {
///         self.0.iter().for_each(|number| out.extend(number.to_be_bytes()));
///     }
///
///     fn decode(wire: &[u8]) -> Result<Self, DecodeError> {
///         let (numbers, rest) = wire.as_chunks();
///         match rest {
///             [] => Ok(Numbers(numbers.iter().map(|number| u32::from_be_bytes(*number)).collect())),
///             _ => Err(DecodeError::new("the last number is cut off")),
///         }
///     }
/// }
/// ```
pub trait Message: Sized + Send + Sync + 'static {
    /// Content subtype of these messages: `json` in `application/grpc+json`. Empty by default, as for Protobuf.
    ///
    /// A server method uses its request's subtype. It accepts calls with the same subtype, and responds with it, and
    /// calls without one; others end with UNIMPLEMENTED. If this is empty, the method ignores the subtype of calls. A
    /// client sends the subtype of the [`Method`](crate::Method::with_content_subtype), which generated clients take
    /// from here.
    const CONTENT_SUBTYPE: &'static str = "";

    /// Returns the exact number of bytes that [`encode`](Message::encode) appends. The transport writes this length
    /// before it encodes the message.
    fn encoded_len(&self) -> usize;

    /// Appends exactly [`encoded_len`](Message::encoded_len) bytes to `out`, and leaves its present content unchanged.
    fn encode(&self, out: &mut Vec<u8>);

    /// Encodes like [`encode`](Message::encode), but may keep [`Bytes`] parts instead of copying them. The transport
    /// uses this for large messages.
    fn encode_chained(&self, out: &mut Chain) {
        self.encode(out.buffer());
    }

    /// Decodes one message that fills the whole of `wire`, a part of the connection's receive buffer.
    ///
    /// # Errors
    /// Returns an error if `wire` is not a valid message.
    fn decode(wire: &[u8]) -> Result<Self, DecodeError>;

    /// Decodes one message from bytes that it may keep, which saves types with [`Bytes`] a copy. The transport uses
    /// this for messages that it had to gather from several pieces anyway.
    ///
    /// # Errors
    /// Same as [`decode`](Message::decode).
    fn decode_owned(wire: Bytes) -> Result<Self, DecodeError> {
        Self::decode(&wire)
    }

    /// Decodes like [`decode`](Message::decode), but overwrites `self`: none of its content remains, but allocations of
    /// its fields may be reused. By default it decodes a new message.
    ///
    /// [`Streaming::message_into`](crate::Streaming::message_into) uses this.
    ///
    /// # Errors
    /// Same as `decode`. The content of `self` is then unspecified.
    fn decode_into(&mut self, wire: &[u8]) -> Result<(), DecodeError> {
        *self = Self::decode(wire)?;
        Ok(())
    }

    /// Decodes like [`decode_into`](Message::decode_into), from bytes that it may keep.
    ///
    /// # Errors
    /// Same as `decode_into`.
    fn decode_owned_into(&mut self, wire: Bytes) -> Result<(), DecodeError> {
        *self = Self::decode_owned(wire)?;
        Ok(())
    }
}

/// Error of decoding received bytes: they are not a message of the expected type.
#[derive(Debug, thiserror::Error)]
#[error("failed to decode the message: {0}")]
pub struct DecodeError(Box<dyn Error + Send + Sync>);

impl DecodeError {
    /// Wraps the serialisation's error, or a text.
    pub fn new(cause: impl Into<Box<dyn Error + Send + Sync>>) -> DecodeError {
        DecodeError(cause.into())
    }
}

#[cfg(feature = "prost")]
impl<T: prost::Message + Default + 'static> Message for T {
    fn encoded_len(&self) -> usize {
        prost::Message::encoded_len(self)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        // `encode` would measure the message again to check the capacity, which a `Vec` does not need.
        self.encode_raw(out);
    }

    fn encode_chained(&self, out: &mut Chain) {
        self.encode_raw(out);
    }

    fn decode(wire: &[u8]) -> Result<Self, DecodeError> {
        // prost's `decode` would move its result, and messages are large.
        let mut message = T::default();
        message.merge(wire).map_err(DecodeError::new)?;
        Ok(message)
    }

    fn decode_owned(wire: Bytes) -> Result<Self, DecodeError> {
        let mut message = T::default();
        message.merge(wire).map_err(DecodeError::new)?;
        Ok(message)
    }

    #[inline]
    fn decode_into(&mut self, wire: &[u8]) -> Result<(), DecodeError> {
        self.clear();
        self.merge(wire).map_err(DecodeError::new)
    }

    fn decode_owned_into(&mut self, wire: Bytes) -> Result<(), DecodeError> {
        self.clear();
        self.merge(wire).map_err(DecodeError::new)
    }
}

/// A message in encoded form, for proxies, recorders and dynamic callers. [`Message::decode_owned`] keeps the bytes
/// without a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Raw(pub Bytes);

impl Message for Raw {
    fn encoded_len(&self) -> usize {
        self.0.len()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    fn encode_chained(&self, out: &mut Chain) {
        out.push(self.0.clone());
    }

    fn decode(wire: &[u8]) -> Result<Self, DecodeError> {
        Ok(Raw(Bytes::copy_from_slice(wire)))
    }

    fn decode_owned(wire: Bytes) -> Result<Self, DecodeError> {
        Ok(Raw(wire))
    }
}

impl From<Bytes> for Raw {
    fn from(bytes: Bytes) -> Raw {
        Raw(bytes)
    }
}

impl From<Raw> for Bytes {
    fn from(raw: Raw) -> Bytes {
        raw.0
    }
}

#[cfg(all(test, feature = "prost"))]
mod tests {
    use std::fmt::Debug;

    use super::*;

    #[derive(Clone, PartialEq, prost::Message)]
    struct Payload {
        #[prost(string, tag = "1")]
        name: String,
        #[prost(bytes = "bytes", tag = "2")]
        body: Bytes,
    }

    fn check<M: Message + PartialEq + Debug>(message: &M, wire: &[u8]) {
        let mut out = b"before".to_vec();
        message.encode(&mut out);
        assert_eq!(&out[6..], wire);
        assert_eq!(&out[..6], b"before");
        assert_eq!(message.encoded_len(), wire.len());
        let mut chain = Chain::default();
        message.encode_chained(&mut chain);
        assert_eq!(chain.take_parts().concat(), wire);
        assert_eq!(&M::decode(wire).unwrap(), message);
        assert_eq!(&M::decode_owned(Bytes::copy_from_slice(wire)).unwrap(), message);
        let mut target = M::decode(wire).unwrap();
        target.decode_into(wire).unwrap();
        assert_eq!(&target, message);
        target.decode_owned_into(Bytes::copy_from_slice(wire)).unwrap();
        assert_eq!(&target, message);
    }

    #[test]
    fn messages_encode_and_decode() {
        check(&Raw(Bytes::new()), b"");
        check(&Raw(Bytes::from_static(b"\x00\xff")), b"\x00\xff");
        check(&Payload::default(), b"");
        check(&Payload { name: "a".into(), body: Bytes::from_static(b"xyz") }, b"\x0a\x01a\x12\x03xyz");
        check(&(), b"");
    }

    #[test]
    fn owned_bytes_are_not_copied_on_decode() {
        let wire = Bytes::from_static(b"\x12\x03xyz");
        let body = Payload::decode_owned(wire.clone()).unwrap().body;
        assert_eq!(body.as_ptr(), wire[2..].as_ptr());
        assert_eq!(Raw::decode_owned(wire.clone()).unwrap().0.as_ptr(), wire.as_ptr());
    }

    #[test]
    fn large_bytes_are_not_copied_on_encode() {
        let body = Bytes::from(vec![1; 100_000]);
        let mut chain = Chain::default();
        Payload { name: "a".into(), body: body.clone() }.encode_chained(&mut chain);
        Raw(body.clone()).encode_chained(&mut chain);
        let parts = chain.take_parts();
        let (prefix, wires) = parts.split_first().unwrap();
        assert_eq!(&prefix[..], b"\x0a\x01a\x12\xa0\x8d\x06");
        assert!(wires.iter().all(|wire| wire.as_ptr() == body.as_ptr()));
    }

    #[test]
    fn truncated_message_is_an_error() {
        let error = <Payload as Message>::decode(b"\x0a\x05abc").unwrap_err();
        assert!(error.to_string().starts_with("failed to decode the message: "), "{error}");
    }
}
