//! The receiving half of a stream, for the readers of messages and of raw bodies: [`Receiving`].

use std::sync::Arc;
use std::task::{Context, Poll};

use super::inbox::ReadUnit;
use super::shared::Connection;
use super::slot::{End, SlotKey, WakesOn};
use super::unlocked::{NeedsClone, PolledTask, poll_with_waker};
use crate::grpc::envelope::EnvelopeError;
use crate::grpc::response::ResponseHeaders;
use crate::status::{Code, Status};

/// The receiving half of a stream of a connection.
#[derive(Debug)]
pub(super) struct Receiving {
    pub(super) connection: Arc<Connection>,
    pub(super) key: SlotKey,
    /// Whether these are the responses of a client's call, or the requests of a server's.
    pub(super) is_client: bool,
}

/// Bytes, or the end, that arrived on a stream.
pub(super) enum Arrived {
    /// At least as many bytes as the reader waited for. A large message has its own buffer.
    Bytes,
    /// The beginning of a message whose rest will not come.
    Truncated,
    End(End),
}

impl Receiving {
    /// Client: the response headers, or the end that came instead.
    pub(super) fn poll_headers(&self, cx: &Context<'_>) -> Poll<Result<Arc<ResponseHeaders>, End>> {
        poll_with_waker(cx, |task| {
            let mut state = self.connection.lock();
            let Some(slot) = state.slot(self.key) else {
                return Ok(Poll::Ready(Err(self.end_without_slot())));
            };
            let Some(call) = slot.client() else { return Ok(Poll::Pending) };
            if let Some(headers) = &call.headers {
                return Ok(Poll::Ready(Ok(Arc::clone(headers))));
            }
            if call.wakes_on == WakesOn::Messages {
                call.wakes_on = WakesOn::Headers;
            }
            if let Some(end) = &slot.end {
                return Ok(Poll::Ready(Err(end.clone())));
            }
            task.store_waker_in(&mut slot.receiver)?;
            Ok(Poll::Pending)
        })
    }

    /// Swaps the received bytes into `buffer`, which must be empty. `tail` holds the reader's unread bytes, the
    /// beginning of a message. `next_buffer` supplies a buffer for the bytes that arrive next.
    ///
    /// # Errors
    /// With [`ReadUnit::Messages`]: the bytes are not a valid message, or it is too large.
    pub(super) fn poll_arrived(
        &self,
        unit: ReadUnit,
        mut tail: Vec<u8>,
        buffer: &mut Vec<u8>,
        next_buffer: impl Fn() -> Option<Vec<u8>>,
        cx: &Context<'_>,
    ) -> Poll<Result<Arrived, EnvelopeError>> {
        poll_with_waker(cx, |task| self.take_arrived(unit, &mut tail, buffer, &next_buffer, task))
    }

    #[inline]
    fn take_arrived(
        &self,
        unit: ReadUnit,
        tail: &mut Vec<u8>,
        buffer: &mut Vec<u8>,
        next_buffer: impl Fn() -> Option<Vec<u8>>,
        task: &mut PolledTask<'_>,
    ) -> Result<Poll<Result<Arrived, EnvelopeError>>, NeedsClone> {
        let mut state = self.connection.lock();
        let Some((slot, http2, _)) = state.parts(self.key) else {
            return Ok(Poll::Ready(Ok(Arrived::End(self.end_without_slot()))));
        };
        let arrived = match slot.inbox.put_back_for(unit, std::mem::take(tail), slot.stream, http2) {
            Err(error) => Poll::Ready(Err(error)),
            Ok(true) => {
                if !slot.inbox.has_complete()
                    && let Some(next_buffer) = next_buffer()
                {
                    *buffer = next_buffer;
                }
                slot.inbox.take(buffer, slot.stream, http2);
                Poll::Ready(Ok(Arrived::Bytes))
            }
            Ok(false) => match &slot.end {
                None => {
                    task.store_waker_in(&mut slot.receiver)?;
                    Poll::Pending
                }
                Some(_) if unit != ReadUnit::Messages && !slot.inbox.is_empty() => {
                    *buffer = slot.inbox.take_rest();
                    slot.inbox.release(slot.stream, http2);
                    Poll::Ready(Ok(Arrived::Truncated))
                }
                Some(End::Complete(Ok(_))) if !slot.inbox.is_empty() => {
                    Poll::Ready(Err(EnvelopeError::Truncated { received: slot.inbox.len() }))
                }
                Some(end) => Poll::Ready(Ok(Arrived::End(end.clone()))),
            },
        };
        // Given-back window may be a WINDOW_UPDATE by now.
        if http2.wants_write() {
            state.notify_driver();
        }
        Ok(arrived)
    }

    /// End of a stream that has no slot any more.
    #[cold]
    fn end_without_slot(&self) -> End {
        let status = if self.is_client {
            Status::local(Code::Internal, "the stream was read after its end")
        } else {
            // A task of the handler may outlive the call.
            Status::new(Code::Cancelled, "the call has ended")
        };
        End::Lost { status, unprocessed: false }
    }

    /// Receives nothing more. A client's call that is still going on is reset with CANCEL. On a server the rest of the
    /// requests is dropped, and the handler may still respond. Does nothing the second time.
    pub(super) fn stop(&self) {
        if self.is_client {
            return self.connection.cancel(self.key);
        }
        let mut state = self.connection.lock();
        if let Some((slot, http2, _)) = state.parts(self.key) {
            slot.inbox.discard(slot.stream, http2);
            if http2.wants_write() {
                state.notify_driver();
            }
        }
    }
}
