//! What a connection keeps for one stream: what has arrived, how it ended, who waits, and what its call is to this end.

use std::any::Any;
use std::sync::Arc;
use std::task::Waker;

use http::HeaderMap;
use thalweg_http2::StreamId;
use tokio::time::Instant;

use super::inbox::Inbox;
use super::unlocked::Deferred;
use crate::grpc::response::ResponseHead;
use crate::measure::CallMeasure;
use crate::status::Status;

/// Names a slot; stale once the slot is removed, even when its index is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SlotKey {
    pub(super) index: u32,
    pub(super) generation: u32,
}

impl SlotKey {
    /// Whether it is one of each `every`, which must be a power of two.
    #[inline]
    pub(crate) fn is_each(self, every: u32) -> bool {
        self.generation & (every - 1) == 0
    }
}

/// One stream, seen from the gRPC side.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(super) generation: u32,
    pub(crate) stream: StreamId,
    pub(crate) inbox: Inbox,
    pub(crate) end: Option<End>,
    /// We have sent END_STREAM (or reset the stream): nothing more goes out.
    pub(crate) send_closed: bool,
    pub(crate) receiver: Option<Waker>,
    pub(crate) sender: Option<Waker>,
    pub(crate) role: Role,
}

/// What the call is to this end of the connection.
#[derive(Debug)]
pub(crate) enum Role {
    Client(ClientCall),
    Server(ServerCall),
}

/// A call that was made here.
#[derive(Debug)]
pub(crate) struct ClientCall {
    pub(crate) wakes_on: WakesOn,
    /// The response's head.
    pub(crate) head: Option<Arc<ResponseHead>>,
}

/// What the reader of a response waits for, besides its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum WakesOn {
    /// Nothing: the call is unary.
    End,
    Messages,
    /// The head, and messages.
    Head,
    /// The head as it is, gRPC or not, and what follows it.
    Raw,
}

/// Admission of a call whose connection has no room.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Admission {
    /// The task waits for room.
    pub(super) waits: bool,
    /// The call may run on a full connection while nothing is queued on its stream.
    pub(super) may_exceed: bool,
}

/// A call that came here.
#[derive(Debug, Default)]
pub(crate) struct ServerCall {
    /// What the end of the request sets off: of a type that the server's endpoint knows.
    pub(crate) on_end: Option<OnEnd>,
    /// When the client gives the call up, by what its head said.
    pub(crate) deadline: Option<Instant>,
    /// The head of the response has been sent.
    pub(crate) head_sent: bool,
    /// A task runs the handler, and takes the slot away when it ends.
    pub(crate) task_running: bool,
    /// The task that runs the handler, to be told when the call is lost.
    pub(crate) task: Option<Waker>,
    pub(crate) admission: Admission,
    pub(crate) measure: CallMeasure,
    /// What its metadata takes, and the request that its handler has, in bytes, roughly.
    pub(crate) held: u32,
}

pub(crate) type OnEnd = Arc<dyn Any + Send + Sync>;

impl ServerCall {
    /// Its handler has a request of so many bytes, or so many more than was known.
    pub(crate) fn hold(&mut self, len: usize) {
        self.held = self.held.saturating_add(u32::try_from(len).unwrap_or(u32::MAX));
    }

    /// So many bytes of it are gone.
    pub(crate) fn release(&mut self, len: usize) {
        self.held = self.held.saturating_sub(u32::try_from(len).unwrap_or(u32::MAX));
    }
}

/// How the peer's half of a stream ended.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// The peer sent all there is. On a client: the call's outcome, with the trailing metadata if there is any (boxed,
    /// because mostly there is none, and slots are moved). Of a call that is taken as it is, none says that they are
    /// `grpc-status: 0` and no more; empty ones, that there are none.
    Complete(Result<Option<Box<HeaderMap>>, Status>),
    /// The stream or the connection was lost. `unprocessed`: no application has seen the call.
    Lost { status: Status, unprocessed: bool },
}

impl End {
    /// A request that has arrived whole.
    pub(crate) fn received() -> Self {
        Self::Complete(Ok(None))
    }

    /// The call's outcome, with the trailing metadata.
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
        Self::new(stream, inbox, Role::Client(ClientCall { wakes_on, head: None }))
    }

    pub(crate) fn of_server(stream: StreamId, inbox: Inbox, call: ServerCall) -> Self {
        Self::new(stream, inbox, Role::Server(call))
    }

    /// Of a request that came in one piece: nothing more comes.
    pub(crate) fn of_whole_request(stream: StreamId, call: ServerCall) -> Self {
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

    /// Server: what is measured of the call.
    #[inline]
    pub(crate) fn measure(&self) -> Option<&CallMeasure> {
        self.server_ref().map(|call| &call.measure)
    }

    /// Server: what is measured of the call, which is not to be dropped under the lock.
    #[inline]
    pub(crate) fn take_measure(&mut self) -> CallMeasure {
        self.server().map(|call| std::mem::take(&mut call.measure)).unwrap_or_default()
    }

    /// Whether it is a client's call that is not unary.
    #[inline]
    pub(crate) fn is_streaming_call(&self) -> bool {
        matches!(&self.role, Role::Client(call) if call.wakes_on != WakesOn::End)
    }

    /// Whether what comes for it, a client's call, is nobody's to understand but its own.
    #[inline]
    pub(crate) fn is_raw(&self) -> bool {
        matches!(&self.role, Role::Client(call) if call.wakes_on == WakesOn::Raw)
    }

    /// Whether the call has an outcome here: a client's has its status, a server's was lost before its answer was
    /// whole.
    pub(crate) fn is_over(&self) -> bool {
        match &self.role {
            Role::Client(_) => self.end.is_some(),
            Role::Server(_) => self.send_closed,
        }
    }

    /// The connection is over. A response that had arrived whole stays one; a handler that still runs is lost.
    pub(crate) fn end_of_connection(&mut self, status: &Status) {
        if matches!(&self.role, Role::Server(call) if call.task_running) {
            self.end_lost(status.clone());
        } else {
            self.end(End::Lost { status: status.clone(), unprocessed: false });
        }
    }

    /// Server: the call is lost, even if its request had arrived whole.
    pub(crate) fn end_lost(&mut self, status: Status) {
        self.send_closed = true;
        self.end = Some(End::Lost { status, unprocessed: false });
    }

    /// Notes how the stream ended; the first end counts.
    pub(crate) fn end(&mut self, end: End) {
        if let End::Lost { .. } = end {
            self.send_closed = true;
        }
        if self.end.is_none() {
            self.end = Some(end);
        }
    }

    /// Wakes all who wait on this stream.
    #[inline]
    pub(crate) fn wake_all(&mut self, deferred: &mut Deferred) {
        deferred.wake(self.receiver.take());
        deferred.wake(self.sender.take());
        if let Role::Server(call) = &mut self.role {
            deferred.wake(call.task.take());
        }
    }
}
