//! The endpoints of a channel, which are its servers: the choice of one for each call.
//!
//! ```text
//!   calls ──pick──► Endpoints ──► LaneSet of one endpoint ──► Connection
//!     │                 ▲
//!     │              Control: resolves names, and decides by the channel's policy
//!     └──wait──► WaitTicket ──► the queue for a free stream
//! ```

mod attempt_counts;
mod balanced;
mod configuration;
mod control;
mod entry;
mod of_channel;
mod views;
mod wait_ticket;
mod waiting_calls;
mod watches;

pub(crate) use attempt_counts::FurtherAttempt;
pub(crate) use configuration::Configuration;
pub(crate) use control::{BalancedConfig, ConnectorFactory, OwnSettings};
pub use of_channel::channels;
pub(crate) use of_channel::{Endpoints, socket};
pub(crate) use wait_ticket::WaitTicket;
