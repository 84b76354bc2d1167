//! Scheduling of a connection's driver: polling, yielding, busy polling and sleeping, and samples of how busy it is.
//!
//! All constants are in [`tuning`], each with its measured basis.

mod busy_poll;
mod callers_first;
mod heuristic;
mod load;
mod read_chunks;
mod spin_backoff;
mod thread_poller;
pub(crate) mod tuning;
mod wasted;
mod work;
mod yield_now;
mod yields;

pub(crate) use busy_poll::{BusyPoll, Idle, is_spinning};
pub(crate) use callers_first::CallersFirst;
pub(crate) use heuristic::Heuristic;
pub(crate) use load::{Load, nanoseconds};
#[cfg(feature = "testing")]
pub use read_chunks::settle_alone;
pub(crate) use read_chunks::{ReadChunks, is_alone};
pub use wasted::busy_poll_wasted;
pub(crate) use work::Work;
pub(crate) use yield_now::yield_now;
pub(crate) use yields::{Pause, Yields};
