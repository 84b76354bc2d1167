//! Load generation for any method of any gRPC service.
//!
//! A [`Scenario`] defines the calls: one method, or a mix of flows with several steps. A [`Plan`] sets rate and
//! duration, and [`drive`](drive()) runs them. In a **closed loop** each worker starts a call when its previous one has
//! finished. In an **open loop** a [`Schedule`] sets the start times, whatever the server does. Its latency counts
//! from the scheduled start, so a server stall delays every call scheduled during it (no coordinated omission).
//!
//! The result is a [`LoadRun`]: histograms, an [`Interval`] for each second, and statuses. A [`Condition`] checks it.
//! [`Running`] is a snapshot of an unfinished run, and an [`Observer`] is notified of events. To use several machines,
//! run one [`Share`] on each, and combine the results with [`LoadRun::merged`].
//!
//! ```
//! use thalweg_load::{Arrivals, Condition, Spacing};
//!
//! // 1000 starts per second, in ns since the run started.
//! let starts: Vec<u64> = Arrivals::new("1000".parse()?, Spacing::Constant, 0).take(3).collect();
//! assert_eq!(starts, [0, 1_000_000, 2_000_000]);
//!
//! let conditions = Condition::parse_all("p99<5ms, errors<0.1%")?;
//! assert_eq!(conditions.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// The path of a call: `arrivals` schedules it, `pacer` hands it to a worker, `worker` runs the steps of its flow,
// `perform` makes each call, and `tally` counts it.

// Only the command prints.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

#[cfg(not(target_os = "linux"))]
compile_error!("thalweg-load and the `thalweg` command support Linux only");

pub mod bare;
pub mod echo;
pub mod export;
pub mod peer;
pub mod record;
pub mod services;
pub mod spec;

mod arrivals;
mod benchmark_calls;
mod benchmark_messages;
mod bytes_form;
mod call;
mod call_context;
mod call_outcome;
mod conditions;
mod connect;
#[cfg(test)]
mod constant_memory;
mod csv;
mod drive;
mod finishes;
mod form;
mod intervals;
mod label;
mod merge;
mod observer;
mod pace;
mod pacer;
mod pacing;
mod page;
mod parts;
mod pending_requests;
mod perform;
mod plan;
mod progress;
mod requests;
mod response_checks;
mod run;
mod running;
mod scenario;
mod schedule;
mod search;
mod server_tallies;
mod servers;
mod share;
mod start_time;
mod starts;
mod stream;
mod tally;
mod template;
#[cfg(test)]
mod tests;
mod traffic;
mod variables;
mod worker;
mod worker_counters;
mod workers;

pub use self::csv::csv;
pub use arrivals::{Arrivals, Spacing};
pub use benchmark_messages::{BenchmarkMessages, payload, request};
pub use call::{Call, CallKind, CallMetadata, Calls, Check, Expected, StreamPlan};
pub use conditions::{Condition, ConditionError};
pub use connect::{StartError, channel_builder};
pub use drive::{DriveError, drive};
pub use label::Label;
pub use merge::{MergeError, ResultsToAwait, gather};
pub use observer::Observer;
pub use page::page;
pub use parts::PartsError;
pub use plan::{NO_INTERVALS, Pace, Plan, PlanError, Stop, UnfinishedCalls};
pub use requests::{MakeMessage, Order, Requests};
pub use response_checks::{FieldPath, ResponseCheck, expected};
pub use run::{
    ConditionResult, EARLIER_SCHEMA, Flows, FurtherAttempts, Interval, LoadRun, RunNote, SCHEMA, Search,
    ServerInterval, ServerRun, StepRun, Timing, Try,
};
pub use running::Running;
pub use scenario::{Channels, Flow, Scenario, Step, Think};
pub use schedule::{Schedule, ScheduleError, scheduled};
pub use search::{SearchOptions, find_max};
pub use share::{Share, ShareError};
pub use template::{Template, TemplateError, TemplateNames, TemplateValues};
pub use variables::Variables;
