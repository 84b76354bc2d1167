//! Simulation of two peers on a seeded link, in virtual time.
//!
//! A run is determined by its seed: the actions of both ends, and how the link delays, splits and merges bytes, and
//! when it breaks. A [`Trace`] records every step. Equal traces are equal runs, so a failure can be replayed from its
//! seed alone. [`seeds::check`] runs many seeds and prints how to replay a failed one.
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
