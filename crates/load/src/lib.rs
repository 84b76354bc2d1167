//! Load on any method of any service.
//!
//! A [`Scenario`] says what is called: one method, or a mix of flows of several steps. A [`Plan`] says how often and
//! for how long. [`drive`](drive()) does it, in a **closed loop**, where each of so many workers begins a call when its
//! last has ended, or in an **open loop**, where a [`Schedule`] says when each start is to be, whatever the server
//! does. In an open loop a call's latency counts from that moment on, and not from when the client got round to it: a
//! server that stands still for two seconds is seen by all calls that were to begin meanwhile.
//!
//! What comes of it is a [`LoadRun`]: distributions as histograms, an [`Interval`] for each second, statuses. A
//! [`Gate`] judges it. [`Running`] gives the same of a run that has not ended, and an [`Observer`] is told of it.
//!
//! Where one machine is not enough, each of several makes a [`Share`] of a load, and [`LoadRun::merged`] joins what
//! came of it.
//!
//! ```
//! use thalweg_load::{Arrivals, Gate, Spacing};
//!
//! // 1000 starts a second: ns since the run began.
//! let starts: Vec<u64> = Arrivals::new("1000".parse()?, Spacing::Constant, 0).take(3).collect();
//! assert_eq!(starts, [0, 1_000_000, 2_000_000]);
//!
//! let gates = Gate::parse_all("p99<5ms, errors<0.1%")?;
//! assert_eq!(gates.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The way of a call: `arrivals` says when it is to begin, `pacer` lets a worker have it then, `worker` goes through
//! the steps of its flow, `perform` makes the call of each, and `tally` counts it.

// The command prints, by one way.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod agreed;
mod arrivals;
mod baseline;
mod call;
#[cfg(test)]
mod constant_memory;
mod csv;
mod drive;
mod gates;
mod intervals;
mod label;
mod merge;
mod observer;
mod pacer;
mod pacing;
mod page;
mod parts;
mod perform;
mod plan;
mod requests;
mod run;
mod running;
mod scenario;
mod schedule;
mod search;
mod share;
mod starts;
mod stream_messages;
mod stream_requests;
mod tally;
mod template;
mod traffic;
mod unanswered;
mod variables;
mod went;
mod worker;

pub use arrivals::{Arrivals, Spacing};
pub use call::{Call, CallKind, CallMetadata, Check, Expected, StreamPlan};
pub use csv::csv;
pub use drive::{DriveError, drive};
pub use gates::{Gate, GateError};
pub use label::Label;
pub use merge::MergeError;
pub use observer::Observer;
pub use page::page;
pub use parts::PartsError;
pub use plan::{Pace, Plan, PlanError, Stop, UnderWay};
pub use requests::{Make, Order, Requests};
pub use run::{Flows, Interval, Judged, LoadRun, RunNote, SCHEMA, Search, StepRun, Timing, Try};
pub use running::Running;
pub use scenario::{Flow, Scenario, Step, Think};
pub use schedule::{Schedule, ScheduleError, scheduled};
pub use search::{Ceiling, find_max};
pub use share::{Share, ShareError};
pub use template::{Moment, Names, Template, TemplateError};
pub use variables::Variables;
