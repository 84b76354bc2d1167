//! The state of one stream of a connection: received data, its end, waiting tasks, and the call.

use std::any::Any;
use std::sync::Arc;
use std::task::Waker;

use http::HeaderMap;
use thalweg_http2::StreamId;
use tokio::time::Instant;

use super::inbox::Inbox;
use super::unlocked::Deferred;
use crate::grpc::response::ResponseHeaders;
use crate::measure::CallMeasure;
use crate::status::Status;

/// Key of a slot; stale once the slot is removed, even if its index is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SlotKey {
    pub(super) index: u32,
    pub(super) generation: u32,
}

impl SlotKey {
    /// Returns whether this is one of each `every` slots. `every` must be a power of two.
    #[inline]
    pub(crate) fn is_each(self, every: u32) -> bool {
        self.generation & (every - 1) == 0
    }
}

/// The gRPC state of one stream.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(super) generation: u32,
    pub(crate) stream: StreamId,
    pub(crate) inbox: Inbox,
    pub(crate) end: Option<End>,
    /// We have sent END_STREAM or reset the stream: nothing more goes out.
    pub(crate) send_closed: bool,
    pub(crate) receiver: Option<Waker>,
    pub(crate) sender: Option<Waker>,
    pub(crate) role: Role,
}

/// The role of this end in the call.
#[derive(Debug)]
pub(crate) enum Role {
    Client(ClientCall),
    Server(ServerCall),
}

/// A call made by this end.
#[derive(Debug)]
pub(crate) struct ClientCall {
    pub(crate) wakes_on: WakesOn,
    /// The response headers.
    pub(crate) headers: Option<Arc<ResponseHeaders>>,
}

/// Events, besides the end, that wake the reader of a response.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum WakesOn {
    /// None: the call is unary.
    End,
    Messages,
    /// The headers and messages.
    Headers,
    /// The raw headers, gRPC or not, and the raw body.
    Raw,
    /// The messages of a stream of the channel itself, which does not count as a call.
    Own,
}

/// Admission of a call whose connection has no room.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Admission {
    /// Whether the task waits for room.
    pub(super) waits: bool,
    /// Whether the call may run on a full connection while nothing is queued on its stream.
    pub(super) may_exceed: bool,
}

/// A call received by this end.
#[derive(Debug, Default)]
pub(crate) struct ServerCall {
    /// Run at the end of the request; its type is known to the server's endpoint.
    pub(crate) on_end: Option<OnEnd>,
    /// The client's deadline, from the request headers.
    pub(crate) deadline: Option<Instant>,
    /// Whether the response headers have been sent.
    pub(crate) headers_sent: bool,
    /// Whether a task runs the handler, which removes the slot when it ends.
    pub(crate) task_running: bool,
    /// Waker of the task that runs the handler, woken when the call is lost.
    pub(crate) task: Option<Waker>,
    pub(crate) admission: Admission,
    pub(crate) measure: CallMeasure,
    /// Approximate bytes of the metadata and of the request that the handler has.
    pub(crate) buffered: u32,
}

pub(crate) type OnEnd = Arc<dyn Any + Send + Sync>;

impl ServerCall {
    /// Adds bytes of a request that the handler has.
    pub(crate) fn add_buffered(&mut self, len: usize) {
        self.buffered = self.buffered.saturating_add(u32::try_from(len).unwrap_or(u32::MAX));
    }

    /// Subtracts bytes that were freed.
    pub(crate) fn remove_buffered(&mut self, len: usize) {
        self.buffered = self.buffered.saturating_sub(u32::try_from(len).unwrap_or(u32::MAX));
    }
}

/// End of the peer's half of a stream.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// The peer has sent everything. On a client: the call's outcome, with trailing metadata if any. Boxed, because
    /// there is mostly none, and slots are moved. For a raw call, `None` means trailers of only `grpc-status: 0`, and
    /// an empty map means no trailers.
    Complete(Result<Option<Box<HeaderMap>>, Status>),
    /// The stream or the connection was lost. `unprocessed`: no application has seen the call.
    Lost { status: Status, unprocessed: bool },
}

impl End {
    /// A request that has arrived as a whole.
    pub(crate) fn received() -> Self {
        Self::Complete(Ok(None))
    }

