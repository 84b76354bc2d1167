//! Attempts at one call: chooses the next connection and limits the retries.

use std::sync::Arc;

use thalweg_http2::{self as http2, StreamId};

use super::opening::{NotOpened, open_stream};
use super::prepared::Prepared;
use crate::call_context::Phase;
use crate::connection::{Connection, Slot, SlotKey};
use crate::lanes::{LaneSet, WaitTicket};
use crate::options::CallOptions;
use crate::status::Status;

/// Limit of retries after a server reported that it has not processed the call (gRFC A6). Attempts that never left the
/// client do not count.
const TRANSPARENT_RETRIES_MAX: u32 = 1;
/// Limit of closed lanes that a call may encounter. One closes now and then; all of them at once is a failure.
const LANES_TRIED_MAX: u32 = 16;

/// Destination of the call's next attempt, and the failures so far.
pub(super) struct Attempts<'a> {
    lanes: &'a LaneSet,
    pub(super) ticket: WaitTicket<'a>,
    /// Its progress is updated here.
    call: &'a Prepared,
    /// Calls with equal keys use the same lane.
    affinity: Option<u64>,
    wait_for_ready: bool,
    /// The last lane had no free stream.
    is_full: bool,
    retried: u32,
    lanes_gone: u32,
}

impl<'a> Attempts<'a> {
    pub(super) fn new(lanes: &'a LaneSet, options: &CallOptions, call: &'a Prepared) -> Self {
        let (affinity, wait_for_ready) = (options.affinity, options.wait_for_ready);
        let ticket = WaitTicket::new(lanes);
        Self { lanes, ticket, call, affinity, wait_for_ready, is_full: false, retried: 0, lanes_gone: 0 }
    }

    /// Returns the connection to try next, unless the call has to wait for one.
    #[inline]
    pub(super) fn connection_at_hand(&self) -> Option<Arc<Connection>> {
        if self.is_full { None } else { self.lanes.pick(self.affinity) }
    }

    /// Waits for the connection to try next.
    pub(super) async fn next_connection(&mut self) -> Result<Arc<Connection>, Status> {
        if self.is_full {
            self.is_full = false;
            self.note(Phase::FreeStream);
            let connection = self.ticket.wait(self.wait_for_ready).await;
            return self.waited(connection);
        }
        if let Some(connection) = self.lanes.pick(self.affinity) {
            return Ok(connection);
        }
        self.note(Phase::Connection);
        let connection = self.lanes.connected(self.wait_for_ready).await;
        self.waited(connection)
    }

    /// Opens a stream for messages that follow.
    pub(super) async fn open(
        &mut self,
        slot: impl Fn(StreamId) -> Slot,
    ) -> Result<(Arc<Connection>, SlotKey), Status> {
        loop {
            let connection = self.next_connection().await?;
            match self.open_on(&connection, &slot) {
                Ok(key) => return Ok((connection, key)),
                Err(refused) => self.refused(&refused, &connection)?,
            }
        }
    }

    fn open_on(
        &mut self,
        connection: &Arc<Connection>,
        slot: impl Fn(StreamId) -> Slot,
    ) -> Result<SlotKey, NotOpened> {
        let mut state = connection.lock();
        let headers = self.call.fields().block();
        let open = |http2: &mut http2::Connection, key: SlotKey| http2.open(key.into(), headers, false);
        let key = open_stream(&mut state, &self.ticket, slot, open)?;
        state.notify_driver();
        drop(state);
        self.ticket.served();
        connection.call_started();
        Ok(key)
    }

    /// A failed wait keeps its phase for the error.
    fn waited(&self, connection: Result<Arc<Connection>, Status>) -> Result<Arc<Connection>, Status> {
        if connection.is_ok() {
            self.note(Phase::MessageResponse);
            self.call.measure.waited();
        }
        connection
    }

    fn note(&self, phase: Phase) {
        self.call.progress.note(phase);
    }

    pub(super) fn refused(
        &mut self,
        refused: &NotOpened,
        connection: &Arc<Connection>,
    ) -> Result<(), Status> {
        match refused {
            NotOpened::AtCapacity => {
                self.is_full = true;
                return Ok(());
            }
            NotOpened::HeadersTooLarge { size, size_max } => {
                self.note(Phase::Unsent);
                let peer = &connection.peer;
                return Err(Status::resource_exhausted(format!(
                    "the call's metadata is too large: header list of {size} bytes, {peer} accepts {size_max}"
                )));
            }
            NotOpened::Closed => {}
        }
        self.lanes.lost(connection);
        self.lanes_gone += 1;
        if self.lanes_gone < LANES_TRIED_MAX {
            return Ok(());
        }
        self.note(Phase::Unsent);
        self.call.note_reached(connection, None);
        let ended = connection.lock().ended().cloned();
        Err(ended.unwrap_or_else(|| {
            Status::unavailable(format!("the connection to {} is shutting down", connection.peer))
        }))
    }

    /// Records an attempt that the server has not processed. Returns the number of message bytes it had sent, or the
    /// error if the call must not be retried.
    pub(super) fn unprocessed(
        &mut self,
        connection: &Arc<Connection>,
        status: Status,
    ) -> Result<usize, Status> {
        if connection.lock().http2.peer_going_away() {
            self.lanes.lost(connection);
        }
        self.retried += 1;
        self.call.note_reached(connection, None);
        if self.retried > TRANSPARENT_RETRIES_MAX {
            return Err(status);
        }
        self.call.progress.note_attempt();
        let sent = self.call.measure.again(&status);
        self.call.again();
        Ok(sent)
    }
}
