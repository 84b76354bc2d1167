//! The attempts at one call: on which connection it goes next, and when it is given up.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::opening::Refused;
use super::prepared::{Prepared, WaitsFor};
use crate::connection::Connection;
use crate::lanes::{LaneSet, WaitTicket};
use crate::options::CallOptions;
use crate::status::Status;

/// How often a call is tried again after a server that it reached said that it has not looked at it (gRFC A6).
/// Attempts that never left the client are not counted.
const TRANSPARENT_RETRIES_MAX: u32 = 1;
/// Lanes that a call may find closed before it gives up: one is closed now and then, all of them at once means trouble.
const LANES_TRIED_MAX: u32 = 16;

/// Where the next attempt at a call goes, and how much has gone wrong so far.
pub(super) struct Attempts<'a> {
    lanes: &'a LaneSet,
    pub(super) ticket: WaitTicket<'a>,
    /// Is told what it waits for.
    call: &'a Prepared,
    /// Calls with the same one take the same lane.
    affinity: Option<u64>,
    wait_for_ready: bool,
    /// The last lane had no stream free.
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

    /// The connection to try next, if the call need not wait for it.
    #[inline]
    pub(super) fn connection_at_hand(&self) -> Option<Arc<Connection>> {
        if self.is_full { None } else { self.lanes.pick(self.affinity) }
    }

    /// The connection to try next.
    pub(super) async fn next_connection(&mut self) -> Result<Arc<Connection>, Status> {
        if self.is_full {
            self.is_full = false;
            self.note(WaitsFor::FreeStream);
            let connection = self.ticket.wait(self.wait_for_ready).await;
            self.note(WaitsFor::Answer);
            return self.waited(connection);
        }
        if let Some(connection) = self.lanes.pick(self.affinity) {
            return Ok(connection);
        }
        self.note(WaitsFor::Connection);
        let connection = self.lanes.connected(self.wait_for_ready).await;
        self.note(WaitsFor::Answer);
        self.waited(connection)
    }

    fn waited(&self, connection: Result<Arc<Connection>, Status>) -> Result<Arc<Connection>, Status> {
        if connection.is_ok() {
            self.call.measure.waited();
        }
        connection
    }

    fn note(&self, waits_for: WaitsFor) {
        self.call.waits_for.store(waits_for as u8, Ordering::Relaxed);
    }

    pub(super) fn refused(&mut self, refused: &Refused, connection: &Arc<Connection>) -> Result<(), Status> {
        match refused {
            Refused::LaneFull => {
                self.is_full = true;
                return Ok(());
            }
            Refused::HeadTooLarge { size, size_max } => {
                let peer = &connection.peer;
                return Err(Status::resource_exhausted(format!(
                    "the call's metadata is too large: its head counts {size} bytes, and {peer} accepts {size_max}"
                )));
            }
            Refused::LaneGone => {}
        }
        self.lanes.lost(connection);
        self.lanes_gone += 1;
        if self.lanes_gone < LANES_TRIED_MAX {
            return Ok(());
        }
        let ended = connection.lock().ended().cloned();
        Err(ended.unwrap_or_else(|| Status::unavailable(format!("{} takes no new calls", connection.peer))))
    }

    /// Whether the call may be tried again; and how many bytes of messages it had sent.
    pub(super) fn unprocessed(
        &mut self,
        connection: &Arc<Connection>,
        status: Status,
    ) -> Result<usize, Status> {
        if connection.lock().http2.peer_going_away() {
            self.lanes.lost(connection);
        }
        self.retried += 1;
        if self.retried > TRANSPARENT_RETRIES_MAX {
            return Err(status);
        }
        Ok(self.call.measure.again(&status))
    }
}
