//! The lanes of a channel, which are its connections: their number, and the choice of one for each call.
//!
//! ```text
//!   calls ──pick──► LaneSet ──► Lane ──► Connector ──► Connection, with its driver
//!     └──wait──► WaitTicket ──► the queue for a free stream
//! ```

mod addresses;
mod choice;
mod connect_step;
mod connecting;
mod dialer;
mod endpoint;
mod lane;
mod last_report;
mod maintenance;
mod number;
mod observers;
mod policy_task;
mod refusal;
mod set;
mod sockets;
mod target;

pub(crate) use addresses::Addresses;
pub use connect_step::ConnectStep;
pub(crate) use connect_step::StepWatcher;
pub use connecting::ByteStream;
pub(crate) use connecting::{ChannelParts, ConnectionOptions, Connector, Transport};
pub(crate) use dialer::Dialer;
pub(crate) use lane::Lane;
pub(crate) use last_report::LastReport;
pub(crate) use maintenance::Maintenance;
pub use number::Lanes;
pub(crate) use observers::LaneSetObserver;
pub(crate) use policy_task::Closing;
pub(crate) use set::{FreeStream, LaneSet};
pub(crate) use sockets::Sockets;
pub use target::TargetError;
pub(crate) use target::{Security, Target};
