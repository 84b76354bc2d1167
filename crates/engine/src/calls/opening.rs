//! Opens a stream for a call on a connection, in turn.

use thalweg_http2::{self as http2, OpenError, StreamId};

use crate::connection::{OPENED_UNSENT_MAX, Slot, SlotKey, State};
use crate::lanes::WaitTicket;

/// Why a connection gave a call no stream.
pub(super) enum Refused {
    /// It takes no new ones.
    LaneGone,
    /// It has as many as it may.
    LaneFull,
    /// Its server does not take the call's head, and no other would.
    HeadTooLarge { size: usize, size_max: usize },
}

/// Opens a stream with `open`, if it is this call's turn (those who waited before go first), and keeps `slot` for it.
#[inline]
pub(super) fn open_stream(
    state: &mut State,
    ticket: &WaitTicket<'_>,
    slot: impl FnOnce(StreamId) -> Slot,
    open: impl FnOnce(&mut http2::Connection, SlotKey) -> Result<StreamId, OpenError>,
) -> Result<SlotKey, Refused> {
    if state.ended().is_some() {
        return Err(Refused::LaneGone);
    }
    let others_wait = !state.is_queue_empty();
    if others_wait && !ticket.has_waited() {
        return Err(Refused::LaneFull);
    }
    if state.opened_unsent >= OPENED_UNSENT_MAX {
        // The driver opens the gate again when it has taken them.
        state.close_gate();
        return Err(Refused::LaneFull);
    }
    let key = state.next_key();
    match open(&mut state.http2, key) {
        Ok(stream) => {
            state.insert(slot(stream));
            state.opened_unsent += 1;
            // The last free stream is taken, and others wait: the protocol is asked to tell of the next on their
            // behalf.
            if others_wait && state.http2.notify_free_stream() {
                state.close_gate();
            }
            Ok(key)
        }
        Err(OpenError::NoFreeStream) => {
            state.close_gate();
            Err(Refused::LaneFull)
        }
        Err(OpenError::HeadTooLarge { size, size_max }) => Err(Refused::HeadTooLarge { size, size_max }),
        Err(OpenError::GoingAway | OpenError::IdsExhausted | OpenError::Closed) => Err(Refused::LaneGone),
    }
}
