//! Two peers, a seeded link, virtual time.
//!
//! Everything that a run does follows from its seed: what the owners of both ends ask for, how the link delays, splits
//! and merges the bytes, when it breaks. A [`Trace`] takes note of every step; equal traces are equal runs, so a
//! failure replays from its seed alone. [`seeds::check`] runs many of them and says how to replay the one that failed.
#![forbid(unsafe_code)]

pub mod fuzz;
pub mod grpc;
pub mod http2;
mod link;
mod pattern;
mod random;
pub mod seeds;
mod trace;

pub use random::Random;
pub use trace::Trace;
