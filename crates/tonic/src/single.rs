//! Uncompressed messages that are the only one of their direction: encoded and decoded in one step.

#[cfg(own_vocabulary)]
mod own;
#[cfg(not(own_vocabulary))]
mod registry;
mod wire;

#[cfg(own_vocabulary)]
pub(crate) use own::{decode, encode};
#[cfg(not(own_vocabulary))]
pub(crate) use registry::{decode, encode};
pub(crate) use wire::is_single;

#[cfg(test)]
mod tests {
    use bytes::{Buf, BufMut, Bytes};
    use vocabulary::codec::{DecodeBuf, Decoder, EncodeBuf, Encoder};
    use vocabulary::{Code, Status};

    use super::*;

    fn encode<E>(encoder: E, message: E::Item, size_max: Option<usize>) -> Result<Bytes, Status>
    where
        E: Encoder<Error = Status> + 'static,
        E::Item: 'static,
    {
        let piece = super::encode(encoder, message, size_max)?;
        Ok(piece.parts().map(Bytes::as_ref).collect::<Vec<_>>().concat().into())
    }

    /// Texts; `!` fails to encode and to decode. `(text)` is encoded by a nested codec.
    struct Texts;

    impl Encoder for Texts {
        type Item = String;
        type Error = Status;

        fn encode(&mut self, text: String, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
            into.put_slice(b"<");
            match text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) {
                Some(inner) => into.put_slice(&encode(Self, inner.to_owned(), None)?),
                None if text == "!" => return Err(Status::data_loss("no such text")),
                None => into.put_slice(text.as_bytes()),
            }
            Ok(())
        }
    }

    impl Decoder for Texts {
        type Item = String;
        type Error = Status;

        /// Leaves the last byte unread.
        fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<String>, Status> {
            let bytes = from.copy_to_bytes(from.remaining() - 1);
            match &bytes[..] {
                b"!" => Err(Status::data_loss("no such text")),
                b"?" => Ok(None),
                bytes => Ok(Some(String::from_utf8_lossy(bytes).into_owned())),
            }
        }
    }

    fn wire(text: &str) -> Bytes {
        let len = u32::try_from(text.len()).unwrap().to_be_bytes();
        [&[0][..], &len, text.as_bytes()].concat().into()
    }

    #[test]
    fn messages_do_not_affect_each_other() {
        let (large, larger) = ("a".repeat(20_000), "b".repeat(5 << 20));
        for text in ["one", "", &large, "two", &larger, "three"] {
            assert_eq!(encode(Texts, text.to_owned(), None).unwrap(), wire(&format!("<{text}")));
            assert_eq!(decode(Texts, wire(&format!("{text}.")), Some(usize::MAX)).unwrap(), text);
            let failed = encode(Texts, "!".to_owned(), None).unwrap_err();
            assert!(failed.message().contains("no such text"), "{failed}");
            assert_eq!(failed.code(), Code::Internal);
            let failed = decode(Texts, wire("!."), None).unwrap_err();
            assert_eq!((failed.code(), failed.message()), (Code::DataLoss, "no such text"));
            assert_eq!(decode(Texts, wire("?."), None).unwrap_err().message(), "Missing message.");
            let within = encode(Texts, "(two)".to_owned(), None).unwrap();
            assert_eq!(within, wire("<\0\0\0\0\u{4}<two"));
        }
    }

    #[test]
    fn message_size_is_limited() {
        assert!(encode(Texts, "1234".to_owned(), Some(5)).is_ok());
        let status = encode(Texts, "1234".to_owned(), Some(4)).unwrap_err();
        let expected = "message length too large: found 5 bytes, the limit is: 4 bytes";
        assert_eq!(
            (status.code(), status.message()),
            (Code::OutOfRange, &*format!("Error, encoded {expected}"))
        );
        let status = decode(Texts, wire("12345"), Some(4)).unwrap_err();
        assert_eq!(
            (status.code(), status.message()),
            (Code::OutOfRange, &*format!("Error, decoded {expected}"))
        );
        assert!(decode(Texts, wire(&"a".repeat(4 << 20)), None).is_ok());
        assert!(decode(Texts, wire(&"a".repeat((4 << 20) + 1)), None).is_err());
    }

    #[test]
    fn panicking_codec_leaves_no_state() {
        struct Panics;

        impl Encoder for Panics {
            type Item = ();
            type Error = Status;

            fn encode(&mut self, (): (), into: &mut EncodeBuf<'_>) -> Result<(), Status> {
                into.put_slice(b"half");
                panic!("of a test");
            }
        }

        std::panic::catch_unwind(|| encode(Panics, (), None)).unwrap_err();
        assert_eq!(encode(Texts, "a".to_owned(), None).unwrap(), wire("<a"));
    }
}
