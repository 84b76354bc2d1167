//! Conversion between application messages and the engine's bytes; named like tonic's module.

use thalweg_core::{Code, Extensions, Request, Response, Status};
/// [`Encoding`](crate::Encoding) under tonic's name and path.
#[doc(inline)]
pub use thalweg_engine::Encoding as CompressionEncoding;
use thalweg_engine::{Chain, Encode, Envelope, Payload};

use crate::message::{DecodeError, Message};

/// A request that is encoded in place.
pub(crate) struct RequestMessage<'a, M>(pub(crate) &'a Request<M>);

/// A response that is encoded in place.
pub(crate) struct ResponseMessage<'a, M>(pub(crate) &'a Response<M>);

/// A message of a stream that is encoded in place.
pub(crate) struct BorrowedMessage<'a, M>(pub(crate) &'a M);

/// A message whose ownership was passed for sending.
pub(crate) struct OwnedMessage<M>(pub(crate) M);

/// Sends one message uncompressed on a call that compresses: insert it into the extensions of the request or response.
/// In a streaming response it applies to all messages.
///
/// For messages whose compressed size must not reveal their content, such as a secret next to text that others choose.
///
/// ```
/// use thalweg::{Response, Uncompressed};
///
/// let mut response = Response::new(());
/// response.extensions_mut().insert(Uncompressed);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Uncompressed;

macro_rules! impl_encode {
    ($sent:ty, |$this:ident| $message:expr, $may_be_compressed:expr) => {
        impl<M: Message> Encode for $sent {
            #[inline]
            fn encoded_len(&self) -> usize {
                let $this = self;
                $message.encoded_len()
            }

            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                let $this = self;
                $message.encode(out);
            }

            fn encode_chained(&self, out: &mut Chain) {
                let $this = self;
                $message.encode_chained(out);
            }

            fn may_be_compressed(&self) -> bool {
                let $this = self;
                $may_be_compressed
            }
        }
    };
}

impl_encode!(RequestMessage<'_, M>, |this| this.0.get_ref(), compresses(this.0.extensions()));
impl_encode!(ResponseMessage<'_, M>, |this| this.0.get_ref(), compresses(this.0.extensions()));
impl_encode!(BorrowedMessage<'_, M>, |this| this.0, {
    let _ = this;
    true
});
impl_encode!(OwnedMessage<M>, |this| this.0, {
    let _ = this;
    true
});

pub(crate) fn compresses(extensions: &Extensions) -> bool {
    extensions.get::<Uncompressed>().is_none()
}

/// A response with any message type.
///
/// Plain responses use their own type. A second use of that type would prevent inlining, which costs them about 60
/// instructions.
pub(crate) struct AnyResponseMessage<'a>(&'a dyn ErasedResponse);

impl<'a> AnyResponseMessage<'a> {
    pub(crate) fn new<M: Message>(response: &'a Response<M>) -> Self {
        Self(response)
    }
}

trait ErasedResponse {
    fn encoded_len(&self) -> usize;
    fn encode(&self, out: &mut Vec<u8>);
    fn encode_chained(&self, out: &mut Chain);
    fn may_be_compressed(&self) -> bool;
}

impl<M: Message> ErasedResponse for Response<M> {
    fn encoded_len(&self) -> usize {
        self.get_ref().encoded_len()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.get_ref().encode(out);
    }

    fn encode_chained(&self, out: &mut Chain) {
        self.get_ref().encode_chained(out);
    }

    fn may_be_compressed(&self) -> bool {
        compresses(self.extensions())
    }
}

impl Encode for AnyResponseMessage<'_> {
    fn encoded_len(&self) -> usize {
        self.0.encoded_len()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn encode_chained(&self, out: &mut Chain) {
        self.0.encode_chained(out);
    }

    fn may_be_compressed(&self) -> bool {
        self.0.may_be_compressed()
    }
}

/// Decodes the only message of its direction.
#[inline]
pub(crate) fn decode_only<M: Message>(mut envelope: Envelope<'_>) -> Result<M, Status> {
    decode(envelope.open()?)
}

/// Decodes a received message.
#[inline]
pub(crate) fn decode<M: Message>(payload: Payload<'_>) -> Result<M, Status> {
    let decoded = match payload {
        Payload::Borrowed(bytes) => M::decode(bytes),
        Payload::Owned(bytes) => M::decode_owned(bytes),
    };
    decoded.map_err(|error| undecodable(&error))
}

/// Like [`decode`], but overwrites `message`.
#[inline]
pub(crate) fn decode_into<M: Message>(payload: Payload<'_>, message: &mut M) -> Result<(), Status> {
    let decoded = match payload {
        Payload::Borrowed(bytes) => message.decode_into(bytes),
        Payload::Owned(bytes) => message.decode_owned_into(bytes),
    };
    decoded.map_err(|error| undecodable(&error))
}

#[cold]
pub(crate) fn undecodable(error: &DecodeError) -> Status {
    Status::local(Code::Internal, error.to_string())
}
