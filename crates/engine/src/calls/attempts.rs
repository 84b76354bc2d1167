//! Attempts at one call: chooses the next connection and limits the retries.

use std::sync::Arc;

use thalweg_balance::retry::Progress;
use thalweg_balance::service_config::AttemptPolicy;
use thalweg_http2::{self as http2, StreamId};

use super::prepared::{Prepared, RequestFields};
use super::retries::{FailedAttempt, Retries};
use crate::call_context::Phase;
use crate::channel::Channel;
use crate::connection::{Connection, NotOpened, Slot, SlotKey, open_stream};
use crate::endpoints::WaitTicket;
use crate::options::CallOptions;
use crate::status::{Code, Status};

/// Limit of closed lanes that a call may encounter. One closes now and then; all of them at once is a failure.
const LANES_TRIED_MAX: u32 = 16;

/// Destination of the call's next attempt, and the failures so far.
pub(super) struct Attempts<'a> {
    channel: &'a Channel,
    /// Its progress is updated here.
    pub(super) call: &'a Prepared,
    options: &'a CallOptions,
    pub(super) ticket: WaitTicket<'a>,
    next: Next,
    pub(super) lanes_gone: u32,
    pub(super) retries: Retries,
}

/// Destination of an attempt.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// The server that the policy picks.
    Picked,
    /// Preferably a server that the call has not tried.
    Untried,
    /// A connection with a free stream; the last one had none.
    FreeStream,
}

/// How far an attempt got that failed on a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FailureKind {
    /// The server reports that it has not processed the call.
    Unprocessed,
    Processed,
    /// Response headers had arrived.
    Committed,
}

impl<'a> Attempts<'a> {
    pub(super) fn new(channel: &'a Channel, options: &'a CallOptions, call: &'a Prepared) -> Self {
        let (ticket, retries) = (WaitTicket::new(channel.endpoints()), Retries::default());
        Self { channel, call, options, ticket, next: Next::Picked, lanes_gone: 0, retries }
    }

    /// Returns the key of the call: calls with equal keys use the same endpoint and lane.
    #[inline]
    fn affinity(&self) -> Option<u64> {
        if self.channel.endpoints().has_hash_header() { self.hash() } else { self.options.affinity }
    }

    /// Returns the hash of the header that the policy names, or the affinity key of a call without that header.
    #[cold]
    fn hash(&self) -> Option<u64> {
        let name = self.channel.endpoints().hash_header();
        name.and_then(|name| self.call.fields.hash_of(&name)).or(self.options.affinity)
    }

    /// Returns the request headers of the next attempt.
    #[inline]
    pub(super) fn fields(&self) -> &RequestFields {
        self.retries.fields(self.call)
    }

    /// Returns whether the call has a retry policy.
    pub(super) fn has_policy(&self) -> bool {
        matches!(self.options.attempts, Some(AttemptPolicy::Retry(_)))
    }

    /// Returns the connection to try first, unless the call has to wait for one.
    #[inline]
    pub(super) fn connection_at_hand(&self) -> Option<Arc<Connection>> {
        if self.next == Next::Picked { self.channel.endpoints().pick(self.affinity()) } else { None }
    }

    /// Waits for the connection to try next, preferably of a server that `call` has not tried.
    pub(super) async fn connection_untried_by(&mut self, call: &Prepared) -> Result<Arc<Connection>, Status> {
        if self.next == Next::FreeStream {
            self.next = Next::Picked;
            self.note(Phase::FreeStream);
            let _waits = self.channel.endpoints().waiting_calls().enter();
            let connection = self.ticket.wait(self.options.waits_for_ready()).await;
            return self.waited(connection);
        }
        let affinity = self.affinity();
        let is_tried = |connection: &Connection| call.has_tried(connection);
        if let Some(connection) = self.channel.endpoints().pick_untried(affinity, is_tried) {
            return Ok(connection);
        }
        self.note(Phase::Connection);
        let _waits = self.channel.endpoints().waiting_calls().enter();
        let connection = self.channel.endpoints().connected(affinity, self.options.waits_for_ready()).await;
        self.waited(connection)
    }

    /// Waits for the connection to try next, as long as the call is retried.
    pub(super) async fn wait_for_connection(&mut self) -> Result<Arc<Connection>, Status> {
        let call = self.call;
        self.wait_for_connection_untried_by(call).await
    }

    /// Like [`wait_for_connection`](Self::wait_for_connection), preferably of a server that `call` has not tried.
    async fn wait_for_connection_untried_by(&mut self, call: &Prepared) -> Result<Arc<Connection>, Status> {
        loop {
            match self.connection_untried_by(call).await {
                Ok(connection) => return Ok(connection),
                Err(status) => {
                    let (progress, is_committed) = (Progress::Processed, false);
                    let failed = FailedAttempt { status, connection: None, progress, is_committed };
                    self.next_attempt(failed).await?;
                }
            }
        }
    }

