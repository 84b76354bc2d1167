//! buffa's messages: owned ones by a macro, views by a type around them.
//!
//! Every `prost::Message` is a `thalweg::Message`, and Rust permits one such rule. So buffa's messages, which are types
//! of the user's crate, are named one by one; code that `thalweg-build` generates does that.

use buffa::OwnedView;
use buffa::view::{MessageView, ViewReborrow};
use bytes::Bytes;
use tonic::Status;

use crate::message::{DecodeError, Message};
use crate::streaming::Streaming;

/// Makes messages that buffa generated [`Message`](crate::Message)s. They are named one by one, because a blanket
/// implementation for buffa's trait would conflict with that for prost's.
///
/// ```ignore
/// thalweg::buffa_messages!(HelloRequest, HelloReply);
/// ```
#[macro_export]
macro_rules! buffa_messages {
    ($($message:ty),* $(,)?) => {
        $(
            impl $crate::Message for $message {
                fn encoded_len(&self) -> usize {
                    $crate::buffa::Message::encoded_len(self) as usize
                }

                fn encode(&self, out: &mut ::std::vec::Vec<u8>) {
                    $crate::buffa::Message::encode(self, out);
                }

                fn decode(wire: &[u8]) -> ::core::result::Result<Self, $crate::DecodeError> {
                    <Self as $crate::buffa::Message>::decode_from_slice(wire).map_err($crate::DecodeError::new)
                }

                fn decode_owned(
                    mut wire: $crate::bytes::Bytes,
                ) -> ::core::result::Result<Self, $crate::DecodeError> {
                    <Self as $crate::buffa::Message>::decode(&mut wire).map_err($crate::DecodeError::new)
                }

                fn decode_into(&mut self, wire: &[u8]) -> ::core::result::Result<(), $crate::DecodeError> {
                    $crate::buffa::Message::clear(self);
                    $crate::buffa::Message::merge_from_slice(self, wire).map_err($crate::DecodeError::new)
                }
            }
        )*
    };
}

/// A message that was received and stays in its bytes: buffa's view, and what it borrows from.
///
/// Its strings and `bytes` are slices of what came; nothing is allocated for them. Messages that the transport had to
/// gather are kept as they were gathered, others are copied out of the receive buffer once. To send a view is to send
/// its bytes again, fields included that its type does not know.
///
/// ```ignore
/// let name: &str = request.get_ref().view().name;
/// ```
#[derive(Debug)]
pub struct View<V: 'static>(OwnedView<V>);

impl<V: ViewReborrow> View<V> {
    /// The message.
    pub fn view(&self) -> &V::Reborrowed<'_> {
        self.0.reborrow()
    }
}

impl<V: MessageView<'static>> View<V> {
    /// What the message was received as.
    pub fn bytes(&self) -> &Bytes {
        self.0.bytes()
    }

    /// buffa's own type.
    pub fn into_inner(self) -> OwnedView<V> {
        self.0
    }
}

impl<V: ViewReborrow + Send + Sync + 'static> Streaming<View<V>> {
    /// A view of the next message, over the bytes as they came: until the next one is asked for. `None` when the peer
    /// has sent its last.
    ///
    /// A [`View`] has its bytes to itself, which are allocated and copied for each message of a stream. This one does
    /// not: it borrows from the stream.
    ///
    /// Cancel-safe: dropping the future loses no message.
    ///
    /// # Errors
    /// As [`message`](Self::message).
    ///
    /// ```ignore
    /// let mut readings: Streaming<View<ReadingView<'static>>> = request.into_inner();
    /// while let Some(reading) = readings.next_view().await? {
    ///     total += reading.value;
    /// }
    /// ```
    pub async fn next_view<'a>(&'a mut self) -> Result<Option<V::Reborrowed<'a>>, Status> {
        let wire_of = |view: View<V>| view.0.bytes().clone();
        self.lend(wire_of, |wire| V::Reborrowed::<'a>::decode_view(wire).map_err(DecodeError::new)).await
    }
}

impl<V: MessageView<'static> + Send + Sync + 'static> Message for View<V> {
    fn encoded_len(&self) -> usize {
        self.0.bytes().len()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0.bytes());
    }

    fn encode_chained(&self, out: &mut thalweg_engine::Chain) {
        out.push(self.0.bytes().clone());
    }

    fn decode(wire: &[u8]) -> Result<Self, DecodeError> {
        Self::decode_owned(Bytes::copy_from_slice(wire))
    }

    fn decode_owned(wire: Bytes) -> Result<Self, DecodeError> {
        OwnedView::decode(wire).map(View).map_err(DecodeError::new)
    }
}
