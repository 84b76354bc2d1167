//! Drives an HTTP/2 connection over a byte stream and carries gRPC messages on it.
//!
//! ```text
//!   callers, handlers ──lock──► State { http2, slots } ◄──lock── Driver ◄──► socket
//! ```
//!
//! One [`Driver`] task per connection reads from the socket, passes the bytes to the protocol, wakes the affected
//! tasks, and writes. Callers and handlers use no queue: under a short lock they encode into the connection's output
//! buffer, and wake the driver only if it sleeps. Each stream's data is gathered in its [`Slot`]. Its reader is woken
//! when a whole message has arrived, and decodes it outside the lock.

mod buffer_pool;
mod decompression;
mod driver;
mod http1_state;
mod inbox;
mod incoming;
mod keepalive;
mod keyed_slots;
mod memory;
mod memory_account;
mod opening;
mod outbox;
mod outgoing;
mod own_stream;
mod pack;
mod raw_body;
mod receiving;
mod request_accounting;
mod send_loop;
mod shared;
mod slot;
mod slots;
mod state;
mod stream_wait_queue;
mod substream;
mod sweep;
mod unlocked;

pub(crate) use buffer_pool::{put as put_buffer, take as take_buffer};
pub(crate) use decompression::DecompressionReader;
pub(crate) use driver::{Driver, Endpoint};
pub(crate) use http1_state::{Http1Command, Http1InFlight};
pub(crate) use inbox::Inbox;
pub(crate) use incoming::LocalRequests;
pub use incoming::{Incoming, LentMessage};
pub use keepalive::{Keepalive, KeepalivePolicy};
pub(crate) use keepalive::{KeepaliveCheck, KeepaliveState, end_silent};
pub(crate) use opening::{NotOpened, open_stream};
pub(crate) use outbox::Outbox;
pub(crate) use outgoing::{Outgoing, Single, put_encode_buffer, take_encode_buffer};
pub(crate) use own_stream::OwnStream;
pub use pack::{Pack, Source};
pub use raw_body::RawBody;
pub(crate) use raw_body::{RawLimits, RawReader};
pub use request_accounting::RequestAccounting;
pub(crate) use send_loop::{SendLoop, SendOutcome, fit};
pub(crate) use shared::{CallPosition, Connection};
pub(crate) use slot::{End, OnEnd, ServerCall, Slot, SlotKey, WakesOn};
pub(crate) use state::{State, TIMED_EACH_MAX};
pub(crate) use stream_wait_queue::{StreamAdmission, StreamWaitQueue};
pub(crate) use substream::{Substream, SubstreamOutcome};
pub(crate) use unlocked::{NeedsClone, PolledTask, poll_with_waker};
