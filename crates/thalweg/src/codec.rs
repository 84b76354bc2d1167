//! Between messages of an application and the engine's bytes.

use thalweg_engine::{self as engine, Chain, Encode, Envelope, Payload};

use crate::message::{DecodeError, Message};

/// A message that is sent from where it is.
pub(crate) struct Lent<'a, M>(pub(crate) &'a M);

/// A message that was given away to be sent.
pub(crate) struct Owned<M>(pub(crate) M);

macro_rules! encodes_as_its_message {
    ($($sent:ty),*) => {
        $(
            impl<M: Message> Encode for $sent {
                #[inline]
                fn encoded_len(&self) -> usize {
                    self.0.encoded_len()
                }

                #[inline]
                fn encode(&self, out: &mut Vec<u8>) {
                    self.0.encode(out);
                }

                fn encode_chained(&self, out: &mut Chain) {
                    self.0.encode_chained(out);
                }
            }
        )*
    };
}

encodes_as_its_message!(Lent<'_, M>, Owned<M>);

/// Reads the only message of its direction.
#[inline]
pub(crate) fn decode_only<M: Message>(mut envelope: Envelope<'_>) -> Result<M, engine::Status> {
    decode(envelope.open()?)
}

/// Reads a message that was received.
#[inline]
pub(crate) fn decode<M: Message>(payload: Payload<'_>) -> Result<M, engine::Status> {
    let decoded = match payload {
        Payload::Lent(bytes) => M::decode(bytes),
        Payload::Kept(bytes) => M::decode_owned(bytes),
    };
    decoded.map_err(|error| undecodable(&error))
}

#[cold]
fn undecodable(error: &DecodeError) -> engine::Status {
    engine::Status::new(engine::Code::Internal, error.to_string())
}
