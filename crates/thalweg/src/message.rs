//! What a call carries: the one trait between the transport and a serialisation.

use std::error::Error;

use bytes::Bytes;

use thalweg_engine::Chain;

/// A message that a call can send or receive.
///
/// With the feature `prost` (on by default) every `prost::Message` that is `Default` is one. Other serialisations
/// implement the trait by hand, of a type around each message where stubs are to have them (`codec_path` of
/// `thalweg-build`); [`Raw`] passes bytes through as they are.
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
    /// What content types say these messages are: `json` of `application/grpc+json`. Nothing by default, as for
    /// Protobuf.
    ///
    /// A method of a server goes by its request's. It takes calls that say the same, which are answered so, and those
    /// that say nothing; the others end with UNIMPLEMENTED. Without one, what calls say is not looked at. A client's
    /// calls say what is said of their [`Method`](crate::Method::with_content_subtype), for which generated clients use
    /// this.
    const CONTENT_SUBTYPE: &'static str = "";

    /// How many bytes [`encode`](Message::encode) appends.
    ///
    /// The transport frames the message by this number, before it is encoded: it must be exact.
    fn encoded_len(&self) -> usize;

    /// Appends exactly [`encoded_len`](Message::encoded_len) bytes to `out`, and leaves what is there alone.
    fn encode(&self, out: &mut Vec<u8>);

    /// As [`encode`](Message::encode), where parts that are [`Bytes`] can be kept instead of copied.
    ///
    /// The transport calls this for large messages.
    fn encode_chained(&self, out: &mut Chain) {
        self.encode(out.buffer());
    }

    /// Decodes one message which fills the whole of `wire`.
    ///
    /// `wire` lies in the connection's receive buffer: nothing of it outlives the call.
    fn decode(wire: &[u8]) -> Result<Self, DecodeError>;

    /// Decodes one message from bytes that it may keep, which saves a copy to types that hold [`Bytes`].
    ///
    /// The transport calls this for messages that it had to gather from several pieces anyway.
    fn decode_owned(wire: Bytes) -> Result<Self, DecodeError> {
        Self::decode(&wire)
    }

    /// As [`decode`](Message::decode), in the place of `self`, of which nothing stays but memory: what its fields have
    /// allocated may be used again.
    ///
    /// Whoever reads a stream into a message that they hold
    /// ([`Streaming::message_into`](crate::Streaming::message_into)) has it decoded so. By default it is decoded anew.
    ///
    /// # Errors
    /// As `decode`. What is in `self` then is not said.
    fn decode_into(&mut self, wire: &[u8]) -> Result<(), DecodeError> {
        *self = Self::decode(wire)?;
        Ok(())
    }

    /// As [`decode_into`](Message::decode_into), from bytes that it may keep.
    fn decode_owned_into(&mut self, wire: Bytes) -> Result<(), DecodeError> {
        *self = Self::decode_owned(wire)?;
        Ok(())
    }
}

/// Received bytes are not a message of the type that was asked for.
#[derive(Debug, thiserror::Error)]
#[error("the message could not be decoded: {0}")]
pub struct DecodeError(Box<dyn Error + Send + Sync>);

impl DecodeError {
    /// Wraps the serialisation's own error, or a text.
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
        // Not `encode`: it would measure the message once more, only to learn that a `Vec` has room.
        self.encode_raw(out);
    }

    fn encode_chained(&self, out: &mut Chain) {
        self.encode_raw(out);
    }

    fn decode(wire: &[u8]) -> Result<Self, DecodeError> {
        // Not `decode`: messages are large, and its result would be moved into ours.
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

/// A message as its bytes, for those who do not look inside: proxies, recorders, dynamic callers.
///
/// [`Message::decode_owned`] keeps the bytes without a copy.
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
        let mut place = M::decode(wire).unwrap();
        place.decode_into(wire).unwrap();
        assert_eq!(&place, message);
        place.decode_owned_into(Bytes::copy_from_slice(wire)).unwrap();
        assert_eq!(&place, message);
    }

    #[test]
    fn messages_and_their_wire_form() {
        check(&Raw(Bytes::new()), b"");
        check(&Raw(Bytes::from_static(b"\x00\xff")), b"\x00\xff");
        check(&Payload::default(), b"");
        check(&Payload { name: "a".into(), body: Bytes::from_static(b"xyz") }, b"\x0a\x01a\x12\x03xyz");
        check(&(), b"");
    }

    #[test]
    fn owned_bytes_are_not_copied() {
        let wire = Bytes::from_static(b"\x12\x03xyz");
        let body = Payload::decode_owned(wire.clone()).unwrap().body;
        assert_eq!(body.as_ptr(), wire[2..].as_ptr());
        assert_eq!(Raw::decode_owned(wire.clone()).unwrap().0.as_ptr(), wire.as_ptr());
    }

    #[test]
    fn large_bytes_are_not_copied_when_they_are_sent() {
        let body = Bytes::from(vec![1; 100_000]);
        let mut chain = Chain::default();
        Payload { name: "a".into(), body: body.clone() }.encode_chained(&mut chain);
        Raw(body.clone()).encode_chained(&mut chain);
        let parts = chain.take_parts();
        let (head, wires) = parts.split_first().unwrap();
        assert_eq!(&head[..], b"\x0a\x01a\x12\xa0\x8d\x06");
        assert!(wires.iter().all(|wire| wire.as_ptr() == body.as_ptr()));
    }

    #[test]
    fn what_is_cut_off_is_an_error() {
        let error = <Payload as Message>::decode(b"\x0a\x05abc").unwrap_err();
        assert!(error.to_string().starts_with("the message could not be decoded: "), "{error}");
    }
}
