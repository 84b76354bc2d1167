//! What programs do that stand on tonic: stubs that its generators made, over sockets and in memory.

mod connect_info;
mod connection;
mod limits;
mod status;
mod times;
mod web;
