//! Load on any method of any service.
//!
//! A [`Plan`] says what is called, how often and for how long. [`drive`](drive()) does it, in a **closed loop**, where
//! each of so many workers begins a call when its last has ended, or in an **open loop**, where a [`Schedule`] says
//! when each call is to begin, whatever the server does. In an open loop a call's latency counts from that moment on,
//! and not from when the client got round to it: a server that stands still for two seconds is seen by all calls that
//! were to begin meanwhile.
//!
//! What comes of it is a [`LoadRun`]: distributions as histograms, an [`Interval`] for each second, statuses. A
//! [`Gate`] judges it.
//!
//! The way of a call: `arrivals` says when it is to begin, `pacer` lets a worker have it then, `worker` makes it by
//! `call`, and `tally` counts it.

mod arrivals;
mod call;
mod drive;
mod gates;
mod intervals;
mod merge;
mod pacer;
mod plan;
mod requests;
mod run;
mod schedule;
mod tally;
mod template;
mod worker;

pub use arrivals::{Arrivals, Spacing};
pub use call::{CallKind, CallMetadata, Callee};
pub use drive::drive;
pub use gates::{Gate, GateError};
pub use merge::MergeError;
pub use plan::{Pace, Plan, PlanError, Stop};
pub use requests::{Make, Order, Requests};
pub use run::{Interval, Judged, LoadRun, RunNote, SCHEMA, Timing};
pub use schedule::{Schedule, ScheduleError};
pub use template::{Moment, Template, TemplateError};