    /// Returns the call's outcome, with the trailing metadata.
    pub(crate) fn outcome(self) -> Result<HeaderMap, Status> {
        match self {
            Self::Complete(outcome) => {
                outcome.map(|trailers| trailers.map_or_else(HeaderMap::new, |trailers| *trailers))
            }
            Self::Lost { status, .. } => Err(status),
        }
    }
}

impl Slot {
    pub(crate) fn of_client(stream: StreamId, inbox: Inbox, wakes_on: WakesOn) -> Self {
        Self::new(stream, inbox, Role::Client(ClientCall { wakes_on, headers: None }))
    }

    pub(crate) fn of_server(stream: StreamId, inbox: Inbox, call: ServerCall) -> Self {
        Self::new(stream, inbox, Role::Server(call))
    }

    /// Creates the slot of a request that arrived as a whole.
    pub(crate) fn of_complete_request(stream: StreamId, call: ServerCall) -> Self {
        Self { end: Some(End::received()), ..Self::of_server(stream, Inbox::new(0), call) }
    }

    fn new(stream: StreamId, inbox: Inbox, role: Role) -> Self {
        Self {
            generation: 0,
            stream,
            inbox,
            end: None,
            send_closed: false,
            receiver: None,
            sender: None,
            role,
        }
    }

    #[inline]
    pub(crate) fn client(&mut self) -> Option<&mut ClientCall> {
        match &mut self.role {
            Role::Client(call) => Some(call),
            Role::Server(_) => None,
        }
    }

    #[inline]
    pub(crate) fn server(&mut self) -> Option<&mut ServerCall> {
        match &mut self.role {
            Role::Server(call) => Some(call),
            Role::Client(_) => None,
        }
    }

    #[inline]
    pub(crate) fn server_ref(&self) -> Option<&ServerCall> {
        match &self.role {
            Role::Server(call) => Some(call),
            Role::Client(_) => None,
        }
    }

    /// Server: returns the call's measurement.
    #[inline]
    pub(crate) fn measure(&self) -> Option<&CallMeasure> {
        self.server_ref().map(|call| &call.measure)
    }

    /// Server: takes the call's measurement, which must not be dropped under the lock.
    #[inline]
    pub(crate) fn take_measure(&mut self) -> CallMeasure {
        self.server().map(|call| std::mem::take(&mut call.measure)).unwrap_or_default()
    }

    /// Returns whether this is a client's call that is not unary.
    #[inline]
    pub(crate) fn is_streaming_call(&self) -> bool {
        matches!(&self.role, Role::Client(call) if call.wakes_on != WakesOn::End)
    }

    /// Returns whether this is a client's raw call.
    #[inline]
    pub(crate) fn is_raw(&self) -> bool {
        matches!(&self.role, Role::Client(call) if call.wakes_on == WakesOn::Raw)
    }

    /// Returns whether this is a stream of the channel itself, which does not count as a call.
    pub(crate) fn is_own(&self) -> bool {
        matches!(&self.role, Role::Client(call) if call.wakes_on == WakesOn::Own)
    }

    /// Returns whether the call has an outcome: on a client its status; on a server it was lost before the response
    /// was complete.
    pub(crate) fn is_over(&self) -> bool {
        match &self.role {
            Role::Client(_) => self.end.is_some(),
            Role::Server(_) => self.send_closed,
        }
    }

    /// Ends the stream with the connection. A response that has arrived as a whole remains valid; a running handler's
    /// call is lost.
    pub(crate) fn end_of_connection(&mut self, status: &Status) {
        if matches!(&self.role, Role::Server(call) if call.task_running) {
            self.end_lost(status.clone());
        } else {
            self.end(End::Lost { status: status.clone(), unprocessed: false });
        }
    }

    /// Server: marks the call as lost, even if its request has arrived as a whole.
    pub(crate) fn end_lost(&mut self, status: Status) {
        self.send_closed = true;
        self.end = Some(End::Lost { status, unprocessed: false });
    }

    /// Notes how the stream ended; only the first end counts.
    pub(crate) fn end(&mut self, end: End) {
        if let End::Lost { .. } = end {
            self.send_closed = true;
        }
        if self.end.is_none() {
            self.end = Some(end);
        }
    }

    /// Wakes all tasks that wait on this stream.
    #[inline]
    pub(crate) fn wake_all(&mut self, deferred: &mut Deferred) {
        deferred.wake(self.receiver.take());
        deferred.wake(self.sender.take());
        if let Role::Server(call) = &mut self.role {
            deferred.wake(call.task.take());
        }
    }
}
