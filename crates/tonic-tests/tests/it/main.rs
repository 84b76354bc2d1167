//! Programs that use tonic: stubs from its generators, over sockets and in memory.

mod compression;
mod connect_info;
mod connection;
mod extensions;
mod generated;
mod layers;
mod limits;
mod status;
mod stubs;
mod times;
mod web;

/// A hand-written message that `names.proto` refers to.
#[derive(Clone, PartialEq, prost::Message)]
struct Animal {
    #[prost(string, optional, tag = "1")]
    name: Option<String>,
}
