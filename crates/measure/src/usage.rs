//! CPU time, context switches, waiting time and memory of processes, read from `/proc`.
//!
//! Reading them from outside gives comparable values for every stack, without its support.

mod own;
mod sample;
mod throttling;
mod used;

pub use own::{KeptWaiting, OwnUsage};
pub use sample::{
    MeasuredProcesses, Sample, SideProcesses, processor_time, resident_bytes, waited_by_this_thread,
};
pub use used::{ProcessUsage, ServerMemory, Usage};
