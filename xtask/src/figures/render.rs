//! The tables, of results.

mod benches;
mod codec;
mod comparison;
mod connections;
mod ends;
mod engine;
mod goals;
mod json;
mod lanes;
mod protos;
mod published;
mod readme;
mod table;

pub(super) use benches::{
    allocations, attacks, beside, costs, drop_in, flight, generators, generators_stopped, hoards, idle,
    instructions, memory, polling, same, slowed, tls,
};
pub(super) use codec::{codec, codec_findings, codec_ten_million};
pub(super) use comparison::{comparison_tcp, comparison_uds, in_flight};
pub(super) use connections::connections;
pub(super) use ends::ends;
pub(super) use engine::protobuf;
pub(super) use goals::goals;
pub(super) use json::json;
pub(super) use lanes::{lanes, many_processors};
pub(super) use protos::protos;
pub(super) use published::published;
pub(super) use readme::speed;