    /// Opens a stream for messages that follow.
    pub(super) async fn open(
        &mut self,
        slot: impl Fn(StreamId) -> Slot,
    ) -> Result<(Arc<Connection>, SlotKey), Status> {
        let call = self.call;
        self.open_untried_by(call, slot).await
    }

    /// Like [`open`](Self::open), preferably on a server that `call` has not tried.
    pub(super) async fn open_untried_by(
        &mut self,
        call: &Prepared,
        slot: impl Fn(StreamId) -> Slot,
    ) -> Result<(Arc<Connection>, SlotKey), Status> {
        loop {
            let connection = self.wait_for_connection_untried_by(call).await?;
            match self.open_on(&connection, &slot) {
                Ok(key) => {
                    if let Some(peer) = &self.options.peer {
                        peer.note(&connection.peer, connection.call_timeout(), self.call.progress.attempt());
                    }
                    return Ok((connection, key));
                }
                Err(refused) => self.refused(&refused, &connection)?,
            }
        }
    }

    fn open_on(
        &mut self,
        connection: &Arc<Connection>,
        slot: impl Fn(StreamId) -> Slot,
    ) -> Result<SlotKey, NotOpened> {
        let mut adapted = None;
        let headers = self.fields().block(connection, &mut adapted);
        let mut state = connection.lock();
        let open = |http2: &mut http2::Connection, key: SlotKey| http2.open(key.into(), headers, false);
        let key = open_stream(&mut state, || self.ticket.has_waited(), slot, open)?;
        state.notify_driver();
        drop(state);
        self.call.measure.sent_to(&connection.peer);
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
                self.next = Next::FreeStream;
                return Ok(());
            }
            NotOpened::HeadersTooLarge { size, size_max } => {
                self.note(Phase::Unsent);
                let peer = &connection.peer;
                return Err(Status::local(
                    Code::ResourceExhausted,
                    format!(
                        "the call's metadata is too large: header list of {size} bytes, {peer} accepts {size_max}"
                    ),
                ));
            }
            NotOpened::Closed => {}
        }
        self.channel.endpoints().lost(connection);
        self.lanes_gone += 1;
        if self.lanes_gone < LANES_TRIED_MAX {
            return Ok(());
        }
        self.note(Phase::Unsent);
        self.call.note_reached(connection, None);
        let ended = connection.lock().ended().cloned();
        Err(ended.unwrap_or_else(|| {
            Status::local(
                Code::Unavailable,
                format!("the connection to {} is shutting down", connection.peer),
            )
        }))
    }

    /// Returns how far an attempt got that the server has not processed.
    pub(super) fn progress_of_unprocessed(&mut self, connection: &Arc<Connection>) -> Progress {
        if !connection.lock().http2.peer_going_away() {
            return Progress::Unprocessed;
        }
        self.channel.endpoints().lost(connection);
        self.lanes_gone += 1;
        if self.lanes_gone < LANES_TRIED_MAX { Progress::Unsent } else { Progress::Unprocessed }
    }

    /// Records a failed attempt on `connection`, and waits until the next one may start. Returns the number of message
    /// bytes it had sent.
    ///
    /// After GOAWAY an unprocessed call goes to another connection as often as needed, since several connections may
    /// reach a proxy's limit of requests at the same time. After REFUSED_STREAM it is sent again once (gRFC A6).
    ///
    /// # Errors
    /// Returns the status if the call is not retried.
    pub(super) async fn failed(
        &mut self,
        status: Status,
        kind: FailureKind,
        connection: &Arc<Connection>,
    ) -> Result<usize, Status> {
        let progress = match kind {
            FailureKind::Unprocessed => self.progress_of_unprocessed(connection),
            FailureKind::Processed | FailureKind::Committed => Progress::Processed,
        };
        self.call.note_reached(connection, None);
        let (failed_on, is_committed) = (Some(connection), kind == FailureKind::Committed);
        let failed = FailedAttempt { status, connection: failed_on, progress, is_committed };
        let sent = self.next_attempt(failed).await?;
        if progress == Progress::Processed {
            self.call.note_tried(connection);
            self.next = Next::Untried;
        }
        Ok(sent)
    }

    async fn next_attempt(&mut self, failed: FailedAttempt<'_>) -> Result<usize, Status> {
        self.retries.next_attempt(self.channel, self.call, self.options, failed).await
    }
}
