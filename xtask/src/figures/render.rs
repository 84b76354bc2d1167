//! The tables, of results.

mod benches;
mod comparison;
mod engine;
mod goals;
mod lanes;
mod table;

pub(super) use benches::{allocations, beside, costs, idle, instructions, memory, polling};
pub(super) use comparison::{clients, comparison_tcp, comparison_uds, in_flight, speed};
pub(super) use engine::protobuf;
pub(super) use goals::goals;
pub(super) use lanes::lanes;
