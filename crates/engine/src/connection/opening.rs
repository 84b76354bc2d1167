//! Opens a stream for a call, in the order of waiting calls.

use thalweg_http2::{self as http2, OpenError, StreamId};

use super::slot::{Slot, SlotKey};
use super::state::{OPENED_UNSENT_MAX, State};

/// Reason why a connection opened no stream for a call.
pub(crate) enum NotOpened {
    /// It accepts no new streams.
    Closed,
    /// All its streams are in use.
    AtCapacity,
    /// The server does not accept header lists of this size; other connections would not either.
    HeadersTooLarge { size: usize, size_max: usize },
}

/// Opens a stream with `open` if it is this call's turn, and stores `slot` for it. Calls that already waited go first;
/// `precedes` returns whether this call does.
#[inline]
pub(crate) fn open_stream(
    state: &mut State,
    precedes: impl FnOnce() -> bool,
    slot: impl FnOnce(StreamId) -> Slot,
    open: impl FnOnce(&mut http2::Connection, SlotKey) -> Result<StreamId, OpenError>,
) -> Result<SlotKey, NotOpened> {
    if state.ended().is_some() {
        return Err(NotOpened::Closed);
    }
    let others_wait = !state.is_queue_empty();
    if others_wait && !precedes() {
        return Err(NotOpened::AtCapacity);
    }
    if state.opened_unsent >= OPENED_UNSENT_MAX {
        // The driver reopens admission when it has taken them.
        state.close_stream_admission();
        return Err(NotOpened::AtCapacity);
    }
    let key = state.next_key();
    match open(&mut state.http2, key) {
        Ok(stream) => {
            state.insert(slot(stream));
            state.opened_unsent += 1;
            // The last free stream is taken and others wait: ask the protocol to report the next free one for them.
            if others_wait && state.http2.notify_free_stream() {
                state.close_stream_admission();
            }
            Ok(key)
        }
        Err(OpenError::NoFreeStream) => {
            state.close_stream_admission();
            Err(NotOpened::AtCapacity)
        }
        Err(OpenError::HeadersTooLarge { size, size_max }) => {
            Err(NotOpened::HeadersTooLarge { size, size_max })
        }
        Err(OpenError::GoingAway | OpenError::IdsExhausted | OpenError::Closed) => Err(NotOpened::Closed),
    }
}
