//! The lanes of a channel, which are its connections: their number, and the choice of one for each call.
//!
//! ```text
//!   calls ──pick──► LaneSet ──► Lane ──► Connector ──► Connection, with its driver
//!     └──wait──► WaitTicket ──► the queue for a free stream
//! ```

mod addresses;
mod backoff;
mod connect_step;
mod connecting;
mod dialer;
mod endpoint;
mod lane;
mod maintenance;
mod number;
mod observers;
mod policy_task;
mod service_config;
mod set;
mod target;
mod wait_ticket;

pub use backoff::Backoff;
pub use connect_step::ConnectStep;
pub(crate) use connect_step::StepWatcher;
pub use connecting::ByteStream;
pub(crate) use connecting::{ConnectionOptions, Connector, Transport};
pub(crate) use dialer::Dialer;
pub(crate) use lane::Lane;
pub(crate) use maintenance::Maintenance;
pub use number::Lanes;
pub(crate) use policy_task::LaneControl;
pub(crate) use service_config::ServiceConfig;
pub use service_config::ServiceConfigError;
pub use set::channels;
pub(crate) use set::{LaneSet, socket};
pub use target::TargetError;
pub(crate) use target::{Security, Target};
pub(crate) use wait_ticket::WaitTicket;
