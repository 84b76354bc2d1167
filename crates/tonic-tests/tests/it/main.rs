//! What programs do that stand on tonic: stubs that its generators made, over sockets and in memory.

mod compression;
mod connect_info;
mod connection;
mod generated;
mod layers;
mod limits;
mod status;
mod stubs;
mod times;
mod web;

/// A message that is written by hand, which `names.proto` is told of.
#[derive(Clone, PartialEq, prost::Message)]
struct Animal {
    #[prost(string, optional, tag = "1")]
    name: Option<String>,
}
