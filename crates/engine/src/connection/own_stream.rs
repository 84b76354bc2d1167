//! Streams of a channel itself, such as health checks: [`OwnStream`].

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use thalweg_http2::{Block, FieldList, FixedFields};

use super::inbox::Inbox;
use super::incoming::Incoming;
use super::opening::{NotOpened, open_stream};
use super::outgoing::Single;
use super::shared::Connection;
use super::slot::{Slot, WakesOn};
use crate::call_context::CallName;
use crate::grpc::envelope;
use crate::measure::CallMeasure;
use crate::status::{Code, Status};

/// A call with one request and a stream of responses that a channel makes itself, on a connection of its choice. It has
/// no deadline, is not retried, and counts as a call nowhere. Dropping it cancels it.
#[derive(Debug)]
pub(crate) struct OwnStream {
    responses: Incoming,
}

/// Maximum size of a response.
const RESPONSE_LEN_MAX: usize = 64 * 1024;

impl OwnStream {
    /// Opens the stream before all waiting calls.
    ///
    /// # Errors
    /// Fails if the connection has no free stream, or accepts no more.
    pub(crate) fn open(
        connection: &Arc<Connection>,
        path: &'static str,
        headers: &Arc<FixedFields>,
        request: &[u8],
    ) -> Result<Self, Status> {
        let mut message = Vec::new();
        envelope::emit(&mut message, false, |out| out.extend_from_slice(request))?;
        let adapted = connection.origin().map(|origin| origin.adapt(headers));
        let headers = Block { fixed: Some(adapted.as_ref().unwrap_or(headers)), extra: &FieldList::new() };
        let slot = |stream| {
            let mut slot = Slot::of_client(stream, Inbox::new(RESPONSE_LEN_MAX), WakesOn::Own);
            slot.send_closed = true;
            slot
        };
        let mut state = connection.lock();
        let opened = open_stream(
            &mut state,
            || true,
            slot,
            |http2, key| {
                let (stream, is_sent) = http2.open_with_message(key.into(), headers, &message)?;
                if !is_sent {
                    // A stream that has already ended reports its outcome to its slot.
                    let _ = Single::Small(0..message.len()).send(http2, stream, &message, true);
                }
                Ok(stream)
            },
        );
        let key = opened.map_err(|refused| {
            Status::local(
                Code::Unavailable,
                match refused {
                    NotOpened::AtCapacity => "no stream is free",
                    NotOpened::Closed => "the connection accepts no more calls",
                    NotOpened::HeadersTooLarge { .. } => "the server does not accept headers of this size",
                },
            )
        })?;
        state.own_streams += 1;
        state.notify_driver();
        drop(state);
        let call = CallName { path: path.into(), attempt: 1 };
        let measure = CallMeasure::default();
        let responses = Incoming::of_responses(Arc::clone(connection), key, RESPONSE_LEN_MAX, measure, call);
        Ok(Self { responses })
    }

    /// Polls for the next response; `None` after the last one.
    ///
    /// # Errors
    /// Returns the status of the call if it is not OK, or why it failed.
    pub(crate) fn poll_response(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Status>>> {
        let Some(prefix) = ready!(self.responses.poll_prefix(cx)).transpose()? else {
            return Poll::Ready(None);
        };
        let response =
            self.responses.take(prefix).map(|response| Bytes::copy_from_slice(response.as_bytes()));
        Poll::Ready(Some(response.map_err(|status| self.responses.fail(status))))
    }
}
